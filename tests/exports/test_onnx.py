"""Models as graphs of ONNX, run by onnxruntime, against JAX and `simulate`."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import mbdnode as mbd
from mbdnode.exports import trace_program
from mbdnode.exports.core_primitives import traced

onnx = pytest.importorskip("onnx", reason="the extra `onnx` is not installed")
runtime = pytest.importorskip("onnxruntime", reason="onnxruntime is not installed")

PENDULUM, CART = mbd.mechanisms.SinglePendulumCartesian(), mbd.mechanisms.CartPole()


def session(model):
    data = model.SerializeToString()
    return runtime.InferenceSession(data, providers=["CPUExecutionProvider"])


def stepped(model, start, inputs, dt):
    """The rows of a run by the graph's own steps, and its rates at each."""
    from mbdnode.exports.onnx.convert import onnx_model

    program = trace_program(model, name="m", entries=("init", "step", "rates"))
    running = session(onnx_model(program))
    wanted = {x.name for x in running.get_inputs()}
    p = np.array([x.start for x in program.tables.parameters])
    count = len(model.coordinates)
    known = np.array([x in start for x in (*model.coordinate_names, *model.rate_names)], np.uint8)
    q = np.asarray(program.reference.q) + 0.0
    v = np.asarray(program.reference.v) + 0.0
    for i, (name, rate) in enumerate(zip(model.coordinate_names, model.rate_names, strict=True)):
        q[i], v[i] = start.get(name, q[i]), start.get(rate, v[i])
    fields = [field.name for field in program.state]
    state = dict(zip(fields, program.run("init", 0.0, q, v, known, p), strict=True))
    rows, rates = [], []
    for k, u in enumerate(inputs):
        given = {**state, "t": np.array(k * dt), "dt": np.array(dt), "u": np.array(u), "p": p}
        names = [x.name for x in running.get_outputs()]
        found = running.run(None, {key: given[key] for key in given if key in wanted})
        found = dict(zip(names, found, strict=True))
        rows.append(np.concatenate([state["q"], state["v"]]))
        rates.append(np.concatenate([found["dq"], found["dv"]]))
        state = {key: found.get(f"next_{key}", state[key]) for key in fields}
    assert len(rows[0]) == 2 * count
    return np.array(rows), np.array(rates)


@pytest.mark.parametrize(
    ("model", "start"),
    [(PENDULUM, {"x": 0.6, "x_dot": 4.0}), (CART, {"theta": 0.3, "theta_dot": 1.0})],
    ids=["constrained", "unconstrained"],
)
def test_steps_of_the_graph_are_those_of_simulate(model, start):
    force = np.random.default_rng(0).uniform(-1, 1, (100, 1))
    rows, rates = stepped(model, start, force, 0.01)
    run = mbd.simulate(model, 0.01 * np.arange(100), start, inputs=force)
    expected = np.concatenate([np.asarray(run.q), np.asarray(run.v)], axis=1)
    # The same arithmetic in another order, over 100 steps.
    np.testing.assert_allclose(rows, expected, rtol=0, atol=1e-11)
    half = rows.shape[1] // 2
    np.testing.assert_array_equal(rates[:, :half], rows[:, half:])


CASES = {
    "solve": (lambda a, b: jnp.linalg.solve(a @ a.T + jnp.eye(5), b), ((5, 5), (5,))),
    "pivoting": (lambda a: jax.scipy.linalg.lu_factor(a)[0], ((6, 6),)),
    "loops": (
        lambda x: jax.lax.while_loop(
            lambda c: c[1] < 7, lambda c: (jnp.sin(c[0]) + c[1], c[1] + 1), (x, 0)
        )[0],
        ((3,),),
    ),
    "scan": (
        lambda x: jax.lax.scan(lambda c, r: (c * 0.5 + r, c @ r), x[0], x, reverse=True),
        ((4, 3),),
    ),
    "branches": (
        lambda x: jax.lax.switch(
            jnp.argmax(x), [jnp.cos, jnp.exp, lambda y: y * y, jnp.tanh], x
        ),
        ((4,),),
    ),
    "indices": (
        lambda x: (x[jnp.argsort(x[:, 0])], x.at[jnp.argmax(x[:, 1])].add(2.0), x[::-1, 1:]),
        ((5, 3),),
    ),
    "far indices": (
        lambda x: (x[jnp.array([0, 9])], x.at[jnp.array([1, 9])].set(5.0)),
        ((4,),),
    ),
    "updates": (
        lambda x: (x.at[1:3].multiply(2.0), x.at[jnp.array([0, 2])].max(0.1)),
        ((4, 2),),
    ),
    "slices": (
        lambda x: (
            jax.lax.dynamic_slice(x, (jnp.argmax(x[:, 0]), 1), (2, 2)),
            jax.lax.dynamic_update_slice(x, x[:2, :2] * 3, (jnp.argmin(x[:, 0]), 2)),
            jax.lax.pad(x, 0.5, ((1, -1, 1), (0, 2, 0))),
        ),
        ((5, 4),),
    ),
    "functions": (
        lambda x: jnp.stack([
            jnp.cos(3 * x), jnp.tan(x), jnp.expm1(1e-5 * x), jnp.log1p(1e-5 * x * x),
            jax.nn.sigmoid(x), x**-3, jnp.cumsum(x), jnp.cumprod(x), jnp.sign(x), x % 0.7,
        ]),
        ((6,),),
    ),
    "products": (
        lambda a, b: (jnp.einsum("bij,bjk->bik", a, b), jnp.tensordot(a, b, 2 * [[0, 1]])),
        ((2, 3, 3), (2, 3, 3)),
    ),
    "stacks": (
        lambda x: jax.vjp(lambda a, b: jnp.stack([a, b], axis=1), x[0], x[1])[1](x.T[:, 1:]),
        ((3, 4),),
    ),
    "reductions": (
        lambda x: (x.max(), x.prod(axis=1), jnp.all(x > -9), jnp.any(x > 9, axis=0)),
        ((3, 4),),
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", CASES)
def test_a_rule_computes_what_jax_does(case):
    from onnx import helper

    import mbdnode.exports.onnx.convert  # noqa: F401  (registers the rules)
    from mbdnode.exports.onnx.graph import Graph, Tensor, described

    function, shapes = CASES[case]
    random = np.random.default_rng(3)
    given = [random.normal(size=shape) for shape in shapes]
    closed = traced(function, *given)
    graph = Graph()
    inputs = [Tensor(f"in{i}", x.shape, x.dtype) for i, x in enumerate(given)]
    found = graph.run(closed, inputs)
    outputs = [graph.node("Identity", [x], x.shape, x.dtype) for x in found]
    made = helper.make_graph(
        graph.nodes,
        "case",
        [described(x) for x in inputs],
        [described(x) for x in outputs],
        list(graph.initializers.values()),
    )
    runtime.set_default_logger_severity(3)  # constants that were folded away are no news
    opsets = [helper.make_opsetid("", 18)]
    running = session(helper.make_model(made, opset_imports=opsets, ir_version=8))
    results = running.run(None, {x.name: y for x, y in zip(inputs, given, strict=True)})
    for result, expected in zip(
        results, jax.tree.leaves(function(*map(jnp.asarray, given))), strict=True
    ):
        np.testing.assert_allclose(result, np.asarray(expected), rtol=1e-13, atol=1e-14)
        assert result.dtype == expected.dtype


def test_what_onnx_cannot_express_is_refused_by_name():
    from mbdnode.exports.onnx.graph import Graph, Tensor

    closed = traced(jnp.linalg.eigvalsh, np.eye(3))
    with pytest.raises(mbd.UserError, match="'eigh'"):
        Graph().run(closed, [Tensor("a", (3, 3), np.dtype(float))])
