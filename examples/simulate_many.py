"""Many at once: `jax.vmap` over starts, and over parameters.

First, double pendulums that start a hair apart, to see chaos pull them apart. Then slider-cranks
with different rods, each started on its own constraints. Both are one compiled call.

    python examples/simulate_many.py [count]
"""

import sys
import time

import jax
import jax.numpy as jnp
import numpy as np

import mbdnode as mbd


def spread_of_pendulums(count: int) -> np.ndarray:
    """How far apart the lower angles are at 0, 2, 4 ... 10 s."""
    pendulum = mbd.mechanisms.DoublePendulum()
    t = np.linspace(0.0, 10.0, 1_001)

    def fall(offset):
        q = jnp.array([3 * jnp.pi / 7, 3 * jnp.pi / 4]) + offset
        return mbd.simulate(pendulum, t, mbd.State(q, jnp.zeros(2)))

    began = time.perf_counter()
    falls = jax.block_until_ready(jax.vmap(fall)(jnp.linspace(0.0, 1e-6, count)))
    print(f"{falls.status} in {time.perf_counter() - began:.1f} s, compilation included")
    return np.ptp(np.asarray(falls["theta2"])[:, ::200], axis=0)


def turns_of_cranks(count: int) -> np.ndarray:
    """How many turns a constant torque gives to slider-cranks with rods of 3 to 6 m."""
    t = np.linspace(0.0, 5.0, 501)
    crank = mbd.mechanisms.SliderCrank()
    rods = np.linspace(3.0, 6.0, count)
    states = [
        mbd.consistent_state(crank, {"theta1": 1.0, "theta1_dot": 0.0}, parameters={"r": rod})
        for rod in rods
    ]
    starts = jax.tree.map(lambda *leaves: jnp.stack(leaves), *states)

    def drive(state, rod):
        return mbd.simulate(crank, t, state, inputs={"F": 0.0, "T": 5.0}, parameters={"r": rod})

    runs = jax.vmap(drive)(starts, jnp.asarray(rods))
    print(f"{runs.status}, largest residual {float(jnp.max(runs.position_residual)):.1e} m")
    return np.asarray(runs["theta1"][:, -1] - runs["theta1"][:, 0]) / (2 * np.pi)


def main(count: int = 200) -> tuple[np.ndarray, np.ndarray]:
    """Run both and print what came out."""
    spread, turns = spread_of_pendulums(count), turns_of_cranks(count)
    for second, distance in zip(range(0, 11, 2), spread, strict=True):
        print(f"after {second:2d} s the pendulums are {distance:.1e} rad apart")
    print(
        f"with a rod of 3 m the crank makes {turns[0]:.3f} turns, with one of 6 m {turns[-1]:.3f}"
    )
    return spread, turns


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
