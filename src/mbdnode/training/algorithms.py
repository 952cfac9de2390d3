"""The paper's algorithms 1, 2 and 3, and the loss that is made of them.

Each of them integrates the network over a window of the data by `Phi`, the integrator, and compares
what comes out with the states that follow in the data:

| | integrated | compared |
|---|---|---|
| algorithm 1 | every coordinate of a system without constraints | every coordinate |
| algorithm 2 | the minimal coordinates | every coordinate, completed by the constraints |
| algorithm 3 | the minimal coordinates | the minimal coordinates |

    L = mean over steps and components of ((Z_hat - Z) / unit)^2

with units of one in the paper, or of each component's usual change over a step, so that all of them
count. A model with soft constraints adds `g(phi)`, with `phi` the residuals of position and
velocity at the predicted states: `penalty * phi^2`, and for the augmented Lagrangian `lambda phi`
as well.

The loop around the loss, over epochs and steps, is `train.run_epoch`.
"""

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any, ClassVar

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from mbdnode.errors import UserError
from mbdnode.integrators import AbstractIntegrator, get_integrator
from mbdnode.models import AbstractObjective, AbstractRateModel
from mbdnode.models.mbdnode import AbstractMBDNODE
from mbdnode.models.objective import refuse_unused
from mbdnode.multibody import (
    Partition,
    choose_partition,
    complete,
    position_residual,
    resolve_parameters,
    velocity_residual,
)
from mbdnode.recipes import TrainingConfig
from mbdnode.training.prepare import (
    Units,
    Windows,
    check_unrefined,
    cut,
    sizes,
    step_units,
    suitable_integrator,
    with_affine_start,
    with_scaling,
)
from mbdnode.training.refine import fit_affine
from mbdnode.trajectory import Dataset

# Windows, evenly over all of them, to which the affine part is fitted first: few enough to be fast,
# and always as many, so that one compiled program serves.
_START_WINDOWS = 256
# A mean squared error from which on Adam has its full rate.
_LARGE = 1e-2

# Of positions and of velocities, after each step of a window.
Errors = tuple[Float[Array, "w nz"], Float[Array, "w nz"]]


def algorithm_1(objective: "StepObjective", model: AbstractRateModel, window: Windows) -> Errors:
    """Algorithm 1: no constraints, or none that are kept.

    Z_hat_{i+1} = Phi(Z_i, f, dt_i),        L = |Z_{i+1} - Z_hat_{i+1}|^2
    """
    positions, velocities = integrate(objective, model, window)
    return positions - window.q[1:], velocities - window.v[1:]


def algorithm_2(objective: "StepObjective", model: AbstractRateModel, window: Windows) -> Errors:
    """Algorithm 2: constraints, and data of the dependent coordinates `Z^R`.

    Z_hat^M_{i+1} = Phi(Z^M_i, f, dt_i),    Z_hat^R_{i+1} = phi^-1(Z_hat^M_{i+1}),
    L = |Z_{i+1} - (Z_hat^M_{i+1}, Z_hat^R_{i+1})|^2
    """
    minimal = integrate(objective, model, window)
    positions, velocities = recover(objective.partition, model, window, *minimal)
    return positions - window.q[1:], velocities - window.v[1:]


def algorithm_3(objective: "StepObjective", model: AbstractRateModel, window: Windows) -> Errors:
    """Algorithm 3: constraints, and data of the minimal coordinates `Z^M` alone.

    Z_hat^M_{i+1} = Phi(Z^M_i, f, dt_i),    L = |Z^M_{i+1} - Z_hat^M_{i+1}|^2
    """
    positions, velocities = integrate(objective, model, window)
    index = np.array(model.minimal)
    return positions - window.q[1:, index], velocities - window.v[1:, index]


def integrate(
    objective: "StepObjective", model: AbstractRateModel, window: Windows
) -> tuple[Float[Array, "w nz"], Float[Array, "w nz"]]:
    """`Phi`: the minimal coordinates and their rates after each step of the window."""
    index = np.array(model.minimal)
    z, s = window.q[:, index], window.v[:, index]
    if objective.config.gradient == "adjoint":
        return _integrate_by_adjoint(model, objective.integrator, window, z[0], s[0])

    def advance(y, step):
        t, dt, u, known, near = step
        rate = lambda time, x: model.rates_near(time, x[0], x[1], u, window.mu, near)  # noqa: E731
        y = objective.integrator.step_towards(rate, t, dt, y, known)
        return y, y

    steps = (window.t[:-1], window.dt, window.u[:-1], (z[1:], s[1:]), window.q[:-1])
    if window.t.shape[0] == 2:
        only = advance((z[0], s[0]), jax.tree.map(lambda x: x[0], steps))[1]
        return only[0][None], only[1][None]
    return jax.lax.scan(advance, (z[0], s[0]), steps)[1]


def _integrate_by_adjoint(model, integrator, window: Windows, z, s):
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


def recover(partition: Partition, model: AbstractRateModel, window: Windows, z, s):
    """`phi^-1`: the whole states; the true ones are the guess, so Newton needs few steps."""

    def one(t, positions, rates, near):
        q, v, _, _ = complete(model, partition, t, positions, rates, near, window.mu)
        return q, v

    return jax.vmap(one)(window.t[1:], z, s, jax.lax.stop_gradient(window.q[1:]))


class StepObjective(AbstractObjective):
    """The loss of windows, through the integrator, by one of the paper's algorithms.

    **Arguments:**

    - `examples`: the windows.
    - `integrator`, `partition`, `config`: how a window is integrated and compared.
    - `units`: of positions and velocities, one for each coordinate; None for ones.
    - `measure`: of a window's errors, a row for each step with positions and then velocities; None
        for their mean square.
    """

    examples: Windows
    integrator: AbstractIntegrator
    partition: Partition
    config: TrainingConfig = eqx.field(static=True)
    units: Units | None = None
    measure: Callable[[Array], Array] | None = eqx.field(static=True, default=None)

    takes_streams: ClassVar[bool] = True

    def loss(self, model: Any, example: Windows, multipliers):
        """The window's squared error, with what soft constraints and a hybrid's correction add."""
        error = self.prediction_loss(model, example)
        if model.settings.constraints in ("penalty", "augmented"):
            residual = self._soft_residual(model, example)
            error = error + self.config.penalty * jnp.mean(residual**2)
            if model.settings.constraints == "augmented":
                error = error + jnp.mean(multipliers * residual)
        if model.corrected is not None:
            error = error + jnp.mean(correction_errors(model, example, self.units) ** 2)
        return error

    def prediction_loss(self, model: Any, example: Windows) -> Float[Array, ""]:
        """What the predictions alone cost."""
        positions, velocities = self._scaled_errors(model, example)
        if self.measure is not None:
            return self.measure(jnp.concatenate([positions, velocities], axis=1))
        return jnp.mean(positions**2 + velocities**2) / 2

    def prediction_errors(self, model: Any, example: Windows) -> Float[Array, " m"]:
        """Those of the positions, then those of the velocities; their mean square is the loss."""
        return jnp.concatenate([x.reshape(-1) for x in self._scaled_errors(model, example)])

    def errors(self, model: Any, example: Windows):
        """What the window's squared error is made of.

        The velocities' alone for a model that gives accelerations: within a step the positions
        follow from the same ones, and tell less of them by a factor of the step. A penalty's
        residuals follow, weighted so that their mean counts as it does in the loss.
        """
        if model.settings.order == "first":
            return self.prediction_errors(model, example)
        velocities = self._scaled_errors(model, example)[1].reshape(-1)
        if model.settings.constraints == "penalty":
            residual = self._soft_residual(model, example)
            weight = (self.config.penalty * velocities.size / residual.size) ** 0.5
            velocities = jnp.concatenate([velocities, weight * residual])
        if model.corrected is None:
            return velocities
        return jnp.concatenate([velocities, correction_errors(model, example, self.units)])

    def _scaled_errors(self, model: Any, window: Windows) -> Errors:
        """The errors of the algorithm that model and configuration ask for, in their units."""
        index = np.array(model.minimal)
        if len(index) == len(model.coordinates):
            errors = algorithm_1(self, model, window)
        elif self.config.loss == "full":
            errors, index = algorithm_2(self, model, window), np.arange(len(model.coordinates))
        else:
            errors = algorithm_3(self, model, window)
        if self.units is None:
            return errors
        return errors[0] / self.units[0][None, index], errors[1] / self.units[1][None, index]

    def _soft_residual(self, model: Any, window: Windows) -> Float[Array, " k"]:
        """`phi` of position and velocity at every predicted state, in one vector."""

        def one(t, q, v):
            position = position_residual(model.body, t, q, window.mu)
            velocity = velocity_residual(model.body, t, q, v, window.mu)
            return jnp.concatenate([position, velocity])

        states = integrate(self, model, window)
        return jax.vmap(one)(window.t[1:], *states).reshape(-1)

    def start(self, model: Any) -> tuple[Any, float]:
        """With an affine part that is fitted first, and a rate that is as small as what is left.

        Adam moves every weight by about its rate, however small the slopes are: where the affine
        part says nearly all, a usual rate would undo it.
        """
        if not (self.config.refinement and _has_affine_start(model)):
            return super().start(model)
        rows = np.linspace(0, len(self) - 1, _START_WINDOWS).round().astype(int)
        picked = jax.tree.map(lambda x: jax.device_put(np.asarray(x)[rows]), self.examples)
        network, loss = fit_affine(eqx.tree_at(lambda o: o.examples, self, picked), model)
        return network, min(1.0, (loss / _LARGE) ** 0.5)

    def first_multipliers(self, model: Any):
        """One for each constraint residual of each window."""
        if model.settings.constraints != "augmented":
            return super().first_multipliers(model)
        first = jax.tree.map(lambda x: x[0], self.examples)
        size = jax.eval_shape(lambda: self._soft_residual(model, first)).shape[0]
        return jnp.zeros((len(self), size), self.examples.q.dtype)

    def raised_multipliers(self, model: Any, multipliers):
        """The augmented Lagrangian's update, `lambda += 2 penalty phi`."""
        if model.settings.constraints != "augmented":
            return multipliers
        residual = jax.vmap(lambda window: self._soft_residual(model, window))(self.examples)
        return multipliers + 2 * self.config.penalty * residual

    def weighted(self, model: Any, weights: Mapping[str, float]) -> "StepObjective":
        """With the squared errors of coordinates and velocities times these, by name."""
        names = (*model.coordinate_names, *model.rate_names)
        size, kind = sizes(weights, names), self.examples.q.dtype
        ones = (jnp.ones(len(names) // 2, kind),) * 2
        units = zip(self.units or ones, np.split(size, 2), strict=True)
        return replace(self, units=tuple(unit * jnp.asarray(x, kind) for unit, x in units))

    def measured_by(self, model: Any, measure: Callable[[Array], Array]) -> "StepObjective":
        """With a loss of one's own in place of the mean square."""
        check_unrefined(self.config)
        return replace(self, measure=measure)

    def on(self, model: Any, data: Dataset) -> "StepObjective":
        """The same on other data."""
        windows = cut(model, data, self.config.window)
        return replace(self, examples=windows)

    @classmethod
    def check(cls, model: Any, config: TrainingConfig) -> None:
        """Raise `UserError` for an integrator that does not suit model, gradient or precision."""
        integrator = suitable_integrator(model, config)
        refuse_unused(model, config, ("targets",))
        if config.refinement and model.settings.constraints == "augmented":
            raise UserError(
                f"refinement is {config.refinement}, but it raises no multipliers, and the model's "
                "constraints are 'augmented'. Leave it out, or use constraints='penalty' or 'hard'."
            )
        if config.refinement and (model.settings.constraints, model.settings.order) == (
            "penalty",
            "first",
        ):
            raise UserError(
                f"refinement is {config.refinement}, but with constraints='penalty' it knows "
                "models of accelerations alone, and order is 'first'. Leave it out, or use "
                "order='second'."
            )
        tolerance = getattr(integrator, "rtol", None)  # Of those of Diffrax.
        if config.gradient == "adjoint" and not hasattr(integrator, "rtol"):
            raise UserError(
                f"gradient='adjoint' solves with Diffrax, which has no {config.integrator!r}; use "
                "one of its integrators, such as 'dopri5'."
            )
        finest = float(jnp.finfo(config.precision).eps)
        if tolerance and tolerance < finest:
            raise UserError(
                f"The integrator {config.integrator!r} asks for a tolerance of {tolerance:g}, "
                f"but {config.precision} resolves {finest:.1g}. Use precision='float64'."
            )

    @classmethod
    def prepare(cls, model: Any, data: Dataset, config: TrainingConfig) -> tuple[Any, Any]:
        """Cut the data into windows."""
        windows = cut(model, data, config.window)
        units = step_units(windows) if config.scaled_loss else None
        partition = own_partition(model, windows)
        objective = cls(windows, get_integrator(config.integrator), partition, config, units)
        return started(model, windows, objective), objective


def started(model: Any, windows: Windows, steps: StepObjective) -> Any:
    """An MBD-NODE with the scales of its data and the start of its affine part."""
    if isinstance(model, AbstractMBDNODE) and model.settings.scaling:
        missed = None if model.corrected is None else _missed(steps, model)
        model = with_scaling(model, windows, missed)
    return with_affine_start(model, windows) if _has_affine_start(model) else model


def _has_affine_start(model: Any) -> bool:
    """Whether the affine part is fitted first: it begins at zero where a hybrid has one."""
    known = isinstance(model, AbstractMBDNODE) and model.corrected is None
    return known and model.settings.affine


def correction_errors(
    model: Any, window: Windows, units: Units | None = None
) -> Float[Array, " m"]:
    """What a hybrid's correction adds to the velocities in each step, weighted."""
    index = np.array(model.minimal)

    def one(t, dt, q, v, u):
        return dt * model.learned_acceleration(t, q[index], v[index], u, window.mu, q)

    starts = (window.t[:-1], window.dt, window.q[:-1], window.v[:-1], window.u[:-1])
    added = jax.vmap(one)(*starts)
    if units is not None:
        added = added / units[1][None, index]
    return (model.settings.correction_weight**0.5 * added).reshape(-1)


def _missed(objective: StepObjective, model: Any):
    """The accelerations or forces that what is known lacks, by the first step of every window."""
    index, windows = np.array(model.minimal), objective.examples

    @eqx.filter_jit
    def velocities(objective, model):
        one = lambda window: integrate(objective, model, window)[1][0]  # noqa: E731
        return jax.vmap(one)(objective.examples)

    gone = windows.v[:, 1, index] - velocities(objective, model)
    gone = gone / windows.dt[:, :1]
    if not model.structure.gives_forces:
        return gone

    def force(window, missed):
        place = window.t[0], window.q[0, index], window.mu, window.q[0]
        return model.known.mass(*place) @ missed

    return jax.vmap(force)(windows, gone)


def own_partition(model: AbstractRateModel, windows: Windows) -> Partition:
    """The model's own split; its minimal coordinates are named, so any configuration serves."""
    mu = resolve_parameters(model)
    return choose_partition(model, jnp.zeros(()), jnp.asarray(windows.q[0, 0], float), mu)
