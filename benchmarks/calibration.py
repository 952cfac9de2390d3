"""Are standard errors and 90 % bands what they say? Parameters from noisy runs, many times.

    python -m benchmarks.calibration [EXPERIMENTS [SYSTEM ...]] [--cluster tcp://...]

In each experiment the parameters of a mechanism are found from one run with 1 % noise on what is
recorded of it, and a motion from another initial state under another input is predicted, from its
true initial state. What is determined, parameters or combinations of them, should lie within 1.645
standard errors of the truth in 90 % of the cases and within two in 95 %, and the true motion within
1.645 times `trajectory.spread` at 90 % of the times. The linkages have their crank angle recorded
alone. Workers of a cluster share the experiments; each starts where it finds this folder.
"""

import argparse
import functools
import statistics
from collections.abc import Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from typing import NamedTuple

import equinox as eqx
import numpy as np

import mbdnode as mbd
from mbdnode.parallel import workers

# Half the width of a 90 % band, in standard deviations.
NINE_TENTHS = 1.645
NOISE, STEP_S = 0.01, 0.02


@dataclass(frozen=True)
class Experiment:
    """What is simulated: true values, two initial states, the size of the inputs, what is recorded
    (all coordinates if not given), and over how many steps.
    """

    true: dict[str, float]
    first: dict[str, float]
    second: dict[str, float]
    size: float
    recorded: tuple[str, ...] = ()
    steps: int = 150


EXPERIMENTS = {
    "single-pendulum": Experiment(
        {"m": 1.3, "L": 0.8, "c": 0.25}, {"theta": 0.7}, {"theta": -1.1}, 3.0
    ),
    "cart-pole": Experiment(
        {"m": 0.8, "M": 1.6, "l": 0.7}, {"theta": 0.5}, {"theta": 0.9, "x": 0.2}, 4.0
    ),
    "single-mass-spring-damper": Experiment({"k": 40.0, "d": 3.0}, {"x": 1.0}, {"x": -0.6}, 0.0),
    "four-bar": Experiment(
        {"m_crank": 0.55, "m_coupler": 0.7, "m_rocker": 1.1, "I_coupler": 0.09},
        # The crank swings. From higher up or under more torque it runs away, by 70 rad in 10 s: 1 %
        # of that is more than the linkage's own motion, and the path through it is chaotic. Under
        # half as much torque again it still swings, but the last digit of the parameters decides.
        {"crank": -1.0, "crank_dot": 0.5},
        {"crank": -1.2, "crank_dot": 0.3},
        1.0,
        ("crank",),
        500,
    ),
    "slider-crank": Experiment(
        {"m1": 2.5, "m2": 7.0, "m3": 1.6, "I2": 25.0},
        {"theta1": 1.0, "theta1_dot": 1.0},
        {"theta1": -0.5, "theta1_dot": 2.0},
        30.0,
        ("theta1",),
        500,
    ),
}


def inputs_of(system, t, size: float, phase: float):
    """Sines of two frequencies, into every input."""
    wave = size * (np.sin(2.0 * t + phase) + 0.5 * np.cos(5.3 * t))
    return np.tile(wave[:, None], (1, len(system.inputs))) if system.inputs else None


def in_standard_errors(found, true: dict[str, float]) -> list[float]:
    """How far from the truth everything is that was determined."""
    alone = [abs(found.parameters[n] - true[n]) / e for n, e in found.standard_errors.items()]
    together = [
        abs(one.value - sum(factor * true[name] for name, factor in one.terms.items()))
        / one.standard_error
        for one in found.combinations
    ]
    return [*alone, *together]


class Outcome(NamedTuple):
    """What one experiment gave.

    **Arguments:**

    - `away`: how far from the truth everything is that was determined, in standard errors.
    - `covered`: the part of the motion that lies within its band.
    - `error`: NRMSE of the motion.
    - `seconds`: to find the parameters.
    """

    away: list[float]
    covered: float
    error: float
    seconds: float


@functools.cache
def motions(name: str) -> tuple[mbd.Trajectory, mbd.Trajectory]:
    """The run from which parameters are found, without noise, and the one to predict."""
    one, system = EXPERIMENTS[name], mbd.mechanisms.get_mechanism(name)
    t = np.arange(one.steps + 1) * STEP_S
    first, second = (
        mbd.simulate(
            system, t, start, inputs=inputs_of(system, t, one.size, phase), parameters=one.true
        )
        for start, phase in ((one.first, 0.0), (one.second, 1.0))
    )
    return first, second


def experiment(which: tuple[str, int]) -> Outcome:
    """Find the parameters of a system from noise of a seed, and predict."""
    name, seed = which
    one, system = EXPERIMENTS[name], mbd.mechanisms.get_mechanism(name)
    clean, truth = motions(name)
    columns = list(one.recorded or system.coordinate_names)
    places = [system.coordinate_names.index(column) for column in columns]
    noise = NOISE * np.std(np.asarray(clean.q), axis=0)
    shake = np.random.default_rng(seed).normal(size=clean.q.shape) * noise
    data = mbd.Dataset(eqx.tree_at(lambda r: r.q, clean, clean.q + shake), recorded=columns)
    found = mbd.identify(system, data, unknown=list(one.true), interpolation="constant")
    start, load = mbd.State(truth.q[0], truth.v[0]), truth.u if system.inputs else None
    again = mbd.simulate(found.model, truth.t, start, inputs=load)
    assert again.spread is not None
    missed = np.abs(np.asarray(again.q - truth.q))[1:, places]
    covered = np.mean(missed <= NINE_TENTHS * np.asarray(again.spread.q)[1:, places])
    error = np.sqrt(np.mean((missed / np.std(np.asarray(truth.q)[:, places], axis=0)) ** 2))
    away = in_standard_errors(found, one.true)
    return Outcome(away, float(covered), float(error), found.train_seconds)


def told(name: str, outcomes: Sequence[Outcome]) -> str:
    """What was covered of one system."""
    within = np.array([away for outcome in outcomes for away in outcome.away])
    covered = [outcome.covered for outcome in outcomes]
    spread_of_mean = float(np.std(covered)) / len(covered) ** 0.5
    error = statistics.median(outcome.error for outcome in outcomes)
    seconds = statistics.median(outcome.seconds for outcome in outcomes)
    return (
        f"{name}: within 1.645 / 2 standard errors {np.mean(within < NINE_TENTHS):.1%} / "
        f"{np.mean(within < 2):.1%} of {len(within)}; motion within the band "
        f"{np.mean(covered):.1%} ± {spread_of_mean:.1%}; median NRMSE {error:.2%}; "
        f"median {seconds:.1f} s an experiment"
    )


def main() -> None:
    """Print a line for each system."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("experiments", nargs="?", type=int, default=200)
    parser.add_argument("systems", nargs="*", default=list(EXPERIMENTS))
    parser.add_argument("--cluster", help="the address of a Dask scheduler")
    asked = parser.parse_args()
    print(f"{asked.experiments} experiments each")
    with workers(asked.cluster) if asked.cluster else nullcontext() as crew:
        for name in asked.systems:
            all_of_it = [(name, seed) for seed in range(asked.experiments)]
            outcomes = [*(map if crew is None else crew.map)(experiment, all_of_it)]
            print(told(name, outcomes), flush=True)


if __name__ == "__main__":
    # Workers look for what they call in the module of this name.
    from benchmarks import calibration

    calibration.main()
