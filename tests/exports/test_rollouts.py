"""Exported models against `simulate`: what runs in C and in JavaScript is the same motion."""

import ctypes
import json
import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import jax.numpy as jnp
import numpy as np
import pytest

import mbdnode as mbd
from mbdnode.exports import c_source, javascript_source, trace_program
from tests.exports.harness import CC, NODE, WARNINGS, needs_cc, needs_node

STEPS, DT = 200, 0.01
ENTRIES = ("init", "step", "rates", "outputs", "linearize", "project")


@dataclass(frozen=True)
class Motion:
    """A model, where it starts, and what drives it."""

    model: Any
    initial: dict[str, float]
    inputs: Any = None
    integrator: str = "rk4"


def _crank() -> Motion:
    loads = np.random.default_rng(0).uniform(-10, 10, (STEPS, 2))
    return Motion(mbd.mechanisms.SliderCrank(), {"theta1": 1.0, "theta1_dot": 2.0}, loads)


def _file() -> Motion:
    path = Path(__file__).parents[2] / "examples" / "mechanisms" / "four_bar.toml"
    return Motion(mbd.read_mechanism(path), {})


def _network() -> Motion:
    pendulum = mbd.mechanisms.SinglePendulum()
    return Motion(mbd.MBDNODE.for_system(pendulum, width=32), {"theta": 0.7})


def _constrained_network() -> Motion:
    four_bar = mbd.mechanisms.FourBar()
    return Motion(mbd.MBDNODE.for_system(four_bar, width=8), {})


def _law() -> Motion:
    damper = mbd.mechanisms.SingleMassSpringDamper()
    data = mbd.simulate(damper, np.linspace(0.0, 5.0, 501), {"x": 1.0})
    return Motion(mbd.identify(damper, data, "fast").model, {"x": 2.0})


def _cart_pole() -> Motion:
    return Motion(mbd.mechanisms.CartPole(), {"theta": 1.0}, None, "mp2")


MOTIONS = {
    "slider-crank": _crank,
    "cart-pole": _cart_pole,
    "file": _file,
    "network": _network,
    "constrained network": _constrained_network,
    "law": _law,
}


# Tracing and type checks of a whole mechanism take long.
_SLOW = ("file", "constrained network")
_PARAMS = [pytest.param(n, marks=pytest.mark.slow) if n in _SLOW else n for n in MOTIONS]


@pytest.fixture(scope="module", params=_PARAMS)
def motion(request):
    return MOTIONS[request.param]()


@pytest.fixture(scope="module")
def truth(motion):
    t = np.arange(STEPS + 1) * DT
    return mbd.simulate(
        motion.model, t, motion.initial, inputs=motion.inputs, integrator=motion.integrator
    )


@pytest.fixture(scope="module")
def program(motion):
    return trace_program(
        motion.model, name="m", integrator=motion.integrator, dt_s=DT, entries=ENTRIES
    )


def _inputs(motion) -> np.ndarray:
    count = len(motion.model.inputs)
    return np.zeros((STEPS, count)) if motion.inputs is None else np.asarray(motion.inputs)


_DRIVER = """
#include "m.h"
int run(int steps, const double *t, const double *q, const double *v, const double *u, double *out,
        double *y);
int run(int steps, const double *t, const double *q, const double *v, const double *u, double *out,
        double *y)
{
    m_state state;
    unsigned char known[2 * M_NQ];
    for (int i = 0; i < 2 * M_NQ; ++i) known[i] = 1;
    int code = m_init(&state, t[0], q, v, known, m_default_parameters);
    for (int k = 0; k < steps && code <= 0; ++k) {
        code = m_step(&state, t[k], t[k + 1] - t[k], u + k * M_NU, m_default_parameters);
        for (int i = 0; i < M_NQ; ++i) {
            out[k * 2 * M_NQ + i] = state.q[i];
            out[k * 2 * M_NQ + M_NQ + i] = state.v[i];
        }
    }
    m_outputs(&state, t[steps], u, m_default_parameters, y);
    return code;
}
"""


def _close(found, truth) -> None:
    """To the rounding of the largest coordinate: orders of summation differ."""
    expected = np.concatenate([truth.q, truth.v], axis=1)[1:]
    size = np.maximum(1.0, np.max(np.abs(expected), axis=0))
    assert np.max(np.abs(found - expected) / size) < 1e-12


@needs_cc
def test_c_moves_as_simulate_does(motion, truth, program, tmp_path):
    c = c_source(program)
    (tmp_path / "m.h").write_text(c.header)
    (tmp_path / "m.c").write_text(c.source)
    (tmp_path / "driver.c").write_text(_DRIVER)
    command = [CC, *WARNINGS, "-O1", "-shared", "-fPIC", "m.c", "driver.c", "-o", "m.so", "-lm"]
    made = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True)
    assert made.returncode == 0, made.stderr[:2000]
    code = ctypes.CDLL(str(tmp_path / "m.so"))
    count = len(motion.model.coordinates)
    out, y = np.zeros((STEPS, 2 * count)), np.zeros(3)
    arrays = [
        np.ascontiguousarray(x, dtype=float)
        for x in (truth.t, truth.q[0], truth.v[0], np.append(_inputs(motion).ravel(), 0.0))
    ]
    pointer = lambda x: x.ctypes.data_as(ctypes.c_void_p)  # noqa: E731
    status = code.run(STEPS, *map(pointer, (*arrays, out, y)))
    assert status == 0
    _close(out, truth)
    residuals = y[len(program.tables.outputs) - 2 : len(program.tables.outputs)]
    assert np.all(residuals < 1e-13 * max(1.0, float(np.max(np.abs(truth.q)))) * 10)


@needs_node
def test_javascript_moves_as_simulate_does(motion, truth, program, tmp_path):
    facts = {
        "t": np.asarray(truth.t).tolist(),
        "q": np.asarray(truth.q[0]).tolist(),
        "v": np.asarray(truth.v[0]).tolist(),
        "u": _inputs(motion).tolist(),
    }
    script = javascript_source(program) + (
        f"const given = {json.dumps(facts)};\n"
        "const state = m.newState(), rows = [];\n"
        "const p = Float64Array.from(m.tables.parameters.map((x) => x.start));\n"
        "const f = (x) => Float64Array.from(x);\n"
        "m.init(state, given.t[0], f(given.q), f(given.v), new Uint8Array(2 * m.NQ).fill(1), p);\n"
        "for (let k = 0; k + 1 < given.t.length; ++k) {\n"
        "  const dt = given.t[k + 1] - given.t[k];\n"
        "  if (m.step(state, given.t[k], dt, f(given.u[k]), p) > 0) break;\n"
        "  rows.push([...state.q, ...state.v]);\n}\n"
        "console.log(JSON.stringify(rows));\n"
    )
    (tmp_path / "m.js").write_text(script)
    made = subprocess.run([NODE, "m.js"], cwd=tmp_path, capture_output=True, text=True)
    assert made.returncode == 0, made.stderr[:2000]
    _close(np.array(json.loads(made.stdout)), truth)


def test_the_same_program_is_printed_twice_alike(program):
    assert c_source(program) == c_source(program)
    assert javascript_source(program) == javascript_source(program)


def test_rates_are_the_derivatives_of_the_motion(motion, truth, program):
    q, v = np.asarray(truth.q[0]), np.asarray(truth.v[0])
    known = np.ones(2 * len(q), np.uint8)
    p = [x.start for x in program.tables.parameters]
    state = program.run("init", 0.0, q, v, known, p)
    u = _inputs(motion)[0]
    dq, dv = program.run("rates", *state, 0.0, u, p)
    # A short step by `simulate`, which is of second order in its length.
    h = 1e-5
    held = None if motion.inputs is None else np.stack([u, u])
    start = mbd.State(jnp.asarray(q), jnp.asarray(v))
    near = mbd.simulate(motion.model, [0.0, h, 2 * h], start, inputs=held)
    for rate, column in ((dq, near.q), (dv, near.v)):
        slope = (-3 * column[0] + 4 * column[1] - column[2]) / (2 * h)
        assert np.allclose(rate, slope, rtol=1e-5, atol=1e-4 * max(1.0, np.max(np.abs(rate))))


def test_linearize_agrees_with_the_library(motion, truth, program):
    q, v = np.asarray(truth.q[0]), np.asarray(truth.v[0])
    known = np.ones(2 * len(q), np.uint8)
    p = [x.start for x in program.tables.parameters]
    u = _inputs(motion)[0]
    state = program.run("init", 0.0, q, v, known, p)
    A, B = program.run("linearize", *state, 0.0, u, p)
    start = mbd.State(jnp.asarray(q), jnp.asarray(v))
    ours = mbd.linearize(motion.model, start, u)
    scale = np.max(np.abs(ours.A))
    if ours.states != _states(motion, program, state):
        pytest.skip("init exchanged the independent coordinates, so the matrices are of others")
    assert np.allclose(A, ours.A, atol=1e-9 * scale)
    assert np.allclose(B, ours.B, atol=1e-9 * max(1.0, np.max(np.abs(ours.B), initial=0.0)))


def _states(motion, program, state) -> tuple[str, ...]:
    """The names of the minimal state that a state is in."""
    names = [f.name for f in program.state]
    which = program.tables.independent
    if "velocity_independent" in names:
        which = np.asarray(state[names.index("velocity_independent")])
    model = motion.model
    return tuple(x[i] for x in (model.coordinate_names, model.rate_names) for i in which)
