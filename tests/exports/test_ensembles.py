"""Exported ensembles against `simulate`: the mean of the members, and how far they are apart."""

import json
import subprocess

import numpy as np
import pytest

import mbdnode as mbd
from mbdnode.exports import c_source, javascript_source, trace_program
from tests.exports.harness import CC, NODE, WARNINGS, needs_cc, needs_node

STEPS, DT = 100, 0.01


@pytest.fixture(scope="module")
def ensemble():
    """Three networks that have learned nothing, so that they go apart at once."""
    pendulum = mbd.mechanisms.SinglePendulum()
    make = lambda seed: mbd.MBDNODE.for_system(pendulum, width=8, seed=seed)  # noqa: E731
    return mbd.Ensemble([make(seed) for seed in range(3)])


@pytest.fixture(scope="module")
def truth(ensemble):
    return mbd.simulate(ensemble, DT * np.arange(STEPS + 1), {"theta": 0.7})


@pytest.fixture(scope="module")
def program(ensemble):
    return trace_program(ensemble, name="m", dt_s=DT)


def _same_as(rows, truth) -> None:
    """Mean and spread at every step, to round-off of a second."""
    assert truth.spread is not None
    spread = np.concatenate([truth.spread.q, truth.spread.v], axis=1)
    expected = np.concatenate([truth.q, truth.v, spread], axis=1)[1:]
    # The members must differ, or there is nothing to test.
    assert np.max(spread) > 1e-3
    np.testing.assert_allclose(rows, expected, atol=1e-12)


_MAIN = """
#include "m.h"
#include <stdio.h>
int main(void)
{
    m_state state;
    double q[M_NQ] = {0.7}, v[M_NQ] = {0}, u[1] = {0}, y[M_NY];
    int code = m_init(&state, 0, q, v, m_independent, m_default_parameters);
    for (int k = 0; k < %d && code == 0; ++k) {
        code = m_step(&state, k * M_DT, M_DT, u, m_default_parameters);
        m_outputs(&state, 0, u, m_default_parameters, y);
        printf("%%.17g %%.17g %%.17g %%.17g\\n", state.q[0], state.v[0],
               y[M_Y_theta_spread], y[M_Y_theta_dot_spread]);
    }
    return code;
}
"""


@needs_cc
def test_mean_and_spread_in_c_are_those_of_simulate(program, truth, tmp_path):
    c = c_source(program)
    texts = {"m.h": c.header, "m.c": c.source, "main.c": _MAIN % STEPS}
    for name, text in texts.items():
        (tmp_path / name).write_text(text)
    command = [CC, *WARNINGS, "-O1", "m.c", "main.c", "-o", "run", "-lm"]
    made = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True)
    assert made.returncode == 0, made.stderr[:2000]
    done = subprocess.run([tmp_path / "run"], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    _same_as(np.array([line.split() for line in done.stdout.splitlines()], float), truth)


@needs_node
def test_mean_and_spread_in_javascript_are_those_of_simulate(program, truth, tmp_path):
    script = javascript_source(program) + (
        "const s = m.newState(), y = new Float64Array(m.NY), u = new Float64Array(m.NU);\n"
        "const p = Float64Array.from(m.tables.parameters.map((x) => x.start)), rows = [];\n"
        "m.init(s, 0, Float64Array.of(0.7), new Float64Array(1), m.tables.independent, p);\n"
        f"for (let k = 0; k < {STEPS}; ++k) {{\n"
        "  m.step(s, k * m.DT, m.DT, u, p);\n  m.outputs(s, 0, u, p, y);\n"
        "  rows.push([s.q[0], s.v[0], y[m.NY - 2], y[m.NY - 1]]);\n}\n"
        "console.log(JSON.stringify(rows));\n"
    )
    (tmp_path / "m.js").write_text(script)
    made = subprocess.run([NODE, "m.js"], cwd=tmp_path, capture_output=True, text=True)
    assert made.returncode == 0, made.stderr[:2000]
    _same_as(np.array(json.loads(made.stdout)), truth)


def test_code_of_three_members_is_not_thrice_as_long_as_that_of_one(ensemble, program):
    one = trace_program(ensemble[0], name="m", entries=tuple(program.entries))
    # Without the weights, which are thrice as many.
    code = lambda text: "\n".join(x for x in text.splitlines() if "e-" not in x)  # noqa: E731
    assert len(code(c_source(program).source)) < 2.5 * len(code(c_source(one).source))


@pytest.mark.parametrize("target", ["fmu", "onnx", "casadi"])
def test_formats_of_one_model_refuse_an_ensemble(ensemble, target, tmp_path):
    suffix = {"casadi": ""}.get(target, f".{target}")
    with pytest.raises(mbd.UserError, match="an ensemble of 3, whose mean has no rates"):
        mbd.export(ensemble, tmp_path / f"m{suffix}", target)
