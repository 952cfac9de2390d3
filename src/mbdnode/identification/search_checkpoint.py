"""What a search has finished so far, in a folder, so that a killed one loses no more than the part
under way.

Every expensive part of a search is a call without side effects: fit a candidate, measure its error,
propose the laws of a form. Its result is kept under a name. When the same search runs again, what
is kept is read in place of computed; models and numbers come back to the bit, so what follows from
them does too. The names are those of one search over one set of data: whoever gives the folder must
see to it that both are the same (`mbdnode.workflow.resume_fit` does).

The same parts may be computed before they are asked for (`ahead`), by the workers of a cluster or
by threads of this process, which are given only what will be asked for. They are asked for in the
order of one process, and what is not asked for is cancelled, so where a part was computed changes
neither the result nor what is kept.

Numbers and words go to a journal, a line for each, whose last line may be torn; models and arrays
to files of their own, which are whole or not there.
"""

import copy
import json
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeVar

import numpy as np

from mbdnode.errors import UserError
from mbdnode.models.files import load, read_arrays, save, write_arrays
from mbdnode.parallel import Workers, workers
from mbdnode.training.checkpoint import Checkpoint

T = TypeVar("T")

_JOURNAL = "values.jsonl"
_NONE = {"none": True}


class SearchCheckpoint:
    """Results by name.

    **Arguments:**

    - `folder`: where they are kept, made when the first is; None to keep nothing.
    """

    def __init__(self, folder: Path | None = None):
        self.folder = folder
        self._workers: Workers | None = None
        # By name, also those of the parts of the search: the call that computes it, and its place
        # in what that call returns.
        self._ahead: dict[str, tuple[Future[Any], int | None]] = {}
        self._part = ""
        self._values: dict[str, Any] = {} if folder is None else _read_journal(folder / _JOURNAL)

    def inside(self, name: str) -> "SearchCheckpoint":
        """The results of a part of the search, which has names of its own and the same workers."""
        part = SearchCheckpoint(None if self.folder is None else self.folder / name)
        part._workers, part._ahead = self._workers, self._ahead
        part._part = f"{self._part}{name}/"
        return part

    def on(self, workers: Workers) -> "SearchCheckpoint":
        """The same results, some of which workers compute ahead."""
        part = copy.copy(self)
        part._workers, part._ahead = workers, {}
        return part

    @property
    def speculative(self) -> int:
        """How many workers may compute what is perhaps never asked for: those of a cluster."""
        workers = self._workers
        return 0 if workers is None or workers.client is None else workers.count

    def share(self, *values: Any) -> None:
        """As `Workers.share`, for `ahead`."""
        if self._workers is not None:
            self._workers.share(*values)

    def ahead(self, names: str | Sequence[str], function: Callable[..., Any], *args: Any) -> None:
        """Have a worker compute a result that may be asked for later.

        A function of several names returns one result for each. Nothing is done where there are no
        workers, the first result is kept, or its call was made.
        """
        every = [names] if isinstance(names, str) else names
        own = [self._part + name for name in every]
        if self._workers is None or own[0] in self._ahead or self._is_kept(every[0]):
            return
        future = self._workers.submit(function, *args)
        for place, name in enumerate(own):
            self._ahead[name] = future, None if isinstance(names, str) else place

    def _is_kept(self, name: str) -> bool:
        return name in self._values or (self.folder is not None and self._path(name).is_file())

    def cancel_ahead(self) -> None:
        """What was submitted and is not asked for any more, so that names are free again."""
        for future, _ in self._ahead.values():
            future.cancel()
        self._ahead.clear()

    def checkpoint(self, name: str) -> Checkpoint | None:
        """Where the training of a network keeps its state, to go on from there."""
        if self.folder is None:
            return None
        self.folder.mkdir(parents=True, exist_ok=True)
        return Checkpoint(self.folder / f"{name}.safetensors", resume=True)

    def value(self, name: str, compute: Callable[[], T]) -> T:
        """Numbers, words, and lists of them."""
        if self.folder is None:
            return self._computed(name, compute)
        if name not in self._values:
            found = self._computed(name, compute)
            self._write_line(name, found)
            return found
        return self._values[name]

    def model(self, name: str, compute: Callable[[], T], system: Any) -> T:
        """A model, or None."""
        if self.folder is None:
            return self._computed(name, compute)
        return self._file(name, compute, save, lambda path: load(path, system))

    def arrays(self, name: str, compute: Callable[[], T]) -> T:
        """Arrays by name, or None."""
        if self.folder is None:
            return self._computed(name, compute)
        write = lambda found, path: write_arrays(path, found, {})  # noqa: E731
        return self._file(name, compute, write, lambda path: read_arrays(path)[0])

    def _computed(self, name: str, compute: Callable[[], T]) -> T:
        if self._workers is None or self._part + name not in self._ahead:
            return compute()
        future, place = self._ahead[self._part + name]
        found = self._workers.result(future)
        return found if place is None else found[place]

    def _path(self, name: str) -> Path:
        assert self.folder is not None
        return self.folder / f"{name}.safetensors"

    def _file(self, name: str, compute, write, read) -> Any:
        assert self.folder is not None
        if self._values.get(name) == _NONE:
            return None
        path = self._path(name)
        if path.is_file():
            try:
                return read(path)
            except UserError:
                pass  # A damaged disk, or a model that no file may hold: computed again.
        found = self._computed(name, compute)
        if found is None:
            self._write_line(name, _NONE)
            return None
        self.folder.mkdir(parents=True, exist_ok=True)
        write(found, path)
        return found

    def _write_line(self, name: str, found: Any) -> None:
        assert self.folder is not None
        self.folder.mkdir(parents=True, exist_ok=True)
        line = json.dumps({"name": name, "value": found}, default=_plain)
        with open(self.folder / _JOURNAL, "a", encoding="utf-8") as file:
            # A line that was torn when the last process died must not swallow this one.
            file.write(f"\n{line}\n")
        self._values[name] = found


def _plain(value: Any) -> Any:
    """What NumPy calls a number, as Python does."""
    return value.item() if isinstance(value, np.generic) else value.tolist()


def _read_journal(path: Path) -> dict[str, Any]:
    """Every whole line; JSON gives back numbers to the bit."""
    found = {}
    if path.is_file():
        for line in path.read_text(encoding="utf-8", errors="replace").splitlines():
            try:
                row = json.loads(line)
                found[row["name"]] = row["value"]
            except (ValueError, TypeError, KeyError):
                continue
    return found


# For searches that are not to go on.
NO_CHECKPOINT = SearchCheckpoint()


@contextmanager
def searching(kept: SearchCheckpoint, cluster: str | None) -> Iterator[SearchCheckpoint]:
    """What a search keeps, with the workers of a cluster as long as it lasts.

    **Arguments:**

    - `cluster`: the address of a Dask scheduler; None for the workers that it has, or none.
    """
    if cluster is None:
        yield kept
        return
    with workers(cluster) as crew:
        yield kept.on(crew)
