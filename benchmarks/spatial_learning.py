"""Networks and laws of machines in space: predictions over 10,000 steps, beside the truth.

A pendulum on a universal joint has two degrees of freedom and no constraint. The spatial
slider-crank has a closed loop (a ball joint and a universal joint on its rod) and one degree of
freedom; a torque turns its crank. Models learn from 2,000 samples of accelerations at random
states, or from one motion, and predict motions that they have not seen.

    make bench ONLY=spatial_learning
"""

import sys
import time

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
STEPS, DT = 10_000, 0.002


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


def main() -> None:
    """Every machine with every model."""
    t = np.arange(STEPS + 1) * DT
    print("machine | model | training | mse | NRMSE [%] | residual | time [s]")
    for machine, starts, forcing in (
        (
            universal_pendulum(),
            [{"hook_1": 0.9, "hook_2": -0.5, "hook_2_dot": 1.0}, {"hook_1": -0.7, "hook_2": 0.8}],
            lambda count: [lambda t: np.zeros(0)] * count,
        ),
        (
            slider_crank(),
            [{"crank": 0.2, "crank_dot": 9.0}, {"crank": 1.4, "crank_dot": 12.0}],
            lambda count: [
                {"torque": lambda t, k=k: 0.15 * np.sin(3.0 * t + k)} for k in range(count)
            ],
        ),
    ):
        drives = forcing(len(starts)) if machine.inputs else [None] * len(starts)
        runs = [
            mbd.simulate(machine, t, start, inputs=drive and sampled(drive, t))
            for start, drive in zip(starts, drives, strict=True)
        ]
        data = mbd.Dataset([runs[0].rows(0, 2_500)])
        for name, learn in (
            ("law", lambda: mbd.identify(machine, data, "best").model),
            (
                "mbd-node (lagrangian)",
                lambda: (
                    mbd.fit(
                        mbd.MBDNODE.for_system(machine, structure="lagrangian", width=32),
                        data,
                        "adam-lm",
                    ).model
                ),
            ),
        ):
            begin = time.perf_counter()
            model = learn()
            took = time.perf_counter() - begin
            start = mbd.State(runs[1].q[0], runs[1].v[0])
            inputs = runs[1].u if machine.inputs else None
            found = mbd.simulate(model, t, start, inputs=inputs, check_step=False)
            scores = mbd.evaluate(runs[1], found)
            print(
                f"{machine.description.name} | {name} | 2,500 steps | {scores.mse:.1e} | "
                f"{float(np.max(found.position_residual)):.0e} | {took:.0f} | {found.status}"
            )
            if "--law" in sys.argv:
                print(model)


def sampled(drive, t):
    """The inputs by name, a value for each time."""
    return {name: np.array([function(x) for x in t]) for name, function in drive.items()}


if __name__ == "__main__":
    main()
