"""The paper's tables of errors and times, filled with our numbers and the verdicts on them.

A printed number stands beside what it is of, since a recipe may have another integrator than the
paper's, and a law is compared with the paper's MBD-NODE.
"""

from collections.abc import Iterator, Sequence
from dataclasses import replace

from mbdnode.formatting import ROUND_OFF, as_printed, short_number
from mbdnode.recipes import LAW
from mbdnode.report.tables import Cell, Table, Verdict, without_columns
from mbdnode.reproduction.reference import (
    ACCURATE,
    SAME,
    Reference,
    is_answered_by,
    judge_printed,
    judge_unprinted,
    median_of_all,
)
from mbdnode.reproduction.report.chapters import (
    Chapter,
    Entry,
    Reproduction,
    Study,
    entry_title,
    integrator_title,
    model_title,
)

ERRORS, MASS_SPRING, TIMES = "tab: model_errors", "tab:sms_test", "tab:time_cost"
_DEFAULT = {"mse": ERRORS, "train_seconds": TIMES}
STUDIES, CONTROLLER = "studies", "controller"
# What laws are to a paper on networks.
BEYOND, ABOUT_LAWS = "laws", "Beyond the paper: laws found by regression, without a network"
WITHOUT_LAYERS = "mse without layers"
# What both tables of errors have in common.
_ERRORS = (
    "recipe",
    "mse",
    "min",
    "max",
    "seeds",
    "mse_id",
    "mse_ood",
    "mse_sum",
    WITHOUT_LAYERS,
    "paper",
    "paper's model",
    "verdict",
)
OVER_SEEDS = ("min", "max", "seeds")
_COMPANIONS = ("mse_id", "mse_ood", "mse_sum", "mse_without_layers")
ABOUT_ERRORS = (
    "mse is the mean over components and over every step of the rollout, training range included, "
    "as in the paper's table; mse_id is over the training range alone, mse_ood over what follows "
    "it, and mse_sum is summed over components, as in the paper's formula. All are medians over "
    "the seeds.",
    f"Verdicts: a median within a factor of {SAME:g} of the printed value is 'reproduced'. Where "
    f"the paper prints none, an NRMSE (root-mean-square error / standard deviation) below "
    f"{100 * ACCURATE:g} % is 'accurate'. What is below {as_printed(ROUND_OFF, 1)} is round-off.",
)
ABOUT_LAYERS = (
    f"'{WITHOUT_LAYERS}' is of networks with an affine function beside their layers: the error of "
    "the same rollout with the last layer's weights at zero. Where that is accurate, the affine "
    "part says nearly all, and the model is called 'affine'."
)
COMPILING = (
    "The time to compile is the maximum over the seeds; what an earlier run of the same process "
    "has compiled is not compiled again, and not counted again."
)


def references_in(chapter: Chapter, label: str) -> list[Reference]:
    """The paper's numbers of a chapter that the table with this label prints."""
    return [r for r in chapter.references if label in (r.tables or (_DEFAULT[r.quantity],))]


def matching(chapter: Chapter, reference: Reference) -> list[Entry]:
    """What we have run of what the paper's number is of: one entry for each recipe."""
    return [entry for entry in chapter.entries if _answers(chapter, entry, reference)]


def _answers(chapter: Chapter, entry: Entry, reference: Reference) -> bool:
    """Whether an entry is to be compared with a printed number.

    A recipe that chooses its own integrator is compared with the time of the model whose error it
    is compared with.
    """
    names = (entry.model, entry.integrator, entry.recipe)
    if reference.quantity == "mse" or entry.is_papers:
        return is_answered_by(reference, chapter.references, *names)
    errors = [r for r in chapter.references if r.quantity == "mse" and r.model == reference.model]
    return any(
        r.integrator == reference.integrator and is_answered_by(r, chapter.references, *names)
        for r in errors
    )


def judged(reproduction: Reproduction) -> Iterator[tuple[Chapter, Entry, Verdict]]:
    """Every verdict of the error table.

    **Arguments:**

    - `reproduction`: with all chapters.

    **Returns:**

    The chapter, the entry and the verdict on it, one after the other.
    """
    for chapter in reproduction.chapters:
        for reference in references_in(chapter, ERRORS):
            for entry in matching(chapter, reference):
                yield chapter, entry, judge_printed(entry.every(), reference)
        for entry in _unprinted(chapter, ERRORS, MASS_SPRING):
            yield chapter, entry, judge_unprinted(entry.every("nrmse"))


def judged_studies(
    chapters: Sequence[Chapter],
) -> Iterator[tuple[Chapter, Study, Entry, Verdict]]:
    """Every verdict on what models were asked besides the motion of their case.

    **Arguments:**

    - `chapters`: whose studies.

    **Returns:**

    The chapter, the study, the entry and the verdict on it, one after the other. A model that
    cannot be asked (no forces, one start) has none.
    """
    for chapter in chapters:
        for study in chapter.studies:
            for entry in chapter.entries:
                if any(study.name in row.get("probes", {}) for row in entry.rows):
                    errors = entry.every_probe(study.name, "nrmse")
                    yield chapter, study, entry, judge_unprinted(errors)


def error_tables(reproduction: Reproduction) -> tuple[Table, ...]:
    """The table of errors, and that of laws apart from it where there are networks too.

    **Arguments:**

    - `reproduction`: with all chapters.

    **Returns:**

    One `Table` or two.
    """
    networks, laws = (
        [replace(c, entries=tuple(e for e in c.entries if is_law(e) == wanted)) for c in every]
        for every, wanted in ((reproduction.chapters, False), (reproduction.chapters, True))
    )
    if not all(any(chapter.entries for chapter in some) for some in (networks, laws)):
        return (error_table(reproduction),)
    found = error_table(replace(reproduction, chapters=tuple(laws)))
    return (
        error_table(replace(reproduction, chapters=tuple(networks))),
        replace(found, label="", name=BEYOND, title=ABOUT_LAWS, notes=ABOUT_ERRORS),
    )


def is_law(entry: Entry) -> bool:
    """Whether it was found by regression."""
    return entry.model == LAW


def error_table(reproduction: Reproduction) -> Table:
    """Every error that the paper prints, ours beside it, and the verdict.

    **Arguments:**

    - `reproduction`: with all chapters.

    **Returns:**

    A `Table`; failed runs are rows that say so, and a note names what was not run.
    """
    rows: list[tuple[Cell, ...]] = []
    notes: list[str] = []
    for chapter in reproduction.chapters:
        found = [
            row
            for reference in references_in(chapter, ERRORS)
            for row in _error_rows(chapter, reference)
        ]
        for entry in _unprinted(chapter, ERRORS, MASS_SPRING):
            verdict = judge_unprinted(entry.every("nrmse"))
            found.append(
                (*_who(entry), *seed_cells(entry), *_companions(entry), None, None, verdict)
            )
        rows += [(chapter.title, *row) for row in found]
        notes += [f"{chapter.title}: {failure}" for failure in failure_notes(chapter)]
    return _with_layers(
        Table(
            ERRORS,
            "Errors of all models on all cases",
            ("case", "model", "integrator", *_ERRORS),
            tuple(rows),
            (*_left_out(reproduction.chapters), *ABOUT_ERRORS, *notes),
        )
    )


def _with_layers(table: Table) -> Table:
    """The table with what the errors without layers are, or without them where there are none."""
    place = table.headings.index(WITHOUT_LAYERS)
    if all(row[place] is None for row in table.rows):
        return without_columns(table, [WITHOUT_LAYERS])
    return replace(table, notes=(*table.notes, ABOUT_LAYERS))


def study_table(chapters: Sequence[Chapter]) -> Table | None:
    """What models were asked besides: other initial states, forces, control; each with its verdict.

    **Arguments:**

    - `chapters`: whose studies.

    **Returns:**

    A `Table`; None where nothing was asked.
    """
    rows = tuple(
        (
            study.title,
            study.figure,
            study.setting or None,
            *_who(entry),
            median_of_all(entry.every_probe(study.name, "mse")),
            _percent(median_of_all(entry.every_probe(study.name, "nrmse"))),
            verdict,
        )
        for _, study, entry, verdict in judged_studies(chapters)
    )
    if not rows:
        return None
    several = len(chapters) > 1
    who = ("model", "integrator", "recipe")
    table = Table(
        "",
        "Studies" if several else f"{chapters[0].title}: studies",
        ("study", "figure", CONTROLLER, *who, "mse", "NRMSE [%]", "verdict"),
        rows,
        (
            "Of these the paper prints figures at most, and no number. NRMSE is the "
            "root-mean-square error over the standard deviation of the motion, each position and "
            f"velocity alike; below {100 * ACCURATE:g} % is 'accurate'.",
        ),
        name=STUDIES,
    )
    return table if any(row[2] for row in rows) else without_columns(table, [CONTROLLER])


def _percent(part: float | None) -> Cell:
    return None if part is None else f"{100 * part:.2g}"


def mass_spring_table(chapter: Chapter) -> Table:
    """The single mass-spring's own table: five combinations of model and integrator.

    **Arguments:**

    - `chapter`: of the single mass-spring.

    **Returns:**

    A `Table`.
    """
    named = references_in(chapter, MASS_SPRING)
    references = named or [r for r in chapter.references if r.quantity == "mse"]
    rows = [
        (*row[:-1], reference.setting or None, row[-1])
        for reference in references
        for row in _error_rows(chapter, reference)
    ]
    return _with_layers(
        Table(
            MASS_SPRING,
            f"{chapter.title}: models and integrators",
            ("model", "integrator", *_ERRORS[:-1], "paper's coordinates", _ERRORS[-1]),
            tuple(rows),
            tuple(failure_notes(chapter)),
        )
    )


def time_table(reproduction: Reproduction) -> Table:
    """Seconds of training: the paper's, and ours with the time to compile apart.

    **Arguments:**

    - `reproduction`: with all chapters.

    **Returns:**

    A `Table`.
    """
    rows: list[tuple[Cell, ...]] = []
    for chapter in reproduction.chapters:
        for reference in references_in(chapter, TIMES):
            entries = matching(chapter, reference)
            paper = (f"{reference.value:g}", _printed_of(reference))
            for entry in entries:
                training, compiling, ratio = _times(entry, reference)
                rows.append((chapter.title, *_who(entry), training, compiling, *paper, ratio))
        rows += [
            (chapter.title, *_who(entry), *_times(entry)[:2], None, None, None)
            for entry in _unprinted(chapter, TIMES)
            if entry.median("train_seconds")
        ]
    return Table(
        TIMES,
        "Seconds of training",
        (
            "case",
            "model",
            "integrator",
            "recipe",
            "training [s]",
            "compiling [s]",
            "paper [s]",
            "paper's model",
            "paper / training",
        ),
        tuple(rows),
        (
            "Medians over the seeds. The paper's machine is another one, so the ratio says how "
            "long one waits and not how good the code is; a law takes the place of the paper's "
            "MBD-NODE.",
            COMPILING,
            *shortened_note(reproduction),
        ),
    )


def _left_out(chapters: Sequence[Chapter]) -> tuple[str, ...]:
    """How many of the paper's numbers have no run to be compared with, and what makes them."""
    printed = [(chapter, reference) for chapter in chapters for reference in chapter.references]
    missing = [(c, r) for c, r in printed if not matching(c, r)]
    if not missing:
        return ()
    models = dict.fromkeys(model_title(reference.model) for _, reference in missing)
    return (
        f"Of the paper's {len(printed)} errors and times of these cases, {len(missing)} are of "
        f"models or integrators that were not run here ({', '.join(models)}), and have no row: "
        "'mbdnode reproduce --out results' runs all of them.",
    )


def failure_notes(chapter: Chapter) -> list[str]:
    """A sentence for every run that has no error."""
    return [
        f"{entry_title(entry, chapter)}, {failure}"
        for entry in chapter.entries
        for failure in entry.failures
    ]


def _error_rows(chapter: Chapter, reference: Reference) -> list[tuple[Cell, ...]]:
    entries, paper = matching(chapter, reference), (reference.value, _printed_of(reference))
    return [
        (
            *_who(entry),
            *seed_cells(entry),
            *_companions(entry),
            *paper,
            judge_printed(entry.every(), reference),
        )
        for entry in entries
    ]


def _printed_of(reference: Reference) -> str:
    """What a printed number is of."""
    name = f"{model_title(reference.model)} {integrator_title(reference.integrator)}"
    return name.removesuffix(" -")


def _who(entry: Entry) -> tuple[Cell, ...]:
    """Model and integrator as they ran, and the recipe."""
    return entry.title, integrator_title(entry.integrator), entry.recipe


def _companions(entry: Entry) -> tuple[Cell, ...]:
    """The error inside the training range, after it, and by the paper's formula."""
    return tuple(entry.median(quantity) for quantity in _COMPANIONS)


def _unprinted(chapter: Chapter, *labels: str) -> list[Entry]:
    """What we have run and the paper prints no number of in these tables."""
    printed = [reference for label in labels for reference in references_in(chapter, label)]
    return [
        entry
        for entry in chapter.entries
        if not any(_answers(chapter, entry, reference) for reference in printed)
    ]


def seed_cells(entry: Entry) -> tuple[Cell, ...]:
    """Of the error: median, min, max, and how many seeds have an error."""
    found, count = entry.values(), len(entry.rows)
    seeds = str(count) if len(found) == count else f"{len(found)} of {count}"
    if not found:
        return None, None, None, seeds
    return entry.median(), min(found), max(found), seeds


def _times(entry: Entry, reference: Reference | None = None) -> tuple[Cell, ...]:
    training, compiling = entry.median("train_seconds"), entry.compile_seconds
    ratio = reference.value / training if reference is not None and training else None
    return tuple(None if n is None else short_number(n) for n in (training, compiling, ratio))


def shortened_note(reproduction: Reproduction) -> list[str]:
    """The warning that belongs below times of shortened runs."""
    if not reproduction.quick:
        return []
    return ["Runs were shortened, so their times are not those of their recipes."]
