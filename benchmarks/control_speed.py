"""What one control step takes: the cart-pole's balance, 50 steps of 0.02 s ahead.

The same loop is run by this package (linearized once, and along the plan at every step), by do-mpc
(collocation and IPOPT, as its documentation sets it up), and the quadratic program alone by PIQP
and by OSQP with its warm start and kept factors. All on one core, in one process; compilation and
set-up are left out.
"""

import contextlib
import io
import math
import os
import time
import warnings

os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
# casadi announces a change of its own that does not concern this.
warnings.filterwarnings("ignore", category=FutureWarning, module="casadi")

import numpy as np  # noqa: E402
import osqp  # noqa: E402
import scipy.linalg as sl  # noqa: E402
import scipy.sparse as sp  # noqa: E402

import mbdnode as mbd  # noqa: E402
from mbdnode.mechanisms.cart_pole import CartPole  # noqa: E402

HORIZON, DT, STEPS = 50, 0.02, 300
START = np.array([math.pi / 6, 1.0, 0.0, 0.0])
BOUND = 20.0
GOAL_MS = 1.0


def matrices():
    """The discrete model and its Riccati weight."""
    linear = mbd.linearize(CartPole(), [0.0] * 4)
    A, B = (np.asarray(x) for x in mbd.discretize(linear.A, linear.B, DT))
    return A, B, sl.solve_discrete_are(A, B, np.eye(4), np.eye(1))


def advance(z, u):
    """The plant, by SciPy's integrator, so that all are asked the same."""
    from scipy.integrate import solve_ivp

    def right(t, y):
        theta, _, omega, v = y
        s, c = math.sin(theta), math.cos(theta)
        a = (u + 0.5 * omega**2 * s - 9.81 * s * c) / (2.0 - c**2)
        return [omega, v, (9.81 * s - a * c) / 0.5, a]

    return solve_ivp(right, (0.0, DT), z, rtol=1e-8, atol=1e-10).y[:, -1]


def loop(name, decide):
    """Run the loop and print the times of its decisions."""
    z, took = START.copy(), []
    for _ in range(STEPS):
        began = time.perf_counter()
        u = float(decide(z))
        took.append(time.perf_counter() - began)
        z = advance(z, u)
    # The first decision compiles, sets up, or has nothing to start from.
    ms = 1e3 * np.array(took[1:])
    print(
        f"  {name:<38} median {np.median(ms):7.2f} ms   99 % {np.percentile(ms, 99):7.2f} ms   "
        f"error after {STEPS * DT:g} s {np.max(np.abs(z)):.1e}",
        flush=True,
    )
    return float(np.median(ms))


def ours(mode):
    """The controller of mbdnode."""
    limits = mbd.Limits(u_bounds=(-BOUND, BOUND))
    controller = mbd.MPC(CartPole(), horizon=HORIZON, dt=DT, relinearize=mode, limits=limits)
    controller(START)
    controller(START)
    controller.reset()
    return lambda z: controller(z).u[0]


def by_osqp():
    """The same quadratic program in OSQP, warm-started, its factors kept."""
    A, B, P = matrices()
    n = 4
    cost = sp.block_diag([np.eye(n)] * (HORIZON - 1) + [P] + [np.eye(1)] * HORIZON, format="csc")
    chain = sp.identity(HORIZON * n) - sp.kron(sp.diags([1.0], [-1], (HORIZON, HORIZON)), A)
    dynamics = sp.hstack([chain, -sp.kron(sp.identity(HORIZON), B)])
    inputs = sp.hstack([sp.csc_matrix((HORIZON, HORIZON * n)), sp.identity(HORIZON)])
    both = sp.csc_matrix(sp.vstack([dynamics, inputs]))

    def bounds(z):
        right = np.concatenate([A @ z, np.zeros((HORIZON - 1) * n)])
        limit = np.full(HORIZON, BOUND)
        return np.concatenate([right, -limit]), np.concatenate([right, limit])

    solver = osqp.OSQP()
    low, high = bounds(START)
    zero = np.zeros(HORIZON * (n + 1))
    solver.setup(
        sp.triu(cost, format="csc"), zero, both, low, high, verbose=False,
        eps_abs=1e-6, eps_rel=1e-6, max_iter=20_000,
    )  # fmt: skip

    def decide(z):
        low, high = bounds(z)
        solver.update(l=low, u=high)
        return solver.solve().x[HORIZON * n]

    return decide


def by_do_mpc():
    """The same problem, nonlinear, in do-mpc."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        import do_mpc
        from casadi import cos, sin

    model = do_mpc.model.Model("continuous")
    theta, x, omega, v = (model.set_variable("_x", name) for name in ("theta", "x", "omega", "v"))
    u = model.set_variable("_u", "u")
    a = (u + 0.5 * omega**2 * sin(theta) - 9.81 * sin(theta) * cos(theta)) / (2 - cos(theta) ** 2)
    model.set_rhs("theta", omega)
    model.set_rhs("x", v)
    model.set_rhs("omega", (9.81 * sin(theta) - a * cos(theta)) / 0.5)
    model.set_rhs("v", a)
    model.setup()
    controller = do_mpc.controller.MPC(model)
    controller.set_param(
        n_horizon=HORIZON, t_step=DT, store_full_solution=False,
        nlpsol_opts={"ipopt.print_level": 0, "ipopt.sb": "yes", "print_time": 0},
    )  # fmt: skip
    P = matrices()[2]
    states = [theta, x, omega, v]
    final = sum(P[i, j] * states[i] * states[j] for i in range(4) for j in range(4))
    # do-mpc weighs the inputs' change; the input's own square goes into the stage cost.
    controller.set_objective(mterm=final, lterm=theta**2 + x**2 + omega**2 + v**2 + u**2)
    controller.bounds["lower", "_u", "u"], controller.bounds["upper", "_u", "u"] = -BOUND, BOUND
    with contextlib.redirect_stdout(io.StringIO()), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        controller.setup()
        controller.x0 = START
        controller.set_initial_guess()
    return lambda z: controller.make_step(z.reshape(-1, 1)).item()


if __name__ == "__main__":
    print(f"One control step, cart-pole, {HORIZON} steps of {DT} s ahead, |u| <= {BOUND:g}")
    once = loop("linearized once", ours("once"))
    each = loop("linearized along the plan", ours("each"))
    loop("the quadratic program alone, OSQP", by_osqp())
    other = loop("do-mpc", by_do_mpc())
    print(f"  do-mpc takes {other / each:.0f} times what linearizing along the plan takes, and")
    print(f"  {other / once:.0f} times what linearizing once takes.")
    slow = [f"{ms:.2f} ms" for ms in (once, each) if ms > GOAL_MS]
    if slow:
        raise SystemExit(f"  missed: {', '.join(slow)} at the median; the goal is {GOAL_MS:g} ms")
