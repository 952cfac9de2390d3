"""Named parts of a mechanism file: its tables, their names, and the keys of one part."""

from dataclasses import dataclass
from typing import Any

from mbdnode.errors import UserError
from mbdnode.mechanisms.planar.description import GROUND
from mbdnode.mechanisms.toml_files.key_lines import Path
from mbdnode.mechanisms.toml_files.values import Key, Source, check_name, check_table, read_keys
from mbdnode.naming import unknown_name

# No mechanism needs more, and every one of them is compiled.
_MOST_PARTS = 1_000
# What to do with a file that is not TOML.
WAY_OUT = "Correct that line; docs/how-to/mechanism-files.md shows how a mechanism is written."


@dataclass(frozen=True)
class PartKeys:
    """The keys of a kind of part; `choice` is the key that decides between several sets.

    **Arguments:**

    - `word`: for one of them.
    - `keys`: those of each type; a single set has the empty type.
    - `choice`: "type", "motion" or "".
    """

    word: str
    keys: dict[str, tuple[Key, ...]]
    choice: str = ""


Tables = dict[str, dict[str, Any]]


def read_tables(
    source: Source,
    data: dict[str, Any],
    top: tuple[Key, ...],
    kinds: dict[str, PartKeys],
    example: str,
) -> tuple[dict[str, Any], Tables]:
    """What a file says of the whole, checked, and the parts of each kind by name.

    **Arguments:**

    - `top`: the keys of the file itself.
    - `kinds`: of parts.
    - `example`: of a body, as a sentence.
    """
    if not data:
        raise UserError(f"{source.label} is empty; a mechanism has a body. {example}")
    known = [*(key.name for key in top), *kinds]
    for key in data:
        if key not in known:
            raise source.error((key,), str(unknown_name("key", key, known)))
    tables = {
        kind: check_table(source, (kind,), data.get(kind, {}), f"Write [{kind}.NAME].")
        for kind in kinds
    }
    if not tables["bodies"]:
        raise UserError(f"{source.label} has no bodies. {example}")
    check_count(source.label, sum(map(len, tables.values())))
    _check_part_names(source, kinds, tables)
    rest = {key: value for key, value in data.items() if key not in kinds}
    return read_keys(source, (), top, rest, "a mechanism"), tables


def check_count(label: str, count: int) -> None:
    """Raise for more parts than a mechanism can have."""
    if count > _MOST_PARTS:
        raise UserError(
            f"{label} has {count:,} parts; a mechanism has at most {_MOST_PARTS:,} bodies, "
            "joints, springs and the like. Leave some out."
        )


def read_part(source: Source, kind: str, table: PartKeys, name: str, given: Any) -> dict[str, Any]:
    """The values of one body, joint, spring or the like, with its type if there are several."""
    path = (kind, name)
    values = dict(check_table(source, path, given, f"Write [{kind}.{name}] and its keys below."))
    chosen = _chosen(source, path, table, values) if table.choice else ""
    values.pop(table.choice, None)
    what = f"the {chosen} {table.word} {name!r}".replace("  ", " ")
    values = read_keys(source, path, table.keys[chosen], values, what)
    return {**values, table.choice: chosen} if table.choice else values


def _check_part_names(source: Source, kinds: dict[str, PartKeys], tables: Tables) -> None:
    seen: dict[str, str] = {}
    for kind, parts in tables.items():
        for name in parts:
            path, word = (kind, name), kinds[kind].word
            check_name(source, path, name)
            if name == GROUND:
                raise source.error(
                    path, f"{GROUND!r} is the body that stands still. Choose another."
                )
            if name in seen:
                raise source.error(
                    path, f"there is a {seen[name]} called {name!r} already. Call the {word} other."
                )
            seen[name] = word


def _chosen(source: Source, path: Path, table: PartKeys, values: dict[str, Any]) -> str:
    chosen = values.get(table.choice)
    where = (*path, table.choice)
    if chosen is None:
        choices = ", ".join(table.keys)
        raise source.error(where, f"it is missing. Say which {table.word}: {choices}.")
    if not isinstance(chosen, str) or chosen not in table.keys:
        kind = f"{table.choice} of a {table.word}"
        raise source.error(where, str(unknown_name(kind, str(chosen), table.keys)))
    return chosen
