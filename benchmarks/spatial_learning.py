"""Networks and laws of machines in space: predictions over 10,000 steps, beside the truth.

A pendulum on a universal joint has two degrees of freedom and no constraint. The spatial
slider-crank has a closed loop (a ball joint and a universal joint on its rod) and one degree of
freedom; a torque turns its crank. Models of the pendulum learn from the first steps of one motion,
those of the slider-crank, as in the paper, from single steps at random states. All predict a
motion that they have not seen.

    make bench ONLY=spatial_learning
"""

import time
from typing import Any

import numpy as np

import mbdnode as mbd
from mbdnode.mechanisms.spatial import SpatialMechanism
from mbdnode.mechanisms.spatial.description import (
    GROUND,
    Body,
    Frame,
    Joint,
    Motor,
    SpatialDescription,
)

X, Y, Z = np.eye(3).tolist()
GRAVITY = (0.0, 0.0, -9.81)
STEPS, TRAINING, SAMPLES = 10_000, 2_500, 5_000
# The crank turns at up to 60 rad/s.
DT, CRANK_DT = 0.002, 0.0005


def universal_pendulum() -> SpatialMechanism:
    """A rod with a bob below a universal joint."""
    rod = Body("rod", 1.2, (0.0, 0.0, -0.35), (0.06, 0.05, 0.012, 0.0, 0.0, 0.0))
    joint = Joint("hook", "universal", (GROUND, "rod"), axis=tuple(X), second_axis=tuple(Y))
    return SpatialMechanism(SpatialDescription("pendulum", (rod,), (joint,), gravity=GRAVITY))


def slider_crank() -> SpatialMechanism:
    """Crank about x, slider along x, the rod between them on a ball and a universal joint."""
    bodies = (
        Body("crank", 0.12, (0.0, 0.0, 0.04), (1e-4, 1e-5, 1e-4, 0.0, 0.0, 0.0)),
        Body("rod", 0.5, (0.15, 0.0, 0.0), (4e-5, 4e-3, 4e-3, 0.0, 0.0, 0.0)),
        Body("slider", 2.0, inertia=(1e-4, 1e-4, 1e-4, 0.0, 0.0, 0.0)),
    )
    base, pin, tip = Frame((0.0, 0.1, 0.12)), Frame((0.0, 0.0, 0.08)), Frame((0.3, 0.0, 0.0))
    joints = (
        Joint("crank", "revolute", (GROUND, "crank"), (base, Frame()), tuple(X), start=(0.2,)),
        Joint("ball", "spherical", ("crank", "rod"), (pin, Frame())),
        Joint("slide", "prismatic", (GROUND, "slider"), axis=tuple(X), start=(0.2,)),
        Joint("cross", "universal", ("rod", "slider"), (tip, Frame()), tuple(Z), tuple(Y)),
    )
    return SpatialMechanism(
        SpatialDescription(
            "slider-crank",
            bodies,
            joints,
            motors=(Motor("torque", "crank"),),
            gravity=GRAVITY,
            independent=("crank",),
        )
    )


def law_of(machine: SpatialMechanism, data: Any):
    """Found by regression."""
    return mbd.identify(machine, data, "best").model


def network_of(machine: SpatialMechanism, data: Any):
    """Trained; its layers give masses and a potential."""
    untrained = mbd.MBDNODE.for_system(machine, structure="lagrangian", width=32)
    return mbd.fit(untrained, data, "adam-lm").model


MODELS = {"law": law_of, "mbd-node (lagrangian)": network_of}


def main() -> None:
    """Every machine with every model."""
    t = np.arange(STEPS + 1) * DT
    pendulum, crank = universal_pendulum(), slider_crank()
    swing = mbd.simulate(pendulum, t, {"hook_1": 0.9, "hook_2": -0.5, "hook_2_dot": 1.0})
    ranges = {"crank": (-np.pi, np.pi), "crank_dot": (-40.0, 40.0), "torque": (-0.5, 0.5)}
    samples = mbd.StepStream(crank, ranges, SAMPLES, CRANK_DT, count=1)
    fast = np.arange(STEPS + 1) * CRANK_DT
    push = {"torque": 0.15 * np.sin(3.0 * fast)}
    cases = (
        (
            pendulum,
            mbd.Dataset([swing.rows(0, TRAINING)]),
            f"{TRAINING:,} steps",
            mbd.simulate(pendulum, t, {"hook_1": -0.7, "hook_2": 0.8}),
            None,
        ),
        (
            crank,
            samples,
            f"{SAMPLES:,} samples",
            mbd.simulate(crank, fast, {"crank": 1.4, "crank_dot": 12.0}, inputs=push),
            push,
        ),
    )
    print("machine | model | learned from | mse | residual | time to learn [s] | status")
    for machine, data, told, unseen, inputs in cases:
        for name, learn in MODELS.items():
            begin = time.perf_counter()
            model = learn(machine, data)
            took = time.perf_counter() - begin
            start = mbd.State(unseen.q[0], unseen.v[0])
            found = mbd.simulate(model, unseen.t, start, inputs=inputs, check_step=False)
            print(
                f"{machine.description.name} | {name} | {told} | "
                f"{mbd.evaluate(unseen, found).mse:.1e} | "
                f"{float(np.max(found.position_residual)):.0e} | {took:.0f} | {found.status}",
                flush=True,
            )


if __name__ == "__main__":
    main()
