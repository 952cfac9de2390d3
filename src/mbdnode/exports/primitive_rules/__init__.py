"""One rule for each primitive: importing this package registers all of them."""

from mbdnode.exports.primitive_rules import (
    control_flow,
    elementwise,
    indexing,
    products,
    reductions,
    shapes,
)

__all__ = [
    "control_flow",
    "elementwise",
    "indexing",
    "products",
    "reductions",
    "shapes",
]
