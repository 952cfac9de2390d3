"""The paper's losses on one window: integrate from its first state, compare with the others.

    L = mean over steps and components of ((Z_hat - Z) / unit)^2

with units of one in the paper, or of each component's usual change over a step, so that all of
them count; on the minimal coordinates, or on the whole state completed from them. A model with soft
constraints adds `g(phi)`, with `phi` the residuals of position and velocity at the predicted
states: `penalty * phi^2`, and for the augmented Lagrangian `lambda phi` as well.

Trajectories cut into windows of equal length, which is what every loss works on.

A window of w steps holds w + 1 states. A trajectory of n steps gives the windows that start at 0,
w, 2w, ...; if w does not divide n, the last window is moved back to end at the last state, so
that nothing is left out and all have one shape.
"""

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from mbdnode.errors import UserError
from mbdnode.integrators import AbstractIntegrator
from mbdnode.models import MBDNODE, AbstractRateModel
from mbdnode.multibody import (
    AbstractSystem,
    Partition,
    complete,
    position_residual,
    resolve_parameters,
    velocity_residual,
)
from mbdnode.naming import unknown_name
from mbdnode.recipes import TrainingConfig
from mbdnode.trajectory import Dataset


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


Units = tuple[Float[Array, " nq"], Float[Array, " nq"]]


def predict(
    model: AbstractRateModel,
    integrator: AbstractIntegrator,
    config: TrainingConfig,
    window: Windows,
) -> tuple[Float[Array, "w nz"], Float[Array, "w ns"]]:
    """The minimal coordinates and their rates after each step of the window."""
    index = np.array(model.minimal)
    z, s = window.q[:, index], window.v[:, index]
    if config.gradient == "adjoint":
        return _predict_by_adjoint(model, integrator, window, z[0], s[0])

    def advance(y, step):
        t, dt, u, known, near = step
        rate = lambda time, x: model.rates_near(time, x[0], x[1], u, window.mu, near)  # noqa: E731
        y = integrator.step_towards(rate, t, dt, y, known)
        return y, y

    steps = (window.t[:-1], window.dt, window.u[:-1], (z[1:], s[1:]), window.q[:-1])
    if window.t.shape[0] == 2:
        only = advance((z[0], s[0]), jax.tree.map(lambda x: x[0], steps))[1]
        return only[0][None], only[1][None]
    return jax.lax.scan(advance, (z[0], s[0]), steps)[1]


def _predict_by_adjoint(model, integrator, window: Windows, z, s):
    """One solve over the whole window, differentiated by solving backwards: memory stays flat."""
    import diffrax  # Slow to load, for few.

    from mbdnode.integrators import Adaptive

    assert isinstance(integrator, Adaptive)
    # Diffrax differentiates what it is given as arguments, so all that varies must be among them.
    weights, shape = eqx.partition((model, window.mu), eqx.is_array)

    def field(t, y, args):
        arrays, inputs, times, places = args
        model, mu = eqx.combine(arrays, shape)
        interval = jnp.clip(jnp.searchsorted(times, t, side="right") - 1, 0, len(times) - 2)
        return model.rates_near(t, y[0], y[1], inputs[interval], mu, places[interval])

    solution = diffrax.diffeqsolve(
        diffrax.ODETerm(field),
        integrator.solver,
        window.t[0],
        window.t[-1],
        window.dt[0],
        (z, s),
        (weights, window.u, window.t, window.q),
        saveat=diffrax.SaveAt(ts=window.t[1:]),
        stepsize_controller=diffrax.StepTo(window.t)
        if integrator.rtol is None or integrator.atol is None
        else diffrax.PIDController(integrator.rtol, integrator.atol),
        adjoint=diffrax.BacksolveAdjoint(),
        max_steps=integrator.max_steps * (window.t.shape[0] - 1),
        throw=False,
    )
    assert solution.ys is not None
    solved = solution.result == diffrax.RESULTS.successful
    z, s = (jnp.where(solved, y, jnp.nan) for y in solution.ys)
    return z, s


def window_loss(
    model: AbstractRateModel,
    integrator: AbstractIntegrator,
    config: TrainingConfig,
    partition: Partition,
    window: Windows,
    multipliers: Float[Array, " k"],
    units: Units | None = None,
) -> Float[Array, ""]:
    """The loss of one window.

    **Arguments:**

    - `model`, `integrator`, `config`: what is trained, and how.
    - `partition`: of the model's coordinates.
    - `window`: the data.
    - `multipliers`: of this window's constraint residuals, for an augmented Lagrangian.
    - `units`: of positions and velocities, one for each coordinate; None for ones.

    **Returns:**

    The mean squared error, with what soft constraints add.
    """
    z, s = predict(model, integrator, config, window)
    positions, velocities = _errors(model, config, partition, window, units, z, s)
    error = jnp.mean(positions**2 + velocities**2) / 2
    if model.settings.constraints in ("penalty", "augmented"):
        residual = soft_residual(model, window, z, s)
        error = error + config.penalty * jnp.mean(residual**2)
        if model.settings.constraints == "augmented":
            error = error + jnp.mean(multipliers * residual)
    return error


def window_errors(
    model: AbstractRateModel,
    integrator: AbstractIntegrator,
    config: TrainingConfig,
    partition: Partition,
    window: Windows,
    units: Units | None = None,
) -> Float[Array, " m"]:
    """Every error of one window, in one vector, whose mean square is its loss.

    **Arguments:**

    - `model`, `integrator`, `config`, `partition`, `window`, `units`: as for `window_loss`; what
        soft constraints add to that is not in it.

    **Returns:**

    The errors of the positions, then those of the velocities.
    """
    z, s = predict(model, integrator, config, window)
    positions, velocities = _errors(model, config, partition, window, units, z, s)
    return jnp.concatenate([positions.reshape(-1), velocities.reshape(-1)])


def correction_errors(
    model: MBDNODE, window: Windows, units: Units | None = None
) -> Float[Array, " m"]:
    """What a hybrid's correction adds to the velocities in each step, weighted: it is to be small.

    **Arguments:**

    - `model`: a hybrid.
    - `window`, `units`: as for `window_loss`.

    **Returns:**

    One vector, whose mean square is added to the loss.
    """
    index = np.array(model.minimal)

    def one(t, dt, q, v, u):
        return dt * model.learned_acceleration(t, q[index], v[index], u, window.mu, q)

    starts = (window.t[:-1], window.dt, window.q[:-1], window.v[:-1], window.u[:-1])
    added = jax.vmap(one)(*starts)
    if units is not None:
        added = added / units[1][None, index]
    return (model.settings.correction_weight**0.5 * added).reshape(-1)


def _errors(model: AbstractRateModel, config, partition: Partition, window: Windows, units, z, s):
    """Of positions and of velocities, in their units, at every step of the window."""
    index = np.array(model.minimal)
    if config.loss == "full" and len(index) < len(model.coordinates):
        z, s = complete_window(model, partition, window, z, s)
        index = np.arange(len(model.coordinates))
    positions, velocities = z - window.q[1:, index], s - window.v[1:, index]
    if units is None:
        return positions, velocities
    return positions / units[0][None, index], velocities / units[1][None, index]


def complete_window(model, partition: Partition, window: Windows, z, s):
    """The whole predicted states; the true ones are the guess, so Newton needs few steps."""

    def one(t, positions, rates, near):
        q, v, _, _ = complete(model, partition, t, positions, rates, near, window.mu)
        return q, v

    return jax.vmap(one)(window.t[1:], z, s, jax.lax.stop_gradient(window.q[1:]))


def soft_residual(model: AbstractRateModel, window: Windows, q, v) -> Float[Array, " k"]:
    """Residuals of position and velocity at every predicted state, in one vector."""
    body = model.body

    def one(t, x, w):
        position = position_residual(body, t, x, window.mu)
        return jnp.concatenate([position, velocity_residual(body, t, x, w, window.mu)])

    return jax.vmap(one)(window.t[1:], q, v).reshape(-1)
