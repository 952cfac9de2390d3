"""Mechanisms in space that several tests move."""

from mbdnode.mechanisms.spatial import SpatialMechanism
from mbdnode.mechanisms.spatial.description import (
    GROUND,
    Body,
    Frame,
    Joint,
    Motor,
    Output,
    SpatialDescription,
)

GRAVITY = (0.0, 0.0, -9.81)
Y = (0.0, 1.0, 0.0)


def heavy_top() -> SpatialMechanism:
    """On a ball joint, its mass center half a meter up its axis."""
    body = Body("top", 1.5, (0.0, 0.0, 0.5), (0.3, 0.3, 0.05, 0.0, 0.0, 0.0))
    return SpatialMechanism(
        SpatialDescription(
            "top",
            (body,),
            (Joint("pivot", "spherical", (GROUND, "top")),),
            outputs=(
                Output("spin", "gyroscope", "top"),
                Output("tip", "point", "top", Frame((0.0, 0.0, 1.0))),
            ),
            gravity=GRAVITY,
        )
    )


def four_bar() -> SpatialMechanism:
    """A planar loop of four hinges in space: five closure rows, two of which are independent."""
    bars = tuple(
        Body(name, 1.0, (size / 2, 0.0, 0.0), (1e-4, 0.1, 0.1, 0.0, 0.0, 0.0))
        for name, size in (("crank", 1.0), ("rod", 2.0), ("rocker", 1.5))
    )
    at = lambda x: Frame((x, 0.0, 0.0))  # noqa: E731
    joints = (
        Joint("a", "revolute", (GROUND, "crank"), axis=Y, start=(0.5,)),
        Joint("b", "revolute", ("crank", "rod"), (at(1.0), at(0.0)), axis=Y),
        Joint("c", "revolute", (GROUND, "rocker"), (at(2.0), at(0.0)), axis=Y, start=(-1.0,)),
        Joint("d", "revolute", ("rod", "rocker"), (at(2.0), at(1.5)), axis=Y),
    )
    return SpatialMechanism(SpatialDescription("four-bar", bars, joints, gravity=GRAVITY))


def spatial_slider_crank() -> SpatialMechanism:
    """Crank about x, slider along x, the rod between them on a ball joint and a universal joint."""
    bodies = (
        Body("crank", 0.12, (0.0, 0.0, 0.04), (1e-4, 1e-5, 1e-4, 0.0, 0.0, 0.0)),
        Body("rod", 0.5, (0.15, 0.0, 0.0), (4e-5, 4e-3, 4e-3, 0.0, 0.0, 0.0)),
        Body("slider", 2.0, (0.0, 0.0, 0.0), (1e-4, 1e-4, 1e-4, 0.0, 0.0, 0.0)),
    )
    x, z = (1.0, 0.0, 0.0), (0.0, 0.0, 1.0)
    base = (Frame((0.0, 0.1, 0.12)), Frame())
    joints = (
        Joint("crank", "revolute", (GROUND, "crank"), base, axis=x, start=(0.2,)),
        Joint("ball", "spherical", ("crank", "rod"), (Frame((0.0, 0.0, 0.08)), Frame())),
        Joint("slide", "prismatic", (GROUND, "slider"), axis=x, start=(0.2,)),
        Joint("cross", "universal", ("rod", "slider"), (Frame((0.3, 0.0, 0.0)), Frame()), z, Y),
    )
    motors = (Motor("torque", "crank"),)
    return SpatialMechanism(
        SpatialDescription("slider-crank", bodies, joints, motors=motors, gravity=GRAVITY)
    )
