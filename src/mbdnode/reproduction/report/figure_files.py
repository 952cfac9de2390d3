"""The report's figures as files, drawn here or by another process meanwhile."""

import io
import multiprocessing
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import numpy as np
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.backends.backend_pdf import FigureCanvasPdf
from matplotlib.figure import Figure
from PIL import Image

from mbdnode.cluster import ignore_interrupts
from mbdnode.data.files import replace_file
from mbdnode.report.style import styled
from mbdnode.reproduction.reference import Exhibit
from mbdnode.reproduction.report.chapters import Chapter, Reproduction, file_name
from mbdnode.reproduction.report.figures import draw_exhibit

_DPI = 120


class Pictures(Mapping[tuple[str, str], bytes]):
    """The PNG of each figure by the chapter's name and the label; what is asked for is awaited."""

    def __init__(self, made: Mapping[tuple[str, str], Callable[[], bytes]]):
        self._made = made

    def __getitem__(self, key: tuple[str, str]) -> bytes:
        return self._made[key]()

    def __iter__(self) -> Iterator[tuple[str, str]]:
        return iter(self._made)

    def __len__(self) -> int:
        return len(self._made)


@contextmanager
def drawn_figures(
    reproduction: Reproduction, directory: Path, *, elsewhere: bool
) -> Iterator[Pictures]:
    """Draw all figures and write their files, which are there at the end of the `with`.

    **Arguments:**

    - `reproduction`: what was run.
    - `directory`: of the files.
    - `elsewhere`: whether another process draws them while this one goes on.
    """
    asked = {}
    taken: list[str] = []
    for chapter in reproduction.chapters:
        # What is sent to the other process; a page to play with is none of its figures.
        shown = replace(chapter, play=None)
        for exhibit in chapter.exhibits:
            taken.append(free_name(exhibit.label, chapter.name, taken))
            asked[chapter.name, exhibit.label] = (shown, exhibit, directory / taken[-1])
    if not elsewhere:
        made = {key: _write_exhibit(*given) for key, given in asked.items()}
        yield Pictures({key: lambda png=png: png for key, png in made.items()})
        return
    # JAX does not survive a fork.
    kind = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(1, mp_context=kind, initializer=ignore_interrupts) as process:
        under_way = {key: process.submit(_write_exhibit, *given) for key, given in asked.items()}
        try:
            yield Pictures({key: one.result for key, one in under_way.items()})
            for one in under_way.values():
                one.result()
        finally:
            process.shutdown(cancel_futures=True)


def _write_exhibit(chapter: Chapter, exhibit: Exhibit, path: Path) -> bytes:
    return write_figure(draw_exhibit(chapter, exhibit), path)


def write_figure(figure: Figure, path: Path) -> bytes:
    """Both files, of which the PNG is returned."""
    png = _as_png(figure)
    pdf = _as_pdf(figure)
    for kind, content in (("png", png), ("pdf", pdf)):
        whole = path.with_name(f"{path.name}.{kind}")
        replace_file(whole, lambda file, content=content: file.write(content))
    return png


def free_name(label: str, more: str, taken: list[str]) -> str:
    """A label's file name; with more behind it where another case has the same label."""
    name = file_name(label)
    return file_name(f"{label} {more}", taken) if name in taken else file_name(label, taken)


def _as_png(figure: Figure) -> bytes:
    """Drawn once. `savefig` would do it twice, the first time only to find the size."""
    figure.set_dpi(_DPI)
    canvas = FigureCanvasAgg(figure)
    content = io.BytesIO()
    with styled():
        canvas.draw()
    Image.fromarray(np.asarray(canvas.buffer_rgba())).convert("RGB").save(
        content, format="png", dpi=(_DPI, _DPI)
    )
    return content.getvalue()


def _as_pdf(figure: Figure) -> bytes:
    """After `_as_png` has laid everything out, which is kept; no date, so that files repeat."""
    figure.set_layout_engine("none")
    content = io.BytesIO()
    with styled():
        FigureCanvasPdf(figure).print_pdf(content, metadata={"CreationDate": None})
    return content.getvalue()
