"""Frames and inertias as the files of other programs have them, and as descriptions do."""

import math
from typing import Any

import numpy as np

from mbdnode.mechanisms.spatial.description import Frame, Vector
from mbdnode.multibody.lie import rotation_from_rpy

Array = np.ndarray[Any, np.dtype[np.float64]]


def matrix_rpy(matrix: Array) -> Vector:
    """Roll, pitch and yaw of a matrix; exact at a pitch of 90 degrees, too.

    Each angle is taken out of the matrix before the next is read from it, so that an angle that
    rounding decides is made up for by the next.
    """
    yaw = math.atan2(matrix[1, 0], matrix[0, 0])
    rest = rotation_from_rpy(0.0, 0.0, -yaw) @ matrix
    pitch = math.atan2(-rest[2, 0], rest[0, 0])
    rest = rotation_from_rpy(0.0, -pitch, 0.0) @ rest
    return math.atan2(rest[2, 1], rest[1, 1]), pitch, yaw


def quaternion_matrix(quaternion: Any) -> Array:
    """The matrix of a quaternion, scalar first, of any length."""
    w, x, y, z = np.asarray(quaternion, float) / np.linalg.norm(quaternion)
    return np.array(
        [
            [w * w + x * x - y * y - z * z, 2 * (x * y - w * z), 2 * (x * z + w * y)],
            [2 * (x * y + w * z), w * w - x * x + y * y - z * z, 2 * (y * z - w * x)],
            [2 * (x * z - w * y), 2 * (y * z + w * x), w * w - x * x - y * y + z * z],
        ]
    )


def make_frame(at: Any, matrix: Array | None = None) -> Frame:
    """A frame from its origin and its axes."""
    return Frame(as_vector(at), (0.0, 0.0, 0.0) if matrix is None else matrix_rpy(matrix))


def as_vector(values: Any) -> Vector:
    """Three plain numbers."""
    x, y, z = (float(value) for value in values)
    return x, y, z


def is_physical(inertia: Array) -> bool:
    """Whether a body can have it: no negative moment, none larger than the two others together."""
    moments = np.linalg.eigvalsh(inertia)
    # Files have six digits as a rule.
    slack = 1e-6 * abs(moments[2])
    return bool(moments[0] >= -slack and moments[0] + moments[1] >= moments[2] - slack)
