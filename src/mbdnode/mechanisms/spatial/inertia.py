"""Which inertias a rigid body can have.

With the second moments `s_x, s_y, s_z` of its mass along its principal axes, its principal moments
of inertia are `s_y + s_z`, `s_x + s_z` and `s_x + s_y`. None of the second moments is negative: so
none of the moments of inertia is, and none exceeds the sum of the two others.
"""

import numpy as np

from mbdnode.mechanisms.spatial.description import Inertia
from mbdnode.mechanisms.toml_files.key_lines import Path
from mbdnode.mechanisms.toml_files.values import Source

# Of the largest moment. Inertias of thin plates are printed with four digits or more, in which the
# sum of the two smaller ones may be less than the largest; a moment below zero is wrong as such.
_ROUNDED, _ZERO = 1e-3, 1e-9


def inertia_matrix(inertia: Inertia) -> np.ndarray:
    """The matrix of xx, yy, zz, xy, xz, yz."""
    xx, yy, zz, xy, xz, yz = inertia
    return np.array([[xx, xy, xz], [xy, yy, yz], [xz, yz, zz]])


def inertia_entries(matrix: np.ndarray) -> Inertia:
    """The six numbers of a symmetric matrix."""
    (xx, xy, xz), (_, yy, yz), (_, _, zz) = matrix.tolist()
    return xx, yy, zz, xy, xz, yz


def check_inertia(source: Source, path: Path, inertia: Inertia) -> None:
    """Raise `UserError` for an inertia about the mass center that no body has."""
    moments = np.linalg.eigvalsh(inertia_matrix(inertia))
    smallest, middle, largest = (float(m) for m in moments)
    shown = ", ".join(f"{m:.4g}" for m in moments)
    if smallest < -_ZERO * abs(largest) or largest < 0.0:
        raise source.error(
            path,
            f"its principal moments are {shown} kg m^2; none can be negative. Give the entries xx, "
            "yy, zz, xy, xz, yz of the inertia matrix about the mass center.",
        )
    if smallest + middle < (1 - _ROUNDED) * largest:
        raise source.error(
            path,
            f"its principal moments are {shown} kg m^2; the largest exceeds the sum of the others, "
            "which no body has. Check the numbers, their units, and that they are about the mass "
            "center.",
        )
