"""What training is given: data checked and cut into windows; where the model starts.

A window of w steps holds w + 1 states. A trajectory of n steps gives the windows that start at 0,
w, 2w, ...; if w does not divide n, the last window is moved back to end at the last state, so
that nothing is left out and all have one shape.

Scales and starts come from the training data alone, by NumPy but for what the network reads: dozens
of small programs, each compiled for a sum or a quotient, would take longer than an epoch.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from mbdnode.data import AbstractStream
from mbdnode.errors import UserError
from mbdnode.integrators import AbstractIntegrator, get_integrator
from mbdnode.models import AbstractModel, Scales
from mbdnode.models.mbdnode import AbstractMBDNODE
from mbdnode.models.objective import mean_and_spread
from mbdnode.multibody import AbstractSystem, require_system, resolve_parameters
from mbdnode.naming import unknown_name
from mbdnode.numerics import check_precision
from mbdnode.recipes import TrainingConfig
from mbdnode.trajectory import Dataset, Trajectory

# Features that together vary by less than this part of the most are taken as tied to each other:
# a coefficient for what little is left would be large, and made of the integrator's errors.
_STILL = 1e-3
Units = tuple[Float[Array, " nq"], Float[Array, " nq"]]


def as_dataset(data: Dataset | Trajectory) -> Dataset:
    """A single trajectory as a dataset of one."""
    return data if isinstance(data, Dataset) else Dataset(data)


def check_stream(objective: Any, model: AbstractModel, stream: AbstractStream | None) -> None:
    """Raise `UserError` for a network that cannot learn from a stream."""
    if stream is None:
        return
    if not objective.takes_streams:
        raise UserError(
            f"{model.kind} learns from recorded motions, not from a stream of samples. Give it a "
            "Dataset, or use MBDNODE."
        )
    if getattr(model.settings, "constraints", None) == "augmented":
        raise UserError(
            "An augmented Lagrangian keeps multipliers for every step of the data, and a stream "
            "gives new steps each epoch. Give it a Dataset, or use constraints='penalty'."
        )


def cast(tree: Any, precision: str) -> Any:
    """The tree with all of its real numbers in a precision."""
    dtype = jnp.dtype(precision)
    arrays, rest = eqx.partition(tree, eqx.is_inexact_array)
    return eqx.combine(jax.tree.map(lambda x: x.astype(dtype), arrays), rest)


def check_names(system: Any, data: Dataset) -> None:
    """Raise `UserError` unless system (or model) and data have the same names, in float64."""
    check_precision()
    require_system(system)
    first = data.trajectories[0]
    if first.coordinates != system.coordinate_names or first.inputs != system.input_names:
        ours = ", ".join((*system.coordinate_names, *system.input_names))
        theirs = ", ".join((*first.coordinates, *first.inputs))
        kind = "model" if isinstance(system, AbstractModel) else "system"
        raise UserError(
            f"The {kind} has coordinates and inputs {ours}, but the data has {theirs}. Use the "
            f"{kind} that made the data, or one made for it."
        )
    for values in data.parameters:
        for name in values:
            if name not in system.parameter_names:
                raise unknown_name("parameter", name, system.parameter_names)


def suitable_integrator(model: Any, config: TrainingConfig) -> AbstractIntegrator:
    """That of the configuration. Raises `UserError` for one that does not suit the model."""
    integrator = get_integrator(config.integrator)
    if integrator.needs_separable and not model.separable:
        raise UserError(
            f"The integrator {config.integrator!r} needs accelerations that depend on "
            "positions alone; make the model with use_velocity=False, or use 'rk4'."
        )
    return integrator


def sizes(weights: Mapping[str, float], names: Sequence[str]) -> np.ndarray:
    """The units of squared errors that these weights make."""
    for name, weight in weights.items():
        if name not in names:
            raise unknown_name("coordinate or velocity", name, names)
        if not (np.isfinite(weight) and weight >= 0):
            raise UserError(f"The weight of {name!r} is {weight}; it must be 0 or more.")
    return np.array([1 / max(weights.get(name, 1.0), 1e-300) ** 0.5 for name in names])


def check_unrefined(config: TrainingConfig) -> None:
    """Raise `UserError` for a refinement beside a loss of one's own."""
    if config.refinement:
        raise UserError(
            f"refinement is {config.refinement}, which makes squares small, and loss is "
            "one of your own. Leave one of them out."
        )


class Windows(eqx.Module):
    """Segments of trajectories, stacked; a single window has the same arrays without `n`."""

    t: Float[Array, "*n steps"]
    # The steps' lengths, taken before times are rounded to float32.
    dt: Float[Array, "*n w"]
    q: Float[Array, "*n steps nq"]
    v: Float[Array, "*n steps nq"]
    u: Float[Array, "*n steps nu"]
    mu: dict[str, Float[Array, "*n"]]

    def __len__(self) -> int:
        return self.t.shape[0]


def cut(system: AbstractSystem, data: Dataset, window: int | None) -> Windows:
    """Cut a dataset.

    **Arguments:**

    - `system`: whose parameters complete those of the runs.
    - `data`: the trajectories.
    - `window`: steps in each segment; None for whole trajectories.

    **Returns:**

    `Windows`, in order of trajectory and time.
    """
    lengths = {len(run) - 1 for run in data.trajectories}
    if window is None and len(lengths) > 1:
        raise UserError(
            f"Whole trajectories must have equal lengths, but there are {sorted(lengths)} steps. "
            "Set a window."
        )
    steps = window if window is not None else lengths.pop()
    if min(len(run) - 1 for run in data.trajectories) < steps:
        shortest = min(len(run) - 1 for run in data.trajectories)
        raise UserError(
            f"The window is {steps} steps, but the shortest trajectory has {shortest}. Shorten the "
            "window or leave that trajectory out."
        )
    segments = [
        _pieces(system, run, values, steps)
        for run, values in zip(data.trajectories, data.parameters, strict=True)
    ]
    joined = jax.tree.map(lambda *x: jnp.asarray(np.concatenate(x)), *segments)
    return Windows(**joined)


def _pieces(system, run, values, steps: int) -> dict[str, Any]:
    """The fields of `Windows` for one trajectory or one batch."""
    last = len(run) - 1
    starts = np.minimum(np.arange(0, last, steps), last - steps)
    rows = starts[:, None] + np.arange(steps + 1)[None, :]
    runs = 1 if run.t.ndim == 1 else run.t.shape[0]

    def take(values, columns):
        batch = np.asarray(values).reshape(runs, last + 1, *columns)
        return batch[:, rows].reshape(runs * len(starts), steps + 1, *columns)

    def spread(value):
        return np.repeat(np.broadcast_to(np.asarray(value, float), (runs,)), len(starts))

    rules = {parameter.name: parameter for parameter in system.parameters}
    singles = {name: value for name, value in values.items() if np.ndim(value) == 0}
    mu = {name: spread(value) for name, value in resolve_parameters(system, singles).items()}
    for name, value in values.items():
        if name not in mu:
            raise unknown_name("parameter", name, mu)
        if np.shape(value) not in ((), (runs,)):
            raise UserError(
                f"Parameter {name!r} has shape {np.shape(value)}; give one value, or one for each "
                f"of the {runs} runs."
            )
        mu[name] = spread(value)
        for extreme in (np.min(mu[name]), np.max(mu[name])):
            rules[name].check(float(extreme))
    q, v, u = (take(x, x.shape[-1:]) for x in (run.q, run.v, run.u))
    t = take(run.t, ())
    return {"t": t, "dt": np.diff(t, axis=1), "q": q, "v": v, "u": u, "mu": mu}


def with_scaling(model: AbstractMBDNODE, windows: Windows, missed: Any = None) -> AbstractMBDNODE:
    """The model with the mean and spread of its features, and the size of what it gives.

    Of a hybrid, `missed` are the accelerations or forces that what is known lacks. They are its
    unit, so that a correction of nothing is as small as they are.
    """
    center, spread = mean_and_spread(_features(model, windows))
    scales = _scales(model, windows)
    if missed is not None:
        size = _root_mean_square(np.asarray(missed)[:, None])
        scales = scales._replace(rate_mean=jnp.zeros_like(size), rate_spread=size)
    out_center, out_spread = model.structure.units(scales)
    return eqx.tree_at(
        lambda m: (m.center, m.spread, m.out_center, m.out_spread),
        model,
        (center, spread, out_center, out_spread),
    )


def with_affine_start(model: AbstractMBDNODE, windows: Windows) -> AbstractMBDNODE:
    """The model with its layers giving zero, and the affine part of a free network fitted.

    The two halves of the last hidden layer start as opposites: they cancel, and yet every weight of
    that layer has a slope, which it would not have below a last layer of zeros. Each step's mean
    rate is compared with the features halfway, which is right to second order; what the integrator
    makes of the step is for training.
    """
    network = model.network
    offset, slope = jnp.zeros_like(network.biases[-1]), _first_slopes(model)
    # The outputs of other structures are no accelerations that the data could tell.
    if not model.structure.reads_configuration:
        offset, slope = _affine_fit(model, windows)
    half = network.biases[-2].size // 2
    mirrored = lambda x: x.at[half : 2 * half].set(x[:half])  # noqa: E731
    last = network.weights[-1].at[:, half : 2 * half].set(-network.weights[-1][:, :half])
    return eqx.tree_at(
        lambda m: (
            *(m.network.weights[-2], m.network.biases[-2], m.network.weights[-1]),
            *(m.network.biases[-1], m.network.beside),
        ),
        model,
        (
            *(mirrored(network.weights[-2]), mirrored(network.biases[-2])),
            *(last.at[:, 2 * half :].set(0.0), offset, slope),
        ),
    )


def _first_slopes(model: AbstractMBDNODE) -> Any:
    """Zero but for outputs that count by their products, which zero would be a dead end for."""
    shape = model.structure.count, model.center.size
    drawn = np.resize(np.asarray(model.network.weights[0]), shape)
    return jnp.asarray(np.where(model.structure.squared[:, None], drawn, 0.0))


def _affine_fit(model: AbstractMBDNODE, windows: Windows) -> tuple[Any, Any]:
    """The offset and the slopes of the least-squares fit of the mean rates."""
    features, slopes = _features(model, halfway(windows)), _slopes(model, windows)
    rows, targets = (x.reshape(-1, x.shape[-1]) for x in (features, slopes))
    rows = (rows - np.asarray(model.center)) / np.asarray(model.spread)
    targets = (targets - np.asarray(model.out_center)) / np.asarray(model.out_spread)
    rows = np.concatenate([rows, np.ones((len(rows), 1), rows.dtype)], axis=1)
    found = np.linalg.lstsq(rows, targets, rcond=_STILL)[0].T
    return jnp.asarray(found[:, -1]), jnp.asarray(found[:, :-1])


def step_units(windows: Windows) -> tuple[Any, Any]:
    """How far each position and each velocity usually goes in one step."""
    v, dt = np.asarray(windows.v), np.asarray(windows.dt)
    accelerations = np.diff(v, axis=1) / dt[..., None]
    velocity, acceleration = (np.asarray(mean_and_spread(x)[1]) for x in (v, accelerations))
    return jnp.asarray(np.mean(dt) * velocity), jnp.asarray(np.mean(dt) * acceleration)


def _features(model: AbstractMBDNODE, windows: Windows) -> np.ndarray:
    """What the network reads at every state of every window, before scaling."""
    return np.asarray(_read(model, windows))


@eqx.filter_jit
def _read(model: AbstractMBDNODE, windows: Windows) -> Any:
    index = np.array(model.minimal)

    def row(t, q, v, u, mu):
        return model.features(t, q[index], v[index], u, mu)

    over_time = jax.vmap(row, in_axes=(0, 0, 0, 0, None))
    return jax.vmap(over_time)(windows.t, windows.q, windows.v, windows.u, windows.mu)


def _scales(model: AbstractMBDNODE, windows: Windows) -> Scales:
    """How large what the network's outputs are made of is in these windows."""
    index = np.array(model.minimal)
    angles = np.array([model.coordinates[i].is_angle for i in model.minimal])
    position = np.asarray(mean_and_spread(np.asarray(windows.q)[..., index])[1])
    largest = np.where(angles, 1.0, np.inf).astype(position.dtype)
    return Scales(
        *mean_and_spread(_slopes(model, windows)),
        position=jnp.asarray(np.minimum(position, largest)),
        velocity=_root_mean_square(np.asarray(windows.v)[..., index]),
        inputs=_root_mean_square(np.asarray(windows.u)[..., : model.structure.inputs]),
    )


def _root_mean_square(values: np.ndarray) -> Any:
    """Of every column, of which there may be none; one for what is always zero."""
    size = np.sqrt(np.mean(values**2, axis=(0, 1)))
    return jnp.asarray(np.where(size > 0, size, 1.0).astype(values.dtype))


def halfway(windows: Windows) -> Windows:
    """The middle of every step; inputs are held over it."""

    def between(values):
        rows = np.asarray(values)
        return jnp.asarray((rows[:, 1:] + rows[:, :-1]) / 2)

    return Windows(
        t=between(windows.t),
        dt=windows.dt,
        q=between(windows.q),
        v=between(windows.v),
        u=jnp.asarray(np.asarray(windows.u)[:, :-1]),
        mu=windows.mu,
    )


def _slopes(model: AbstractMBDNODE, windows: Windows) -> np.ndarray:
    """What the network would have to give for the mean rates of every step."""
    index, dt = np.array(model.minimal), np.asarray(windows.dt)
    rates, slopes = (
        np.diff(np.asarray(x)[..., index], axis=1) / dt[..., None] for x in (windows.q, windows.v)
    )
    if model.settings.order == "first":
        return np.concatenate([rates, slopes], axis=-1)
    if model.settings.divisor:
        return slopes * np.asarray(model.settings.divisor, slopes.dtype)
    return slopes
