"""Playgrounds as HTML: a page of their own, or the section "Try it" of a report.

A report carries the code of its model, so that it answers what no figure of it shows: what happens
from another start, under another input. A model that cannot be printed as JavaScript has a sentence
that says why in place of a playground; the report itself never fails for it.
"""

import warnings
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from markupsafe import Markup

from mbdnode.errors import UserError
from mbdnode.report.html import asset, render, script_data, write_page
from mbdnode.report.playground import Play, Playground, make_playground

TITLE = "Try it"
_SCRIPTS = (
    "drawing_parts.js",
    "playground_charts.js",
    "playground_motion.js",
    "playground_stage.js",
    "playground_controls.js",
)


@dataclass(frozen=True)
class TryIt:
    """The section of one model: what it says above the playground, or why there is none."""

    key: str
    text: str
    playground: Playground | None = None
    compared: bool = False

    @property
    def html(self) -> Markup:
        """The text and the place of the playground."""
        above = Markup("<p>{}</p>\n").format(self.text)
        if self.playground is None:
            return above
        return above + _place(self.key, self.compared, whole=False)


def make_try_it(play: Play, key: str) -> TryIt:
    """The section of a model, by a `key` that no other section of the page has.

    It warns of a mistake of ours: a report that took hours must not be lost to it.
    """
    try:
        made = make_playground(play, key=key)
    except UserError as error:
        return TryIt(key, f"The {play.label} cannot run in this page. {error}")
    except Exception as error:
        said = f"{type(error).__name__}: {error}"
        warnings.warn(f"The section {TITLE!r} was left out: {said}", stacklevel=2)
        return TryIt(key, f"The {play.label} cannot run in this page, by a mistake of ours: {said}")
    text = f"{_told(play, made)} It is the model's own code, in JavaScript, and needs no network."
    return TryIt(key, text, made, play.truth is not None)


def _told(play: Play, made: Playground) -> str:
    """What moves, and what can be done with it."""
    if play.truth is not None:
        moves = f"The mechanism and the {play.label} that was learned, from the same start."
    else:
        moves = f"The {play.label}, computed in this page."
    if made.data["scene"] is None:
        return f"{moves} Set its start with the sliders."
    return f"{moves} Drag it, throw it{', drive it' if made.data['inputs'] else ''}."


def _place(key: str, compared: bool, *, whole: bool) -> Markup:
    return Markup(render("playground_section.html.j2", key=key, compared=compared, whole=whole))


def playground_css(sections: Sequence[TryIt]) -> str:
    """The style of playgrounds, where there is one."""
    return asset("playground.css") if any(one.playground for one in sections) else ""


def playground_scripts(sections: Sequence[TryIt], without: Collection[str] = ()) -> Markup:
    """All that playgrounds need at the end of a page, `without` the scripts that it has already."""
    found = {one.key: one.playground for one in sections if one.playground is not None}
    if not found:
        return Markup("")
    data = script_data({key: one.data for key, one in found.items()})
    texts = [_programs(found.values()), *(asset(name) for name in _SCRIPTS if name not in without)]
    first = f'<script type="application/json" id="plays-data">{data}</script>'
    return Markup("\n".join([first, *(f"<script>{text}</script>" for text in texts)]))


def _programs(playgrounds: Any) -> str:
    """The programs of playgrounds as one script, each made when it is first asked for."""
    lines = ["window.mbdnodePrograms = {"]
    for one in playgrounds:
        for key, (source, name) in one.programs.items():
            # No text of a program can end the script that it stands in, or hide the rest of it.
            safe = source.replace("</", "<\\/").replace("<!--", "<\\!--")
            lines.append(f"{script_data(key)}() {{ {safe}\nreturn {name}; }},")
    return "\n".join([*lines, "};"])


def make_play_page(play: Play) -> str:
    """A page with nothing but a playground; `UserError` for a model that cannot be exported."""
    made = make_playground(play, whole=True)
    compared = play.truth is not None
    section = TryIt("play", "", made, compared)
    return render(
        "playground_page.html.j2",
        css=Markup(asset("page.css") + playground_css([section])),
        title=play.title,
        lead=_told(play, made),
        playground=_place(section.key, compared, whole=True),
        scripts=playground_scripts([section]),
    )  # fmt: skip


def write_play_page(play: Play, path: Path) -> None:
    """Write the page; an existing file is replaced whole or not at all."""
    write_page(make_play_page(play), path)
