"""Every rule against JAX, in C and in JavaScript.

All functions go into one program of JAX, one shared library and one script, so that the tests of a
hundred primitives cost three compilations.
"""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from mbdnode.errors import UserError
from mbdnode.exports.core_primitives import traced
from mbdnode.exports.functions import lower_function
from mbdnode.exports.jaxpr_to_ir import RULES, Tables
from mbdnode.exports.languages import javascript_printer
from mbdnode.exports.program import Argument
from tests.exports.calls import all_calls
from tests.exports.harness import Call, lowered, needs_cc, needs_node, run_c, run_javascript


@pytest.fixture(scope="module", autouse=True)
def _mixed_operands():
    """Operands of different types and ranks, as users may have them."""
    with jax.numpy_rank_promotion("allow"), jax.numpy_dtype_promotion("standard"):
        yield


@pytest.fixture(scope="module")
def calls() -> list[Call]:
    return all_calls()


@pytest.fixture(scope="module")
def expected(calls):
    functions = [call.function for call in calls]

    @jax.jit
    def every(arguments):
        return [jax.tree.leaves(f(*a)) for f, a in zip(functions, arguments, strict=True)]

    return every([call.arguments for call in calls])


def _compare(calls, found, expected) -> None:
    wrong = []
    for call, ours, theirs in zip(calls, found, expected, strict=True):
        for a, b in zip(ours, theirs, strict=True):
            b = np.asarray(b)
            # A few roundings of the largest element: sums may be taken in another order.
            eps = np.finfo(b.dtype).eps if b.dtype.kind == "f" else 0.0
            size = np.max(np.abs(b[np.isfinite(b)]), initial=0.0) if b.dtype.kind == "f" else 0.0
            if not np.allclose(a, b, rtol=64 * eps, atol=64 * eps * size, equal_nan=True):
                wrong.append(f"{call.name}: {a} instead of {b}")
    assert not wrong, f"{len(wrong)} of {len(calls)}: " + "\n".join(wrong[:8])


@needs_cc
def test_every_rule_gives_what_jax_gives_in_c(calls, expected, tmp_path):
    _compare(calls, run_c(calls, tmp_path), expected)


@needs_cc
def test_no_rule_reads_or_writes_outside_of_its_arrays_or_overflows(calls, expected, tmp_path):
    flags = (
        "-O1",
        "-fsanitize=undefined",
        "-fsanitize-undefined-trap-on-error",
        "-D_FORTIFY_SOURCE=2",
    )
    _compare(calls, run_c(calls, tmp_path, flags), expected)


@needs_node
def test_every_rule_gives_what_jax_gives_in_javascript(calls, expected, tmp_path):
    _compare(calls, run_javascript(calls, tmp_path), expected)


@needs_node
def test_functions_that_are_divided_give_the_same(calls, expected, tmp_path, monkeypatch):
    """Every loop and every branch as a function of its own."""
    monkeypatch.setattr(javascript_printer, "_LONG_FUNCTION", 0)
    monkeypatch.setattr(javascript_printer, "_LONG_PART", 0)
    _compare(calls, run_javascript(calls, tmp_path), expected)


def test_every_rule_is_among_the_calls(calls):
    used: set[str] = set()

    def walk(jaxpr) -> None:
        for eqn in jaxpr.eqns:
            used.add(eqn.primitive.name)
            for value in jax.tree.leaves(eqn.params, is_leaf=lambda v: hasattr(v, "eqns")):
                inner = getattr(value, "jaxpr", value)
                if hasattr(inner, "eqns"):
                    walk(inner)

    for call in calls:
        walk(traced(call.function, *call.arguments).jaxpr)
    assert set(RULES) - used == set()


def test_an_unknown_primitive_is_refused_by_name():
    closed = jax.make_jaxpr(lambda x: jax.lax.lgamma(x))(1.0)
    arguments = [Argument("x", (), "float64", "in")]
    results = [Argument("y", (), "float64", "out")]
    with pytest.raises(UserError, match="'lgamma', which the export does not know"):
        lower_function(closed, arguments, results, Tables())


def test_complex_numbers_are_refused():
    closed = jax.make_jaxpr(lambda x: jnp.real(jnp.exp(1j * x)))(1.0)
    arguments = [Argument("x", (), "float64", "in")]
    results = [Argument("y", (), "float64", "out")]
    with pytest.raises(UserError, match="complex128"):
        lower_function(closed, arguments, results, Tables())


def test_what_is_computed_twice_is_printed_once(tmp_path):
    from mbdnode.exports.languages.c_printer import CPrinter

    function = lambda x: (jnp.sin(x) + jnp.sin(x), jnp.sin(x) * 2)  # noqa: E731
    ((lower,), _, _) = lowered([Call("twice", function, (np.float64(0.3),))])
    printer = CPrinter()
    printer.body(lower, {id(b): b.name for b in lower.arguments})
    assert "\n".join(printer.lines).count("sin(") == 1
