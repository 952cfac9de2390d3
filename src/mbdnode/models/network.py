"""The paper's network: affine layers with an activation between them.

A linear part may stand beside the layers. It has no offset of its own, since the last layer's bias
is one.

Weights start as Xavier (variance `2/(in + out)`) or Kaiming (variance `2/in`). Biases are uniform
within `1/sqrt(in)`, which is what the paper's code leaves them at: at zero, every unit of a layer
would bend at the same place, and the mass-spring comes out two hundred times worse.
"""

import itertools
from dataclasses import dataclass
from typing import Any, Literal

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from mbdnode.config import check_types
from mbdnode.errors import UserError, check_memory

Activation = Literal["tanh", "relu", "softplus", "silu", "gelu", "sin", "sigmoid", "sigmoid,tanh"]
Initialization = Literal["xavier", "kaiming"]

ACTIVATIONS = {
    "tanh": jnp.tanh,
    "relu": jax.nn.relu,
    "softplus": jax.nn.softplus,
    "silu": jax.nn.silu,
    "gelu": jax.nn.gelu,
    "sin": jnp.sin,
    "sigmoid": jax.nn.sigmoid,
}


class Network(eqx.Module):
    """A fully connected network.

    **Arguments:**

    - `weights`, `biases`: of each layer; a weight has shape (out, in).
    - `activation`: between layers; several, with commas, take turns.
    - `beside`: a matrix from the input straight to the output, or None.
    """

    weights: tuple[Float[Array, "_ _"], ...]
    biases: tuple[Float[Array, " _"], ...]
    activation: str = eqx.field(static=True)
    beside: Float[Array, "_ _"] | None = None

    def __call__(self, x: Float[Array, " n_in"]) -> Float[Array, " n_out"]:
        """The network's value."""
        turns = itertools.cycle(self.activation.split(","))
        given = x
        for weight, bias in zip(self.weights[:-1], self.biases[:-1], strict=True):
            x = ACTIVATIONS[next(turns)](weight @ x + bias)
        value = self.weights[-1] @ x + self.biases[-1]
        return value if self.beside is None else value + self.beside @ given


@dataclass(frozen=True)
class NetworkConfig:
    """The shape of a network and how it begins; the defaults are those of the paper's baselines.

    **Arguments:**

    - `width`, `hidden_layers`: of the layers between input and output.
    - `activation`, `initialization`: by name.
    - `scaling`: inputs and outputs are shifted and scaled by the mean and the standard deviation of
        the training data.
    """

    width: int = 256
    hidden_layers: int = 2
    activation: Activation = "tanh"
    initialization: Initialization = "xavier"
    scaling: bool = True

    def __post_init__(self):
        check_types(self)
        for name in ("width", "hidden_layers"):
            if getattr(self, name) < 1:
                raise UserError(f"{name} is {getattr(self, name)}; it must be at least 1.")

    def make(self, count_in: int, count_out: int, seed: Any) -> Network:
        """An untrained network of this shape."""
        sizes = (count_in, *[self.width] * self.hidden_layers, count_out)
        return make_network(sizes, self.activation, self.initialization, seed)


def check_weights(count: int) -> None:
    """Raise `UserError` for more weights than fit in memory, before any of them is made."""
    # The weights, their gradient, two moments of Adam, and the next weights, in float64.
    needed_bytes = 5 * 8 * count
    check_memory(needed_bytes, f"A network of {count:,} weights", "Lower its width or layers.")


def make_network(
    sizes: tuple[int, ...],
    activation: Activation,
    initialization: Initialization,
    seed: Any,
    *,
    affine: bool = False,
) -> Network:
    """Draw a network.

    **Arguments:**

    - `sizes`: of the input, of each hidden layer, and of the output.
    - `activation`, `initialization`: by name.
    - `seed`: of the draw; NumPy draws, so the weights are the same on every device.
    - `affine`: put a linear part beside the layers, zero at first.

    **Returns:**

    A `Network` in float64.
    """
    if not isinstance(seed, int) or seed < 0:
        raise UserError(f"seed is {seed!r}; it must be a whole number, not negative.")
    check_weights(sum(before * after for before, after in itertools.pairwise(sizes)))
    random = np.random.default_rng(seed)
    weights = []
    for before, after in itertools.pairwise(sizes):
        variance = 2 / (before + after) if initialization == "xavier" else 2 / max(before, 1)
        weights.append(jnp.asarray(random.normal(size=(after, before)) * np.sqrt(variance)))
    biases = tuple(
        jnp.asarray(random.uniform(-1, 1, after) / np.sqrt(max(before, 1)))
        for before, after in itertools.pairwise(sizes)
    )
    beside = jnp.zeros((sizes[-1], sizes[0])) if affine else None
    return Network(tuple(weights), biases, activation, beside)
