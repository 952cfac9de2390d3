"""Planar mechanisms from TOML files: bodies, joints, springs, dampers, loads and drives.

Names are loaded when first used: a file is read and checked without JAX.
"""

from typing import TYPE_CHECKING

from mbdnode.lazy_imports import lazy_names

if TYPE_CHECKING:
    from mbdnode.mechanisms.planar.analysis import Analysis, Redundancy, analyze
    from mbdnode.mechanisms.planar.description import Description
    from mbdnode.mechanisms.planar.mechanism import (
        AbstractPlanar,
        PlanarKinematics,
        PlanarMechanism,
    )
    from mbdnode.mechanisms.planar.reading import (
        from_dict,
        from_text,
        read_description,
        read_mechanism,
    )

__all__ = [
    "AbstractPlanar",
    "Analysis",
    "Description",
    "PlanarKinematics",
    "PlanarMechanism",
    "Redundancy",
    "analyze",
    "from_dict",
    "from_text",
    "read_description",
    "read_mechanism",
]


__getattr__ = lazy_names(
    __name__,
    {
        "AbstractPlanar": "mechanism",
        "Analysis": "analysis",
        "analyze": "analysis",
        "Description": "description",
        "from_dict": "reading",
        "from_text": "reading",
        "PlanarKinematics": "mechanism",
        "PlanarMechanism": "mechanism",
        "read_description": "reading",
        "read_mechanism": "reading",
        "Redundancy": "analysis",
    },
)


def __dir__() -> list[str]:
    return sorted([*globals(), *__all__])
