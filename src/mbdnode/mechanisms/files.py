"""Mechanisms from files, each by its kind: TOML (our own), URDF and MJCF."""

import os
from pathlib import Path
from typing import TYPE_CHECKING

from mbdnode.config import as_path
from mbdnode.errors import UserError

if TYPE_CHECKING:
    from mbdnode.mechanisms.planar import PlanarKinematics, PlanarMechanism
    from mbdnode.mechanisms.spatial import SpatialDescription, SpatialMechanism

# How the files of other programs end; what else there is, is TOML.
ENDINGS = (".toml", ".urdf", ".xml", ".mjcf")


def is_mechanism_file(name: str) -> bool:
    """Whether a name is that of a mechanism's file, by its ending."""
    return name.lower().endswith(ENDINGS)


def read_mechanism(
    path: str | os.PathLike[str], *, floating: bool = False
) -> "PlanarMechanism | PlanarKinematics | SpatialMechanism":
    """Read a mechanism from a file: TOML, URDF or MJCF.

    **Arguments:**

    - `path`: of the file, which ends with .toml, .urdf, .xml or .mjcf.
    - `floating`: whether the base of a URDF moves freely; it is fixed to the ground by default.

    **Returns:**

    A mechanism; of a planar TOML file in which a body has no mass a `PlanarKinematics`, which has
    constraints but no accelerations. Raises `UserError` naming the line and what is wrong. Warns of
    what is in a URDF or MJCF file and not taken over, such as contacts and limits.
    """
    ending = as_path(path).suffix.lower()
    if ending in (".urdf", ".xml", ".mjcf"):
        from mbdnode.mechanisms.spatial import SpatialMechanism

        return SpatialMechanism(_read_xml(as_path(path), floating))
    if floating:
        raise UserError(
            f"floating is for the base of a URDF file; '{path}' says itself what moves freely."
        )
    from mbdnode.mechanisms.planar import read_mechanism as read_planar

    return read_planar(path)


def _read_xml(path: Path, floating: bool) -> "SpatialDescription":
    """URDF by its root element, MJCF otherwise."""
    from mbdnode.mechanisms.spatial.imported import read_bytes
    from mbdnode.mechanisms.spatial.mujoco_file import read_mujoco
    from mbdnode.mechanisms.spatial.urdf_file import parse_xml, read_urdf

    if parse_xml(read_bytes(path), os.fspath(path)).tag == "robot":
        return read_urdf(path, floating=floating)
    if floating:
        raise UserError(f"floating is for URDF; in '{path}' write <freejoint/> on the base.")
    return read_mujoco(path)
