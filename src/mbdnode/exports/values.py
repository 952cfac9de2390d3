"""What a value of a jaxpr is while it is lowered: an array whose elements can be asked for.

- `Elements`: an expression for each element. Small arrays, and those with many known zeros.
- `View`: an array in memory, through strides.
- `Lazy`: a function from indices to an expression, made where it is used, so that element-wise
  operations on large arrays share one loop.
"""

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from mbdnode.exports.builder import Index
from mbdnode.exports.ir import Expr, Ref


class Value:
    """An array of a static shape."""

    def __init__(self, shape: Sequence[Any], dtype: str):
        self.shape, self.dtype = tuple(int(n) for n in shape), dtype

    @property
    def size(self) -> int:
        """The number of elements."""
        return math.prod(self.shape)

    @property
    def ndim(self) -> int:
        """The number of axes."""
        return len(self.shape)


class Elements(Value):
    """An expression for each element, as an array of objects."""

    def __init__(self, array: np.ndarray, dtype: str):
        super().__init__(array.shape, dtype)
        self.array = array

    @property
    def is_known(self) -> bool:
        """Whether all elements are constants."""
        return all(e.is_const for e in self.array.flat)

    def numbers(self) -> np.ndarray:
        """The values of constants."""
        flat = [e.value for e in self.array.flat]
        return np.array(flat).reshape(self.shape) if flat else np.zeros(self.shape)


class View(Value):
    """An array in memory: element `i` is `buffer[offset + sum(i * strides)]`."""

    def __init__(
        self,
        ref: Ref,
        shape: Sequence[Any],
        strides: Sequence[Any] | None = None,
        offset: Index = 0,
    ):
        super().__init__(shape, ref.buffer.dtype)
        self.ref, self.offset = ref, offset
        self.strides = row_major(self.shape) if strides is None else tuple(strides)

    @property
    def is_dense(self) -> bool:
        """Whether the elements lie one after the other."""
        usual = row_major(self.shape)
        return all(s == t for s, t, n in zip(self.strides, usual, self.shape, strict=True) if n > 1)

    @property
    def is_known(self) -> bool:
        """Whether it is a table of constants."""
        return self.ref.buffer.data is not None


class Lazy(Value):
    """Elements that are made where they are used, each of so many operations."""

    def __init__(
        self, shape: Sequence[Any], dtype: str, element: Callable[[tuple], Expr], cost: int
    ):
        super().__init__(shape, dtype)
        self.element, self.cost = element, cost


def row_major(shape: Sequence[Any]) -> tuple[int, ...]:
    """The strides of an array whose last axis is contiguous."""
    strides, size = [], 1
    for n in reversed(shape):
        strides.append(size)
        size *= n
    return tuple(reversed(strides))
