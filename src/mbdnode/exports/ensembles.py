"""An ensemble as one exported model: every member takes its own steps, the state is their mean.

`simulate` takes the mean of the members' independent coordinates and completes it by the
constraints; so does the exported step. Between calls the state keeps what the members have reached,
`member_q` and `member_v`, and the outputs say how far they are apart: the standard deviation of
every coordinate and velocity. A loop over the members runs one code on the rows of their weights,
so that the code of ten is as long as that of one.
"""

from dataclasses import dataclass
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp

from mbdnode.exports.entries import Fields, Plant
from mbdnode.simulation.ensemble import spread_of
from mbdnode.simulation.rollout import NEEDS_PASSAGE, given_step, rollout_step
from mbdnode.status import Outcome

# Rates of a mean are no function of the mean, so that there is nothing to give to other solvers.
ENSEMBLE_ENTRIES = ("init", "project", "step", "outputs")


@dataclass(frozen=True)
class EnsemblePlant(Plant):
    """An ensemble as it is exported; the system is that of its first member."""

    ensemble: Any = None

    @property
    def repartition(self) -> bool:
        """No: a mean is of the same coordinates of all members."""
        return False

    def _gathered(self, fields: Fields) -> Fields:
        """All members at the mean, as at the start of a motion."""
        rows = {k: jnp.tile(fields[k][None], (len(self.ensemble), 1)) for k in ("q", "v")}
        return {**fields, "member_q": rows["q"], "member_v": rows["v"]}

    def init(self, t, q, v, known, p) -> Fields:
        """A consistent state from what is known, of all members."""
        return self._gathered(super().init(t, q, v, known, p))

    def project(self, fields: Fields, t, p) -> Fields:
        """A mean that somebody else has moved, back on the constraints; the members begin there."""
        return self._gathered(super().project(fields, t, p))

    def step(self, fields: Fields, t, dt, u, p) -> Fields:
        """The mean of the members a step later."""
        mu, split = self.mu(p), self.partition_of(fields)

        def advance(_, own):
            weights, q, v = own
            system = eqx.combine(weights, self.ensemble.shared).core
            before = self.carry({**fields, "q": q, "v": v})
            given = (t, dt, lambda _: u, mu, False, True)
            after, doubtful = rollout_step(system, self.integrator, before, *given)
            z = split.position.take_independent(after.state.q)
            s = split.velocity.take_independent(after.state.v)
            return None, (after.state.q, after.state.v, z, s, after.code, doubtful)

        rows = (self.ensemble.stacked, fields["member_q"], fields["member_v"])
        _, (q, v, z, s, codes, doubtful) = jax.lax.scan(advance, None, rows)
        before, middle = self.carry(fields), (jnp.mean(z, axis=0), jnp.mean(s, axis=0))
        after = given_step(self.system, before, t, dt, *middle, mu, True)
        # The first member that failed has the word, unless the mean could not be completed.
        failed = codes != Outcome.COMPLETED.value
        code = jnp.where(jnp.any(failed), codes[jnp.argmax(failed)], after.code)
        good = code == Outcome.COMPLETED.value
        mean = self.fields(after, jnp.where(good & jnp.any(doubtful), NEEDS_PASSAGE, code))
        moved = {**mean, "member_q": q, "member_v": v}
        keeps = {k: jnp.where(good, moved[k], fields[k]) for k in moved if k != "code"}
        return {**keeps, "code": mean["code"]}

    def outputs(self, fields: Fields, t, u, p):
        """Those of the mean, and the standard deviation of every coordinate and velocity."""
        spread = [spread_of(fields["member_q"]), spread_of(fields["member_v"])]
        return jnp.concatenate([super().outputs(fields, t, u, p), *spread])
