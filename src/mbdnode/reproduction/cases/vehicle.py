"""FNODE's vehicle: one network for vehicles of different lengths, motors and gears."""

import math

import numpy as np

from mbdnode.mechanisms.vehicle import Vehicle
from mbdnode.models.paper_settings import mbdnode
from mbdnode.reproduction.cases.case import Case, Trial
from mbdnode.reproduction.cases.printed import Exhibit

_DT_S, _STEPS = 0.01, 2_000
# Of mid-size cars, as FNODE's parameter_sampler.py has them.
_RANGES = {
    "l": (2.7, 2.9),
    "R": (0.32, 0.35),
    "I": (0.9, 1.3),
    "tau0": (250.0, 350.0),
    "omega0": (1200.0, 1500.0),
    "c0": (0.015, 0.025),
    "c1": (0.025, 0.045),
    "delta": (0.6, 0.75),
    "gamma": (0.15, 0.25),
}
_LEARNED, _ASKED = 32, 4


def _vehicles(count: int, seed: int) -> tuple[dict[str, float], ...]:
    """A Latin hypercube: every parameter has each of `count` values once, in a random order."""
    random, places = np.random.default_rng(seed), (np.arange(count) + 0.5) / count
    columns = {
        name: low + (high - low) * random.permutation(places)
        for name, (low, high) in _RANGES.items()
    }
    return tuple({name: float(values[i]) for name, values in columns.items()} for i in range(count))


def _drive(steps: int, random: np.random.Generator) -> np.ndarray:
    """Throttle that rises for 4 s, is held for 1 s and falls; steering that jumps each 0.5 s."""
    t = np.arange(steps) * _DT_S
    falling = np.exp(-np.maximum(t - 5.0, 0.0) / 10.0)
    throttle = 0.075 * (1 - np.cos(math.pi * np.minimum(t / 4.0, 1.0))) * falling
    steering = np.repeat(random.uniform(-0.05, 0.05, steps // 50 + 1), 50)[:steps]
    return np.stack([throttle, steering], axis=1)


CASE = Case(
    name="vehicle",
    title="Four-wheel vehicle of any parameters",
    mechanism=Vehicle(),
    initial={},
    dt_s=_DT_S,
    steps=_STEPS,
    train_steps=0,
    integrator="rk4",
    source="FNODE (arXiv 2509.00183), main_fnode_veh_param.py of its code",
    inputs=_drive,
    training_parameters=_vehicles(_LEARNED, 0),
    hyperparameters=mbdnode(
        "rk4",
        500,
        1e-3,
        0.98,
        "slider-crank",
        width=256,
        hidden_layers=2,
        batch_size=64,
        angle_features=True,
        scaling=True,
        use_parameters=tuple(_RANGES),
    ),
    exhibits=(
        Exhibit("vehicle:over-time", "over-time", "A vehicle that was never seen."),
        Exhibit("vehicle:parameters", "starts", "Four vehicles more, never seen."),
    ),
    trials=tuple(
        Trial(
            f"vehicle-{number}",
            f"vehicle {number}",
            {},
            _STEPS,
            _drive,
            figure="vehicle:parameters",
            parameters=parameters,
        )
        for number, parameters in enumerate(_vehicles(_ASKED, 1), 1)
    ),
    notes=(
        f"Learned from one drive of 20 s with each of {_LEARNED} vehicles, whose nine parameters "
        "are spread over FNODE's ranges, and asked for one in the middle of all. FNODE learns from "
        "15 s of each of 262,144 vehicles, four values of every parameter.",
        "FNODE's front wheels obey at once. Here a servo turns them, and the steering jumps, so "
        "that the servo's motion is in the data. FNODE's throttle of 0.5 and steering of 0.4 give "
        "20 times the acceleration of gravity across; here 0.15 and 0.05 drive as a car does. So "
        "the numbers are not comparable.",
    ),
)
