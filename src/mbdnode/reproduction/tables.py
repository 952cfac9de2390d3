"""The paper's tables of errors and times, with our numbers and the verdicts on them; and ours.

A column is a function of a result, and a table is a choice of columns and results. A printed
number stands beside what it is of, since a recipe may have another integrator than the paper's, and
a law is compared with the paper's MBD-NODE.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace

from mbdnode.formatting import ROUND_OFF, as_printed, short_number
from mbdnode.report.tables import Cell, Table, without_columns
from mbdnode.reproduction.cases.control_task import ControlTask
from mbdnode.reproduction.cases.printed import Reference
from mbdnode.reproduction.chapters import Chapter, Reproduction
from mbdnode.reproduction.results import UNTRAINED, Result
from mbdnode.reproduction.titles import integrator_title, model_title, with_integrator
from mbdnode.reproduction.verdicts import ACCURATE, SAME

ERRORS, MASS_SPRING, TIMES = "tab: model_errors", "tab:sms_test", "tab:time_cost"
STUDIES, COSTS, LAWS = "studies", "cost-quality", "laws"
# What laws are to a paper on networks.
ABOUT_LAWS = "Beyond the paper: laws found by regression, without a network"
ABOUT_COSTS = "What accuracy costs"
WITHOUT_LAYERS, CONTROLLER = "mse without layers", "controller"
# What one seed cannot tell.
OVER_SEEDS = ("min", "max", "seeds")


def _printed_of(reference: Reference | None) -> Cell:
    if reference is None:
        return None
    return with_integrator(model_title(reference.model), reference.integrator)


def _seconds(value: float | None) -> Cell:
    return None if value is None else short_number(value)


def _ratio(result: Result) -> float | None:
    ours, paper = result.median("train_seconds"), result.printed_time
    return paper.value / ours if paper is not None and ours else None


COLUMNS: Mapping[str, Callable[[Result], Cell]] = {
    "case": lambda r: r.case.title,
    "model": lambda r: r.title,
    "integrator": lambda r: integrator_title(r.integrator),
    "recipe": lambda r: r.recipe,
    "mse": lambda r: r.median(),
    "min": lambda r: min(r.values(), default=None),
    "max": lambda r: max(r.values(), default=None),
    "seeds": lambda r: r.seeds,
    "mse_id": lambda r: r.median("mse_id"),
    "mse_ood": lambda r: r.median("mse_ood"),
    "mse_sum": lambda r: r.median("mse_sum"),
    WITHOUT_LAYERS: lambda r: r.median("mse_without_layers"),
    "paper": lambda r: None if r.printed is None else r.printed.value,
    "paper's model": lambda r: _printed_of(r.printed),
    "paper's coordinates": lambda r: (r.printed and r.printed.setting) or None,
    "verdict": lambda r: r.verdict,
    "training [s]": lambda r: _seconds(r.median("train_seconds")),
    "compiling [s]": lambda r: _seconds(r.compile_seconds),
    "paper [s]": lambda r: None if r.printed_time is None else f"{r.printed_time.value:g}",
    "paper's": lambda r: _printed_of(r.printed_time),
    "paper / training": lambda r: _seconds(_ratio(r)),
    "updates": lambda r: None if (count := r.median("updates")) is None else round(count),
    "front": lambda r: r.on_front,
}
_WHO = ("model", "integrator", "recipe")
_ERRORS = (
    *("mse", *OVER_SEEDS, "mse_id", "mse_ood", "mse_sum", WITHOUT_LAYERS),
    *("paper", "paper's model", "verdict"),
)
ABOUT_ERRORS = (
    "mse is the mean over components and over every step of the rollout, training range included, "
    "as in the paper's table; mse_id is over the training range alone, mse_ood over what follows "
    "it, and mse_sum is summed over components, as in the paper's formula. All are medians over "
    "the seeds.",
    f"Verdicts: a median within a factor of {SAME:g} of the printed value is 'reproduced'. Where "
    f"the paper prints none, an NRMSE (root-mean-square error / standard deviation) below "
    f"{100 * ACCURATE:g} % is 'accurate'. What is below {as_printed(ROUND_OFF, 1)} is round-off.",
)
_ABOUT_LAYERS = (
    f"'{WITHOUT_LAYERS}' is of networks with an affine function beside their layers: the error of "
    "the same rollout with the last layer's weights at zero. Where that is accurate, the affine "
    "part says nearly all, and the model is called 'affine'."
)
_COMPILING = (
    "The time to compile is the maximum over the seeds; what an earlier run of the same process "
    "has compiled is not compiled again, and not counted again."
)


def _table(
    results: Iterable[Result],
    headings: Sequence[str],
    *,
    title: str,
    label: str = "",
    name: str = "",
    notes: Sequence[str] = (),
) -> Table:
    """These columns of these results; that of errors without layers where there are some."""
    rows = tuple(tuple(COLUMNS[heading](result) for heading in headings) for result in results)
    table = Table(label, title, tuple(headings), rows, tuple(notes), name)
    if WITHOUT_LAYERS not in headings:
        return table
    place = headings.index(WITHOUT_LAYERS)
    if all(row[place] is None for row in rows):
        return without_columns(table, [WITHOUT_LAYERS])
    return replace(table, notes=(*table.notes, _ABOUT_LAYERS))


def judged(results: Iterable[Result]) -> list[Result]:
    """What the table of errors has a row for, in the paper's order, then what it does not print.

    Numbers that the paper prints in a table of one case alone stand in that.
    """
    return _in_order(
        (r, r.printed)
        for r in results
        if r.printed is None or ERRORS in (r.printed.tables or (ERRORS,))
    )


def _in_order(results: Iterable[tuple[Result, Reference | None]]) -> list[Result]:
    """In the order of the cases, and of the numbers that the paper prints of them."""
    found = list(results)
    cases = list(dict.fromkeys(result.case.name for result, _ in found))

    def place(one: tuple[Result, Reference | None]) -> tuple[int, int]:
        (result, printed), references = one, one[0].case.references
        number = len(references) if printed is None else references.index(printed)
        return cases.index(result.case.name), number

    return [result for result, _ in sorted(found, key=place)]


def error_table(reproduction: Reproduction, *, laws: bool | None = None) -> Table:
    """Every error, the paper's beside it, and the verdict; of laws, of the others, or of all."""
    chosen = [r for r in reproduction.results if laws is None or r.is_law == laws]
    failures = [f"{r.case.title}: {failure}" for r in chosen for failure in r.failures]
    columns = ("case", *_WHO, *_ERRORS)
    if laws:
        about = {"title": ABOUT_LAWS, "name": LAWS, "notes": ABOUT_ERRORS}
        return _table(judged(chosen), columns, **about)
    notes = (*_left_out(reproduction.chapters, chosen), *ABOUT_ERRORS, *failures)
    title = "Errors of all models on all cases"
    return _table(judged(chosen), columns, title=title, label=ERRORS, notes=notes)


def error_tables(reproduction: Reproduction) -> tuple[Table, ...]:
    """The table of errors, and that of laws apart from it where there are networks too."""
    if len({result.is_law for result in reproduction.results}) < 2:
        return (error_table(reproduction),)
    return tuple(error_table(reproduction, laws=laws) for laws in (False, True))


def _left_out(chapters: Sequence[Chapter], results: Sequence[Result]) -> tuple[str, ...]:
    """How many of the paper's numbers have no run to be compared with, and what makes them."""
    every = [(c.case.name, r) for c in chapters for r in c.case.references]
    answered = [
        (result.case.name, found)
        for result in results
        for found in (result.printed, result.printed_time)
    ]
    missing = [reference for case, reference in every if (case, reference) not in answered]
    if not missing:
        return ()
    models = dict.fromkeys(model_title(reference.model) for reference in missing)
    return (
        f"Of the paper's {len(every)} errors and times of these cases, {len(missing)} are of "
        f"models or integrators that were not run here ({', '.join(models)}), and have no row: "
        "'mbdnode reproduce --out results' runs all of them.",
    )


def results_table(chapter: Chapter) -> Table:
    """The errors of one chapter; of the single mass-spring the paper's own table, if it was run."""
    own = mass_spring_table(chapter)
    if own.rows:
        return own
    shown = sorted(judged(chapter.results), key=lambda result: result.is_law)
    table = _table(shown, (*_WHO, *_ERRORS), title=f"{chapter.case.title}: errors", label=ERRORS)
    return replace(table, notes=())


def mass_spring_table(chapter: Chapter) -> Table:
    """The single mass-spring's own table: five combinations of model and integrator."""
    of_table = ((r, r.printed) for r in chapter.results if r.printed)
    return _table(
        _in_order((result, one) for result, one in of_table if MASS_SPRING in one.tables),
        (*_WHO, *_ERRORS[:-1], "paper's coordinates", _ERRORS[-1]),
        title=f"{chapter.case.title}: models and integrators",
        label=MASS_SPRING,
        notes=chapter.failures,
    )


def study_table(chapters: Sequence[Chapter]) -> Table | None:
    """What models were asked besides: other initial states, forces, control; each with its verdict.

    None where nothing was asked.
    """
    rows = tuple(
        (
            study.trial.title,
            study.trial.figure,
            study.trial.setting if isinstance(study.trial, ControlTask) else None,
            *(COLUMNS[name](result) for name in _WHO),
            study.mse,
            None if study.nrmse is None else f"{100 * study.nrmse:.2g}",
            study.verdict,
        )
        for chapter in chapters
        for trial in chapter.case.trials
        for result in chapter.results
        for study in result.studies
        if study.trial.name == trial.name
    )
    if not rows:
        return None
    table = Table(
        "",
        "Studies" if len(chapters) > 1 else f"{chapters[0].case.title}: studies",
        ("study", "figure", CONTROLLER, *_WHO, "mse", "NRMSE [%]", "verdict"),
        rows,
        (
            "Of these the paper prints figures at most, and no number. NRMSE is the "
            "root-mean-square error over the standard deviation of the motion, each position and "
            f"velocity alike; below {100 * ACCURATE:g} % is 'accurate'.",
        ),
        name=STUDIES,
    )
    return table if any(row[2] for row in rows) else without_columns(table, [CONTROLLER])


def time_table(reproduction: Reproduction) -> Table:
    """Seconds of training: the paper's, and ours with the time to compile apart."""
    timed = _in_order(
        (result, result.printed_time)
        for result in reproduction.results
        if result.printed_time or result.median("train_seconds")
    )
    columns = ("case", *_WHO, "training [s]", "compiling [s]", "paper [s]", "paper's")
    table = _table(
        timed,
        (*columns, "paper / training"),
        title="Seconds of training",
        label=TIMES,
        notes=(
            "Medians over the seeds. The paper's machine is another one, so the ratio says how "
            "long one waits and not how good the code is; a law takes the place of the paper's "
            "MBD-NODE.",
            _COMPILING,
            *_shortened_note(reproduction),
        ),
    )
    return replace(
        table, headings=tuple("paper's model" if h == "paper's" else h for h in table.headings)
    )


def cost_table(reproduction: Reproduction) -> Table:
    """Error, training time and compile time of every model and recipe on every case."""
    return _table(
        [result for result in reproduction.results if result.recipe != UNTRAINED],
        (
            *("case", "model", "recipe", "integrator", "mse", *OVER_SEEDS),
            *("training [s]", "compiling [s]", "updates", "front"),
        ),
        title=ABOUT_COSTS,
        name=COSTS,
        notes=(
            "mse, time to train and updates are medians over the seeds. On the Pareto front is "
            "what no other method beats in both error and time to train on the same case.",
            _COMPILING,
            *_shortened_note(reproduction),
        ),
    )


def _shortened_note(reproduction: Reproduction) -> tuple[str, ...]:
    if not reproduction.quick:
        return ()
    return ("Runs were shortened, so their times are not those of their recipes.",)
