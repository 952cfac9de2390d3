"""What the joints carry: reaction forces of a slider-crank at work.

A torque drives the crank and a force brakes the slider. The multipliers of the constraints are the
joints' forces; `mbd.reactions` gives them at every time of a trajectory.

    python examples/reactions.py [steps]
"""

import sys

import numpy as np

import mbdnode as mbd

# The constraints of the slider-crank come in this order, two for each joint.
JOINTS = {"crank bearing": (0, 1), "crank pin": (2, 3), "wrist pin": (4, 5), "guide": (6, 6)}


def main(steps: int = 2_000) -> dict[str, float]:
    """Run it for two seconds; return the largest force in each joint, in newtons."""
    crank = mbd.mechanisms.SliderCrank()
    t = np.linspace(0.0, 2.0, steps + 1)
    run = mbd.simulate(
        crank,
        t,
        {"theta1": 0.5, "theta1_dot": 4.0},
        inputs={"F": -40.0, "T": 60.0},  # force on the slider, torque on the crank
    )
    loads = mbd.reactions(crank, run)
    largest = {}
    for joint, (first, last) in JOINTS.items():
        force = np.linalg.norm(np.asarray(loads.multipliers[:, first : last + 1]), axis=1)
        largest[joint] = float(np.max(force))
        print(f"{joint:<14} {largest[joint]:7.1f} N at most, at t = {t[np.argmax(force)]:.2f} s")
    return largest


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
