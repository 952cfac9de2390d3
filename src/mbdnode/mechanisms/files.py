"""Mechanisms from files, each by its kind: TOML in the plane and in space, URDF and MJCF."""

import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mbdnode.config import as_path, parse_toml, read_toml
from mbdnode.errors import UserError
from mbdnode.mechanisms.planar.description import Description
from mbdnode.mechanisms.spatial.description import SpatialDescription
from mbdnode.mechanisms.toml_files.parts import WAY_OUT
from mbdnode.mechanisms.toml_files.values import Source

if TYPE_CHECKING:
    from mbdnode.mechanisms.planar import PlanarKinematics, PlanarMechanism
    from mbdnode.mechanisms.spatial import SpatialMechanism

# How the files of other programs end; what else there is, is TOML.
_XML = (".urdf", ".xml", ".mjcf")
ENDINGS = (".toml", *_XML)


def is_mechanism_file(name: str) -> bool:
    """Whether a name is that of a mechanism's file.

    **Arguments:**

    - `name`: of the file, which ends with .toml, .urdf, .xml or .mjcf.
    """
    return name.lower().endswith(ENDINGS)


def read_mechanism(
    path: str | os.PathLike[str], *, floating: bool = False
) -> "PlanarMechanism | PlanarKinematics | SpatialMechanism":
    """Read a mechanism from a file: TOML, URDF or MJCF.

    **Arguments:**

    - `path`: of the file; one of URDF or MJCF ends with .urdf, .xml or .mjcf.
    - `floating`: whether the base of a URDF moves freely; it is fixed to the ground by default.

    **Returns:**

    A mechanism; of a planar TOML file in which a body has no mass a `PlanarKinematics`, which has
    constraints but no accelerations. Raises `UserError` naming the line and what is wrong. Warns of
    what is in a URDF or MJCF file and not taken over, such as contacts and limits.
    """
    return _made(read_description(path, floating=floating))


def read_description(
    path: str | os.PathLike[str], *, floating: bool = False
) -> Description | SpatialDescription:
    """What a mechanism's file says.

    **Arguments:**

    - `path`, `floating`: as of `read_mechanism`.

    **Returns:**

    A description; raises `UserError` as `read_mechanism`.
    """
    if as_path(path).suffix.lower() in _XML:
        return _read_xml(as_path(path), floating)
    if floating:
        raise UserError(
            f"floating is for the base of a URDF file; '{path}' says itself what moves freely."
        )
    label, text = os.fspath(as_path(path)), read_toml(path, "a mechanism")
    source = Source(label, text, folder=os.fspath(Path(path).parent))
    return _described(parse_toml(text, label, WAY_OUT), source, Path(path).stem)


def from_text(
    text: str, *, label: str = "the text", name: str = "mechanism"
) -> "PlanarMechanism | PlanarKinematics | SpatialMechanism":
    """A mechanism from the text of a TOML file.

    **Arguments:**

    - `text`: the file's content.
    - `label`: what to call it in messages.
    - `name`: of the mechanism, if the text gives none.

    **Returns:**

    As `read_mechanism`.
    """
    return _made(_described(parse_toml(text, label, WAY_OUT), Source(label, text), name))


def from_dict(
    data: dict[str, Any], *, label: str = "the mechanism", name: str = "mechanism"
) -> "PlanarMechanism | PlanarKinematics | SpatialMechanism":
    """A mechanism from what a TOML file would hold, as `to_dict` gives it.

    **Arguments:**

    - `data`: tables, lists, numbers and text.
    - `label`: what to call it in messages.
    - `name`: of the mechanism, if the data give none.

    **Returns:**

    As `read_mechanism`.
    """
    if not isinstance(data, dict):
        raise UserError(f"{label} is a {type(data).__name__}; it must be a dictionary.")
    return _made(_described(data, Source(label), name))


def _described(data: dict[str, Any], source: Source, name: str) -> Description | SpatialDescription:
    from mbdnode.mechanisms.planar import reading as planar
    from mbdnode.mechanisms.spatial import reading as spatial

    described = spatial.described if spatial.is_spatial(data) else planar.described
    return described(data, source, name)


def _made(
    description: Description | SpatialDescription,
) -> "PlanarMechanism | PlanarKinematics | SpatialMechanism":
    if isinstance(description, SpatialDescription):
        from mbdnode.mechanisms.spatial import SpatialMechanism

        return SpatialMechanism(description)
    from mbdnode.mechanisms.planar import PlanarKinematics, PlanarMechanism

    return PlanarKinematics(description) if description.weightless else PlanarMechanism(description)


def _read_xml(path: Path, floating: bool) -> SpatialDescription:
    """URDF by its root element, MJCF otherwise."""
    from mbdnode.mechanisms.spatial.imported import read_bytes
    from mbdnode.mechanisms.spatial.mujoco_file import read_mujoco
    from mbdnode.mechanisms.spatial.urdf_file import parse_xml, read_urdf

    if parse_xml(read_bytes(path), os.fspath(path)).tag == "robot":
        return read_urdf(path, floating=floating)
    if floating:
        raise UserError(f"floating is for URDF; in '{path}' write <freejoint/> on the base.")
    return read_mujoco(path)
