"""Exported models against `simulate`: what runs in C and in JavaScript is the same motion."""

import ctypes
import functools
import json
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import mbdnode as mbd
from mbdnode.exports import c_source, javascript_source, trace_program
from mbdnode.mechanisms import from_dict
from tests.exports.harness import CC, NODE, WARNINGS, needs_cc, needs_node
from tests.toys import bars

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


def _chain() -> Motion:
    """Large enough to be solved joint by joint."""
    return Motion(from_dict(bars(7)[0]), {})


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


def _with_drawn_weights(model: Any) -> Any:
    """The model with other weights: an untrained correction is exactly zero, and tests nothing."""
    random = np.random.default_rng(0)
    drawn = jax.tree.map(lambda x: jnp.asarray(random.normal(size=x.shape) / 2), model.network)
    return eqx.tree_at(lambda m: m.network, model, drawn)


def _hybrid() -> Motion:
    """A mechanism with a network for what it misses."""
    damper = mbd.mechanisms.SingleMassSpringDamper()
    model = mbd.MBDNODE.for_system(damper, width=8, correction_of=damper)
    return Motion(_with_drawn_weights(model), {"x": 1.0})


def _joint_forces() -> Motion:
    """A mechanism with a small network for the force of each position and velocity."""
    pendulum = mbd.mechanisms.DoublePendulum()
    joints = {"structure": "joints", "width": 4, "affine": True}
    model = mbd.MBDNODE.for_system(pendulum, correction_of=pendulum, **joints)
    return Motion(_with_drawn_weights(model), {"theta1": 1.0, "theta2": 0.5})


def test_drawn_weights_change_the_motion():
    """Or the correction could be left out of an export without anybody noticing."""
    for made in (_hybrid(), _joint_forces()):
        moved, plain = (
            mbd.simulate(system, np.linspace(0.0, 0.1, 11), made.initial).q
            for system in (made.model, made.model.body)
        )
        assert np.max(np.abs(moved - plain)) > 1e-4


def _cart_pole() -> Motion:
    return Motion(mbd.mechanisms.CartPole(), {"theta": 1.0}, None, "mp2")


MOTIONS = {
    "slider-crank": _crank,
    "cart-pole": _cart_pole,
    "file": _file,
    "chain": _chain,
    "network": _network,
    "constrained network": _constrained_network,
    "law": _law,
    "hybrid": _hybrid,
    "joint forces": _joint_forces,
}


# Tracing and type checks of a whole mechanism take long.
_SLOW = ("file", "chain", "constrained network", "joint forces")
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


@pytest.fixture(scope="module")
def sources(program, tmp_path_factory):
    """A folder with the C of the model and a driver of it."""
    folder, c = tmp_path_factory.mktemp("c"), c_source(program)
    (folder / "m.h").write_text(c.header)
    (folder / "m.c").write_text(c.source)
    (folder / "driver.c").write_text(_DRIVER)
    return folder


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


# Every array is as long as it must be, so that one read or write too far is seen.
_MAIN = """
#include "m.h"
#include <stdio.h>
#include <stdlib.h>
int run(int steps, const double *t, const double *q, const double *v, const double *u, double *out,
        double *y);
static double *numbers(size_t count, int given)
{
    double *x = malloc(count * sizeof *x);
    if (x == NULL || (given && fread(x, sizeof *x, count, stdin) != count)) exit(2);
    return x;
}
int main(int count, char **words)
{
    const int steps = count > 1 ? atoi(words[1]) : 0;
    const size_t rows = (size_t)steps;
    double *t = numbers(rows + 1, 1), *q = numbers(M_NQ, 1), *v = numbers(M_NQ, 1);
    double *u = numbers(rows * M_NU + 1, 1), *out = numbers(rows * 2 * M_NQ, 0);
    double *y = numbers(M_NY, 0);
    const int code = run(steps, t, q, v, u, out, y);
    fwrite(out, sizeof *out, rows * 2 * M_NQ, stdout);
    free(t); free(q); free(v); free(u); free(out); free(y);
    return code;
}
"""


def _close(found, truth) -> None:
    """To the rounding of the largest coordinate: orders of summation differ."""
    expected = np.concatenate([truth.q, truth.v], axis=1)[1:]
    size = np.maximum(1.0, np.max(np.abs(expected), axis=0))
    assert np.max(np.abs(found - expected) / size) < 1e-12


def _given(motion, truth) -> list[np.ndarray]:
    """Times, the start and inputs, as the driver wants them; an array of no inputs is not empty."""
    given = (truth.t, truth.q[0], truth.v[0], np.append(_inputs(motion).ravel(), 0.0))
    return [np.ascontiguousarray(x, dtype=float) for x in given]


@needs_cc
def test_c_moves_as_simulate_does(motion, truth, program, sources):
    command = [CC, *WARNINGS, "-O1", "-shared", "-fPIC", "m.c", "driver.c", "-o", "m.so", "-lm"]
    made = subprocess.run(command, cwd=sources, capture_output=True, text=True)
    assert made.returncode == 0, made.stderr[:2000]
    code = ctypes.CDLL(str(sources / "m.so"))
    out = np.zeros((STEPS, 2 * len(motion.model.coordinates)))
    y = np.zeros(len(program.tables.outputs))
    pointer = lambda x: x.ctypes.data_as(ctypes.c_void_p)  # noqa: E731
    status = code.run(STEPS, *map(pointer, (*_given(motion, truth), out, y)))
    assert status == 0
    _close(out, truth)
    # Round-off of the largest coordinate, times what a Jacobian has of it.
    assert np.all(y[-2:] < 1e-12 * max(1.0, float(np.max(np.abs(truth.q)))))


@pytest.mark.skipif(shutil.which("clang") is None, reason="there is no clang")
def test_clang_has_nothing_to_warn_of(sources):
    command = ["clang", *WARNINGS, "-fsyntax-only", "m.c", "driver.c"]
    made = subprocess.run(command, cwd=sources, capture_output=True, text=True)
    assert made.returncode == 0, made.stderr[:2000]


# Without optimization: with it, clang compiles a slider-crank for a minute.
_SANITIZERS = ("-O0", "-fsanitize=address,undefined", "-fno-sanitize-recover=all")


@functools.cache
def _has_sanitizers(compiler):
    """Their libraries are packages of their own, which need not be beside the compiler."""
    if shutil.which(compiler) is None:
        return False
    command = [compiler, *_SANITIZERS, "-x", "c", "-", "-o", "/dev/null"]
    return (
        subprocess.run(command, input=b"int main(void){return 0;}", capture_output=True).returncode
        == 0
    )


@pytest.mark.slow
@pytest.mark.parametrize("compiler", ["gcc", "clang"])
def test_sanitizers_find_nothing_in_a_motion(motion, truth, program, sources, compiler):
    if not _has_sanitizers(compiler):
        pytest.skip(f"there is no {compiler} with its sanitizers")
    (sources / "main.c").write_text(_MAIN)
    parts = ["m.c", "driver.c", "main.c", "-o", compiler, "-lm"]
    command = [compiler, *WARNINGS, *_SANITIZERS, *parts]
    made = subprocess.run(command, cwd=sources, capture_output=True, text=True)
    assert made.returncode == 0, made.stderr[:2000]
    given = b"".join(x.tobytes() for x in _given(motion, truth))
    done = subprocess.run([sources / compiler, str(STEPS)], input=given, capture_output=True)
    assert done.returncode == 0, done.stderr[:3000]
    _close(np.frombuffer(done.stdout).reshape(STEPS, -1), truth)


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


def test_the_same_model_is_printed_twice_alike():
    def printed():
        program = trace_program(mbd.mechanisms.DoublePendulum(), name="m", entries=("init", "step"))
        return c_source(program), javascript_source(program)

    assert printed() == printed()


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


def test_linearize_is_the_slope_of_the_rates_of_the_minimal_state(motion, truth, program):
    q, v = np.asarray(truth.q[0]), np.asarray(truth.v[0])
    p, u, count = [x.start for x in program.tables.parameters], _inputs(motion)[0], len(q)
    state = program.run("init", 0.0, q, v, np.ones(2 * count, np.uint8), p)
    A, B = program.run("linearize", *state, 0.0, u, p)
    which = _independent(program, state)
    entries = np.concatenate([which, count + which])
    known = np.isin(np.arange(2 * count), entries).astype(np.uint8)

    def rates(change, u):
        """Of the minimal state, with what is dependent on it completed anew."""
        moved = np.concatenate([q, v]) + change
        near = program.run("init", 0.0, moved[:count], moved[count:], known, p)
        # The same partition, with which the matrices were made.
        dq, dv = program.run("rates", *near[:2], *state[2:], 0.0, u, p)
        return np.concatenate([dq, dv])[entries]

    # Central differences: of second order in h, and round-off over h.
    h, here = 1e-5, np.zeros(2 * count)
    slopes = [(rates(h * e, u) - rates(-h * e, u)) / (2 * h) for e in np.eye(2 * count)[entries]]
    assert np.allclose(A, np.transpose(slopes), atol=1e-7 * np.max(np.abs(A)))
    if len(u):
        slopes = [
            (rates(here, u + h * e) - rates(here, u - h * e)) / (2 * h) for e in np.eye(len(u))
        ]
        assert np.allclose(B, np.transpose(slopes), atol=1e-7 * np.max(np.abs(B)))
    ours = mbd.linearize(motion.model, mbd.State(jnp.asarray(q), jnp.asarray(v)), u)
    names = (*motion.model.coordinate_names, *motion.model.rate_names)
    # The library names its own states; those of a free choice may be others.
    if ours.states == tuple(names[i] for i in entries):
        assert np.allclose(A, ours.A, atol=1e-9 * np.max(np.abs(A)))
        assert np.allclose(B, ours.B, atol=1e-9 * max(1.0, np.max(np.abs(B), initial=0.0)))


def _independent(program, state) -> np.ndarray:
    """The indices of the coordinates that a state is integrated in."""
    names = [f.name for f in program.state]
    if "velocity_independent" in names:
        return np.asarray(state[names.index("velocity_independent")])
    return np.array(program.tables.independent)
