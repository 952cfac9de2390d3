"""One rule for each primitive: importing this package registers all of them."""

from mbdnode.exports.primitive_rules import (  # noqa: F401
    control_flow,
    elementwise,
    indexing,
    products,
    reductions,
    shapes,
)
