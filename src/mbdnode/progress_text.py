"""What there is to say of a training, a search or a loop that is under way, and of what is left."""

from typing import Any


def counted(stage: str, done: int, total: int) -> str:
    """Which one it is, of how many; a search ends with the first candidate that is good enough."""
    if not done:
        return f"{total:,} {stage if total == 1 else stage + 's'} to go"
    if stage == "candidate" and done < total:
        return f"{stage} {done:,}, at most {total - done:,} more"
    return f"{stage} {done:,}" if stage == "candidate" else f"{stage} {done:,} of {total:,}"


class TrainingRows:
    """What there is to say of every row of a training or a search."""

    def __init__(self) -> None:
        self._told = ""
        # Of rows that take alike: what they are of, the number of the last one, and the time and
        # number of the first one, which took the compilation and says nothing of the others.
        self._alike: tuple | None = None
        self._seen, self._first = 0, (0.0, 0)

    def hear(self, row: dict[str, Any], total: int, now: float) -> tuple[str, str]:
        """What is tried from now on, empty if that is known; and how far it is.

        The row is as `fit` and `identify` report it, `total` is of how many at most, `now` is in
        seconds by any clock.
        """
        done, model = int(row["epoch"]) + 1, row.get("model", "")
        new = f"training the chosen {model}" if row.get("chosen") else f"trying a {model}"
        told = f"{new}: {row['why']}" if model and new != self._told else ""
        self._told = new if model else self._told
        kind = (model, row.get("stage"), total, row["learning_rate"] > 0)
        if kind != self._alike or done <= self._seen:
            self._alike, self._first = kind, (now, done)
        self._seen = done
        if "stage" in row:  # Of a regression, whose stages take different times.
            kind = "error" if "unit" in row else "min validation NRMSE"
            error = f"{kind} {row['loss']:.1e}{row.get('unit', '')}"
            return told, f"{counted(row['stage'], done, total)}, {error}"
        first, number = self._first
        each = (now - first) / max(done - number, 1)
        left = f", at most {each * (total - done):.0f} s left" if done > number else ""
        # All are counted together: those of candidates, epochs, and iterations of the refinement.
        part = f"{row['part']}, " if "part" in row else ""
        if row["learning_rate"] > 0:
            step = "step" if part else "epoch"
            rate = f", rate {row['learning_rate']:.2e}"
        else:
            step, rate = "refinement, step", ""
        return told, (
            f"{model + ', ' if model else ''}{part}{step} {done:,} of {total:,}, "
            f"loss {row['loss']:.3e}{rate}{left}"
        )
