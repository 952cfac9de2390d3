"""What gives states at times directly, with no rates to integrate.

A function of time and a network that continues a sequence are such. They know one motion, at the
times or at the step that they were trained on, and no inputs.
"""

import abc
from typing import Any

from jaxtyping import Array, Float

from mbdnode.multibody.system import AbstractNamed


class AbstractForecaster(AbstractNamed):
    """Named coordinates, and their values at given times."""

    @abc.abstractmethod
    def check_start(self, t: Any, past: Any) -> None:
        """Raise `UserError` unless it can go on from `past` to the times `t`.

        **Arguments:**

        - `t`: the times.
        - `past`: the first rows, `(k, 2 nq)`, positions before velocities.
        """

    @abc.abstractmethod
    def forecast(
        self, t: Float[Array, " n"], past: Float[Array, "k states"]
    ) -> Float[Array, "n states"]:
        """Positions and velocities at every time, from the first `k` of them."""
