"""The paper's tables of errors and times, filled with our numbers and the verdicts on them."""

from collections.abc import Iterator

from mbdnode.evaluation.verdict import Reference, Verdict, is_answered_by, judge
from mbdnode.report.chapters import Chapter, Entry, Reproduction
from mbdnode.report.tables import Cell, Table
from mbdnode.report.titles import entry_title, integrator_title, model_title, short_number

ERRORS, MASS_SPRING, TIMES = "tab: model_errors", "tab:sms_test", "tab:time_cost"
_DEFAULT = {"mse": ERRORS, "train_seconds": TIMES}
NOT_RUN = "not run"
COMPILING = (
    "The time to compile is the greatest over the seeds; what an earlier run of the same process "
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
    """Every verdict on an error of the error table.

    **Arguments:**

    - `reproduction`: with all chapters.

    **Returns:**

    The chapter, the entry and the verdict on it, one after the other.
    """
    for chapter in reproduction.chapters:
        for reference in references_in(chapter, ERRORS):
            for entry in matching(chapter, reference):
                yield chapter, entry, judge(entry.every(), reference)


def error_table(reproduction: Reproduction) -> Table:
    """Every error that the paper prints, ours beside it, and the verdict.

    **Arguments:**

    - `reproduction`: with all chapters.

    **Returns:**

    A `Table`; failed runs are rows that say so.
    """
    rows: list[tuple[Cell, ...]] = []
    notes: list[str] = []
    for chapter in reproduction.chapters:
        for reference in references_in(chapter, ERRORS):
            found = _error_rows(chapter, reference)
            rows += [(chapter.title, *row) for row in found]
        rows += [
            (chapter.title, *_who(entry, None), *spread_cells(entry), "the paper prints none")
            for entry in _unprinted(chapter, ERRORS, MASS_SPRING)
        ]
        notes += [f"{chapter.title}: {failure}" for failure in failure_notes(chapter)]
    return Table(
        ERRORS,
        "Errors of all models on all cases",
        (
            "case",
            "model",
            "integrator",
            "paper",
            "recipe",
            "median",
            "least",
            "greatest",
            "seeds",
            "verdict",
        ),
        tuple(rows),
        (
            "Errors are the mean over components and over every step of the rollout, training "
            "range included. A median within a factor of three of the printed value is "
            "'reproduced'.",
            *notes,
        ),
    )


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
        (row[0], reference.setting or None, *row[1:])
        for reference in references
        for row in _error_rows(chapter, reference)
    ]
    return Table(
        MASS_SPRING,
        f"{chapter.title}: models and integrators",
        (
            "model",
            "coordinates",
            "integrator",
            "paper",
            "recipe",
            "median",
            "least",
            "greatest",
            "seeds",
            "verdict",
        ),
        tuple(rows),
        tuple(failure_notes(chapter)),
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
            who = (
                chapter.title,
                model_title(reference.model),
                integrator_title(reference.integrator),
            )
            paper = f"{reference.value:g}"
            entries = matching(chapter, reference)
            if not entries:
                rows.append((*who, paper, NOT_RUN, None, None, None))
            for entry in entries:
                rows.append((chapter.title, *_who(entry, paper), *_times(entry, reference)))
        rows += [
            (chapter.title, *_who(entry, None), *_times(entry))
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
            "paper [s]",
            "recipe",
            "training [s]",
            "compiling [s]",
            "paper / training",
        ),
        tuple(rows),
        (
            "Medians over the seeds. The paper's machine is another one, so the ratio says how "
            "long one waits and not how good the code is.",
            COMPILING,
            *shortened_note(reproduction),
        ),
    )


def failure_notes(chapter: Chapter) -> list[str]:
    """A sentence for every run that has no error."""
    return [
        f"{entry_title(entry, chapter)}, {failure}"
        for entry in chapter.entries
        for failure in entry.failures
    ]


def _error_rows(chapter: Chapter, reference: Reference) -> list[tuple[Cell, ...]]:
    entries = matching(chapter, reference)
    if not entries:
        who = (model_title(reference.model), integrator_title(reference.integrator))
        return [(*who, reference.value, NOT_RUN, None, None, None, None, None)]
    return [
        (*_who(entry, reference.value), *spread_cells(entry), judge(entry.every(), reference))
        for entry in entries
    ]


def _who(entry: Entry, printed: Cell) -> tuple[Cell, ...]:
    """Model and integrator as they ran, the paper's number, and the recipe."""
    return model_title(entry.model), integrator_title(entry.integrator), printed, entry.recipe


def _unprinted(chapter: Chapter, *labels: str) -> list[Entry]:
    """What we have run and the paper prints no number of in these tables."""
    printed = [reference for label in labels for reference in references_in(chapter, label)]
    return [
        entry
        for entry in chapter.entries
        if not any(_answers(chapter, entry, reference) for reference in printed)
    ]


def spread_cells(entry: Entry) -> tuple[Cell, ...]:
    """Of the error: median, least, greatest, and how many seeds have an error."""
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
    return ["Gradient descent was cut short, so its times are not those of the paper's recipe."]
