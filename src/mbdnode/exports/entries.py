"""The functions of a model that are exported, as functions of arrays.

The state of an exported model is the whole state `q`, `v` and what a rollout remembers from step to
step (`simulation.rollout.Carry`): which coordinates are independent, and the monitor of singular
configurations. Of these, what never changes is left out: a model that is closed on its minimal
coordinates keeps its partition, constraints that are not redundant keep their rows.
"""

from dataclasses import dataclass
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from mbdnode.exports.consistent_start import assembled, chosen_partition, moving
from mbdnode.integrators import AbstractIntegrator
from mbdnode.multibody import (
    AbstractSystem,
    MotionPath,
    Partition,
    Split,
    complete,
    gamma,
    largest_residuals,
    tangent_at,
)
from mbdnode.simulation.rollout import NEEDS_PASSAGE, Carry, rollout_step, start_rollout
from mbdnode.simulation.singularity_monitor import Monitor
from mbdnode.status import Outcome
from mbdnode.trajectory import State


class Signature(NamedTuple):
    """What an exported function is."""

    reads_state: bool
    takes: tuple[str, ...]
    gives: tuple[str, ...] | None  # None for one that gives a state
    text: str


ENTRIES = {
    "init": Signature(
        False,
        ("t", "q", "v", "known", "p"),
        None,
        "A consistent state from what is known; the other values are guesses.",
    ),
    "project": Signature(
        True, ("t", "p"), None, "A state that was changed from outside, back on the constraints."
    ),
    "rates": Signature(True, ("t", "u", "p"), ("dq", "dv"), "The rates of the whole state."),
    "rates_derivative": Signature(
        True,
        ("t", "u", "p", "q_seed", "v_seed", "u_seed"),
        ("dq", "dv"),
        "The derivative of the rates along q_seed, v_seed and u_seed.",
    ),
    "step": Signature(
        True,
        ("t", "dt", "u", "p"),
        None,
        "The state a step later, in place; u is held over the step.",
    ),
    "outputs": Signature(
        True,
        ("t", "u", "p"),
        ("y",),
        "Energy, if there is one, and the largest residuals of the constraints.",
    ),
    "linearize": Signature(
        True, ("t", "u", "p"), ("A", "B"), "A and B of the minimal state, row by row."
    ),
}
# What an entry that changes the state returns, with a sentence for each.
_STATUSES = {
    Outcome.COMPLETED: "all is well",
    Outcome.NOT_FINITE: "diverged (NaN or Inf): take a smaller step",
    Outcome.CONSTRAINTS_UNSOLVED: "could not close the constraints: take a smaller step",
    Outcome.STEP_UNSOLVED: "could not solve the equations of the step: take a smaller one",
    Outcome.START_UNSOLVED: "no consistent state with the known values near the guess",
    Outcome.SINGULAR: "came to a singular configuration",
}
STATUS_TEXTS = (
    *((outcome.name, outcome.value, text) for outcome, text in _STATUSES.items()),
    (
        "NEEDS_PASSAGE",
        NEEDS_PASSAGE,
        "a singular configuration is near: the step was taken, with less accuracy",
    ),
)
Fields = dict[str, Any]


@dataclass(frozen=True)
class Plant:
    """A model as it is exported."""

    system: AbstractSystem
    integrator: AbstractIntegrator
    partition: Partition  # where the model is assembled; its sizes hold everywhere
    potential: Any = None  # the model that knows the energy; None if there is none

    @property
    def repartition(self) -> bool:
        """Whether the independent coordinates change."""
        return not self.system.closed_on_minimal

    @property
    def is_constrained(self) -> bool:
        """Whether some velocities depend on others."""
        return self.partition.velocity.dependent.shape[0] > 0

    @property
    def has_two_splits(self) -> bool:
        """Whether positions are split differently than velocities."""
        return self.partition.position.rows.shape != self.partition.velocity.rows.shape

    def mu(self, p):
        """The parameters by name."""
        return {name: p[i] for i, name in enumerate(self.system.parameter_names)}

    def fields(self, carry: Carry, code: Any = None) -> Fields:
        """What is kept of a rollout between calls."""
        found: Fields = {"q": carry.state.q, "v": carry.state.v}
        partition, monitor = carry.partition, carry.monitor
        if self.is_constrained:
            found["scale"] = partition.scale
            if self.repartition:
                found |= self._split_fields("velocity", partition.velocity)
                if self.has_two_splits:
                    found |= self._split_fields("position", partition.position)
            if partition.may_branch:
                found["determinant"], found["trend"] = monitor.determinant, monitor.trend
        found["code"] = carry.code if code is None else code
        found["coordinate"] = carry.coordinate
        return found

    def _split_fields(self, which: str, split: Split) -> Fields:
        found = {f"{which}_dependent": split.dependent, f"{which}_independent": split.independent}
        if self.partition.redundant:
            found[f"{which}_rows"] = split.rows
        return found

    def _split(self, which: str, fields: Fields) -> Split:
        own: Split = getattr(self.partition, which)
        name = f"{which}_dependent"
        if name not in fields:
            parts = (own.rows, own.dependent, own.independent)
            rows, dependent, independent = (jnp.asarray(np.asarray(x)) for x in parts)
            return own.replaced(rows, dependent, independent)
        rows = fields.get(f"{which}_rows", jnp.asarray(np.asarray(own.rows)))
        return own.replaced(rows, fields[name], fields[f"{which}_independent"])

    def partition_of(self, fields: Fields) -> Partition:
        """The partition that a state is in."""
        velocity = self._split("velocity", fields)
        position = self._split("position", fields) if self.has_two_splits else velocity
        q = fields["q"]
        scale = fields.get("scale", jnp.ones(q.shape, q.dtype))
        return Partition(position, velocity, scale, self.partition.redundant)

    def carry(self, fields: Fields) -> Carry:
        """What a rollout would have handed to its next step."""
        q, v = fields["q"], fields["v"]
        zero = jnp.zeros((), q.dtype)
        path = MotionPath(jnp.zeros_like(v), zero, zero)
        monitor = Monitor(
            path,
            fields.get("determinant", zero + 1),
            fields.get("trend", zero),
            jnp.array(False),
            jnp.zeros((), int),
            jnp.full((), jnp.nan, q.dtype),
        )
        state = State(q, v)
        code = jnp.zeros((), int)
        return Carry(state, self.partition_of(fields), monitor, code, code, code - 1)

    # The entries

    def init(self, t, q, v, known, p) -> Fields:
        """A consistent state from what is known."""
        mu, system, count = self.mu(p), self.system, q.shape[0]
        q, placed = assembled(system, t, q, known[:count], mu)
        v, moves = moving(system, t, q, v, known[count:], mu)
        if self.is_constrained:
            partition = chosen_partition(system, self.partition, t, q, mu)
        else:
            partition = self.partition_of({"q": q})
        carry = start_rollout(system, t, State(q, v), partition, mu, self.repartition, True)
        code = jnp.where(placed & moves, carry.code, Outcome.START_UNSOLVED.value)
        return self.fields(carry, code)

    def project(self, fields: Fields, t, p) -> Fields:
        """A state that somebody else has moved, back on the constraints."""
        state, partition = State(fields["q"], fields["v"]), self.partition_of(fields)
        given = (t, state, partition, self.mu(p), self.repartition, True)
        return self.fields(start_rollout(self.system, *given))

    def step(self, fields: Fields, t, dt, u, p) -> Fields:
        """The state a step later."""
        given = (t, dt, lambda _: u, self.mu(p), self.repartition, True)
        after, doubtful = rollout_step(self.system, self.integrator, self.carry(fields), *given)
        good = after.code == Outcome.COMPLETED.value
        return self.fields(after, jnp.where(good & doubtful, NEEDS_PASSAGE, after.code))

    def minimal_motion(self, partition: Partition, t, x, near, u, mu) -> "MinimalMotion":
        """The state that minimal coordinates and velocities `x` belong to, and their rates.

        The constraints are closed from a configuration near by.
        """
        count = partition.position.independent.shape[0]
        z, s = x[:count], x[count:]
        q, v, tangent, closed = complete(self.system, partition, t, z, s, near, mu)
        if self.system.closed_on_minimal:
            rates = self.system.minimal_rates(t, z, s, u, mu)
        else:
            a = self.system.independent_acceleration(t, q, v, u, mu, tangent)
            rates = partition.position.take_independent(v), a
        singular = tangent.singular if self.is_constrained else jnp.array(False)
        return MinimalMotion(q, v, jnp.concatenate(rates), closed & ~singular)

    def rates(self, fields: Fields, t, u, p):
        """The rates of the whole state."""
        q, v = fields["q"], fields["v"]
        return self._rates(self.partition_of(fields), t, q, v, u, self.mu(p))

    def _rates(self, partition: Partition, t, q, v, u, mu):
        system = self.system
        tangent = tangent_at(system, partition.velocity, t, q, mu)
        if system.closed_on_minimal:
            z = partition.position.take_independent(q)
            s = partition.velocity.take_independent(v)
            moved, a = system.minimal_rates(t, z, s, u, mu)
            v = tangent.velocity(moved)
        else:
            a = system.independent_acceleration(t, q, v, u, mu, tangent)
        return v, tangent.acceleration(a, gamma(system, t, q, v, mu))

    def rates_derivative(self, fields: Fields, t, u, p, q_seed, v_seed, u_seed):
        """The derivative of the rates along a direction."""
        partition, mu = self.partition_of(fields), self.mu(p)
        rates = lambda q, v, w: self._rates(partition, t, q, v, w, mu)  # noqa: E731
        at, along = (fields["q"], fields["v"], u), (q_seed, v_seed, u_seed)
        return jax.jvp(rates, at, along)[1]

    def outputs(self, fields: Fields, t, u, p):
        """Energy, if there is one, and how well the constraints are kept, if they are known."""
        return self.quantities(t, fields["q"], fields["v"], self.mu(p))

    def quantities(self, t, q, v, mu):
        """What `outputs` gives, of any state."""
        known = self.system.residual_system is not None
        found = [*largest_residuals(self.system, t, q, v, mu)] if known else []
        if self.potential is not None:
            kinetic = 0.5 * v @ self.potential.mass(q, mu) @ v
            found.insert(0, kinetic + self.potential.potential_energy(q, mu))
        return jnp.array(found, q.dtype)

    def linearize(self, fields: Fields, t, u, p):
        """`A` and `B` of the minimal state, about a state."""
        partition, mu, near = self.partition_of(fields), self.mu(p), fields["q"]
        rate = lambda x, w: self.minimal_motion(partition, t, x, near, w, mu).rates  # noqa: E731
        z = partition.position.take_independent(near)
        s = partition.velocity.take_independent(fields["v"])
        return jax.jacfwd(rate, argnums=(0, 1))(jnp.concatenate([z, s]), u)


class MinimalMotion(NamedTuple):
    """A whole state `q`, `v`, the rates of its minimal one, and whether the constraints closed."""

    q: Any
    v: Any
    rates: Any
    closed: Any
