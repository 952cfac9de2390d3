"""The paper's network: affine layers with an activation between them.

A linear part may stand beside the layers. It has no offset of its own, since the last layer's bias
is one. Several small networks, each of which reads a few of the inputs and gives one output, are
one `Network` too: its arrays are theirs, stacked.

Weights start as Xavier (variance `2/(in + out)`) or Kaiming (variance `2/in`). Biases are uniform
within `1/sqrt(in)`, which is what the paper's code leaves them at: at zero, every unit of a layer
would bend at the same place, and the mass-spring comes out two hundred times worse.
"""

import itertools
import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from mbdnode.config import check_types
from mbdnode.errors import UserError, check_memory
from mbdnode.naming import import_object, is_own, known_object, object_name, unknown_name

# Names of `ACTIVATIONS`, which take turns with commas between them; or `module:name` of one's own.
Activation = str
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


def activation_of(name: str) -> Callable[[Array], Array]:
    """An activation by name, or one of a user's own that was named in this process."""
    if is_own(name):
        return known_object(name)
    if name not in ACTIVATIONS:
        raise unknown_name("activation", name, (*ACTIVATIONS, "module:name"))
    return ACTIVATIONS[name]


def check_activation(names: str) -> None:
    """Raise `UserError` for an activation that is not known."""
    for name in () if is_own(names) else names.split(","):
        activation_of(name)


def named_activation(given: Any) -> Any:
    """What a configuration says of an activation: a function by its name."""
    if isinstance(given, str) and is_own(given):
        import_object(given)
    return object_name(given) if callable(given) else given


class Network(eqx.Module):
    """A fully connected network.

    **Arguments:**

    - `weights`, `biases`: of each layer; a weight has shape (out, in), with an axis for the small
        networks before it, if there are several.
    - `activation`: between layers; several, with commas, take turns.
    - `beside`: a matrix from the input straight to the output, or None.
    - `reads`: of several small networks, which inputs each of them reads, as many for each; None
        for one network of all inputs.
    """

    weights: tuple[Float[Array, "*_ _ _"], ...]
    biases: tuple[Float[Array, "*_ _"], ...]
    activation: str = eqx.field(static=True)
    beside: Float[Array, "*_ _ _"] | None = None
    reads: tuple[tuple[int, ...], ...] | None = eqx.field(static=True, default=None)

    def __call__(self, x: Float[Array, " n_in"]) -> Float[Array, " n_out"]:
        """The network's value; of several, one after another."""
        if self.reads is None:
            return self._value(x, self.weights, self.biases, self.beside)
        given = (x[np.array(self.reads)], self.weights, self.biases, self.beside)
        return jax.vmap(self._value)(*given)[:, 0]

    def _value(self, x, weights, biases, beside):
        names = self.activation
        turns = itertools.cycle([names] if is_own(names) else names.split(","))
        given = x
        for weight, bias in zip(weights[:-1], biases[:-1], strict=True):
            x = activation_of(next(turns))(weight @ x + bias)
        value = weights[-1] @ x + biases[-1]
        return value if beside is None else value + beside @ given


class OwnNetwork(eqx.Module):
    """A user's own network: any callable Equinox module, its arrays apart from all else.

    **Arguments:**

    - `arrays`, `rest`: the two parts of the module.
    """

    arrays: Any
    rest: Any = eqx.field(static=True)

    @classmethod
    def of(cls, module: Any) -> "OwnNetwork":
        """Of a module; its real numbers are trained."""
        return cls(*eqx.partition(module, eqx.is_inexact_array))

    @property
    def module(self) -> Any:
        """The module, as it was given but for what was trained."""
        return eqx.combine(self.arrays, self.rest)

    def __call__(self, x: Float[Array, " n_in"]) -> Array:
        """The module's value."""
        return self.module(x)


def make_own_network(given: Any, count_in: int, count_out: int, seed: Any) -> tuple[Any, str]:
    """A user's own network, and its name for files.

    **Arguments:**

    - `given`: a module; or `make(count_in, count_out, seed)` that gives one, as `module:name` or as
        it is.

    **Returns:**

    Both. Raises `UserError` for what is no such network.
    """
    found = import_object(given) if isinstance(given, str) else given
    name = given if isinstance(given, str) else object_name(given)
    if isinstance(found, type) or not isinstance(found, eqx.Module):
        found = found(count_in, count_out, seed)
    network = OwnNetwork.of(found)
    if not jax.tree.leaves(network.arrays):
        raise UserError(
            f"The network {name} has no weights: no array of real numbers. Give it some."
        )
    try:
        shape = jax.eval_shape(network, jnp.zeros(count_in)).shape
    except (TypeError, ValueError) as error:
        raise UserError(
            f"The network {name} cannot read the {count_in} number(s) that this model gives it "
            f"({str(error).splitlines()[0]}). Make it for {count_in} in and {count_out} out."
        ) from error
    if shape != (count_out,):
        raise UserError(
            f"The network {name} gives an array of shape {shape}; it must give {count_out} "
            f"number(s) from {count_in}."
        )
    return network, name


def precision_of(network: Any) -> Any:
    """The type of the weights, in which a network computes."""
    return jax.tree.leaves(eqx.filter(network, eqx.is_inexact_array))[0].dtype


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
        check_activation(self.activation)
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
    reads: tuple[tuple[int, ...], ...] | None = None,
) -> Network:
    """Draw a network.

    **Arguments:**

    - `sizes`: of the input, of each hidden layer, and of the output.
    - `activation`, `initialization`: by name.
    - `seed`: of the draw; NumPy draws, so the weights are the same on every device.
    - `affine`: put a linear part beside the layers, zero at first.
    - `reads`: for several small networks, which inputs each reads; `sizes` are then of each.

    **Returns:**

    A `Network` in float64.
    """
    if not isinstance(seed, int) or seed < 0:
        raise UserError(f"seed is {seed!r}; it must be a whole number, not negative.")
    stacked = () if reads is None else (len(reads),)
    count = sum(before * after for before, after in itertools.pairwise(sizes))
    check_weights(count * math.prod(stacked))
    random = np.random.default_rng(seed)
    weights = []
    for before, after in itertools.pairwise(sizes):
        variance = 2 / (before + after) if initialization == "xavier" else 2 / max(before, 1)
        drawn = random.normal(size=(*stacked, after, before))
        weights.append(jax.device_put(drawn * np.sqrt(variance)))
    biases = tuple(
        jax.device_put(random.uniform(-1, 1, (*stacked, after)) / np.sqrt(max(before, 1)))
        for before, after in itertools.pairwise(sizes)
    )
    beside = jax.device_put(np.zeros((*stacked, sizes[-1], sizes[0]))) if affine else None
    return Network(tuple(weights), biases, activation, beside, reads)
