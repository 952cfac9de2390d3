"""Exported models as external functions of CasADi and as a block of Simulink."""

import ctypes
import shutil
import subprocess
from pathlib import Path

import numpy as np
import pytest
from exports.exporting import export_in

import mbdnode as mbd

pytestmark = pytest.mark.skipif(shutil.which("cc") is None, reason="there is no C compiler")
CART, PENDULUM = mbd.mechanisms.CartPole(), mbd.mechanisms.SinglePendulumCartesian()
STRICT = ["-std=c99", "-Wall", "-Wextra", "-Wconversion", "-pedantic", "-Werror"]


def library(folder: Path, *flags: str) -> str:
    sources = sorted(one.name for one in folder.glob("*.c"))
    made = folder / "library.so"
    command = ["cc", *STRICT, "-O1", "-fPIC", "-shared", *flags, *sources, "-o", str(made), "-lm"]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[:3000]
    return str(made)


@pytest.fixture(scope="module")
def sources(tmp_path_factory):
    """Folders with the sources for CasADi and for Simulink."""
    return export_in(
        tmp_path_factory.mktemp("loops"),
        """
mbd.export(mbd.mechanisms.CartPole(), folder / "casadi", "casadi", name="cart")
pendulum = mbd.mechanisms.SinglePendulumCartesian()
mbd.export(pendulum, folder / "simulink", "simulink", name="pendulum")
""",
    )


@pytest.fixture(scope="module")
def cart_library(sources):
    return library(sources / "casadi")


X, U = np.array([0.4, -0.1, 0.5, 0.2]), np.array([1.5])
P = np.array([p.default for p in CART.parameters])


def test_casadis_external_step_is_a_step_of_simulate(cart_library):
    casadi = pytest.importorskip("casadi", reason="CasADi, of the extra `bench`, is not installed")
    step = casadi.external("cart_step", cart_library)
    found = np.array(step(X, U, P, 0.02)).ravel()
    start = dict(zip(("theta", "x", "theta_dot", "x_dot"), X, strict=True))
    run = mbd.simulate(CART, [0.0, 0.02], start, inputs=[U])
    expected = np.concatenate([np.asarray(run.q)[-1], np.asarray(run.v)[-1]])
    np.testing.assert_allclose(found, expected, rtol=0, atol=1e-14)


def test_casadi_differentiates_the_rates_as_linearize_does(cart_library):
    casadi = pytest.importorskip("casadi", reason="CasADi, of the extra `bench`, is not installed")
    rates = casadi.external("cart_rates", cart_library)
    x, u = casadi.MX.sym("x", 4), casadi.MX.sym("u")
    rate = rates(x, u, P)
    jacobians = casadi.Function("j", [x, u], [casadi.jacobian(rate, x), casadi.jacobian(rate, u)])
    A, B = (np.array(found) for found in jacobians(X, U))
    linear = mbd.linearize(CART, X, U)
    np.testing.assert_allclose(A, linear.A, rtol=1e-12, atol=1e-12)
    np.testing.assert_allclose(B, linear.B, rtol=1e-12)


def test_casadi_optimizes_through_the_exported_step(cart_library):
    casadi = pytest.importorskip("casadi", reason="CasADi, of the extra `bench`, is not installed")
    step = casadi.external("cart_step", cart_library)
    problem = casadi.Opti()
    x, u = problem.variable(4, 26), problem.variable(1, 25)
    problem.subject_to(x[:, 0] == np.array([0.3, 0.0, 0.0, 0.0]))
    for k in range(25):
        problem.subject_to(x[:, k + 1] == step(x[:, k], u[:, k], P, 0.04))
    problem.subject_to(x[:, 25] == 0)
    problem.minimize(casadi.sumsqr(u))
    quiet = {"print_level": 0, "hessian_approximation": "limited-memory"}
    problem.solver("ipopt", {"print_time": False}, quiet)
    found = problem.solve()
    held = np.asarray(found.value(u)).ravel()
    # The mechanism itself, under the inputs that were found, comes to rest upright.
    run = mbd.simulate(CART, 0.04 * np.arange(26), {"theta": 0.3}, inputs=held)
    end = np.concatenate([np.asarray(run.q)[-1], np.asarray(run.v)[-1]])
    np.testing.assert_allclose(end, 0, atol=1e-6)


def test_a_simulink_block_moves_as_simulate_does_and_refuses_wrong_parameters(sources):
    stub = Path(__file__).parent / "simulink_stub"
    made = library(sources / "simulink", f"-I{stub}")
    block = ctypes.CDLL(made).run_block
    block.restype = ctypes.c_char_p
    vector = np.ctypeslib.ndpointer(float, flags="C")
    block.argtypes = [
        *(ctypes.c_int, ctypes.c_double, vector, ctypes.c_int, vector, ctypes.c_int),
        *(vector, ctypes.c_int, vector, vector),
    ]
    steps, none = 100, np.zeros(1)
    force = np.random.default_rng(0).uniform(-1, 1, steps)
    rows = np.zeros((steps, 7))  # q, v, energy and two residuals
    start = np.array([0.6, -1.0]), np.array([2.0, 0.0])
    error = block(steps, 0.01, none, 0, start[0], 2, start[1], 2, force, rows)
    assert error is None
    t = 0.01 * np.arange(steps)
    run = mbd.simulate(PENDULUM, t, {"x": 0.6, "x_dot": 2.0}, inputs=force)
    expected = np.concatenate([np.asarray(run.q), np.asarray(run.v)], axis=1)
    np.testing.assert_allclose(rows[:, :4], expected, rtol=0, atol=1e-12)
    error = block(steps, 0.01, none, 1, start[0], 2, start[1], 2, force, rows)
    assert b"parameters" in error
    error = block(steps, -1.0, none, 0, start[0], 2, start[1], 2, force, rows)
    assert b"sample time" in error
