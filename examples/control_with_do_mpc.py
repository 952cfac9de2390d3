"""An exported model inside of do-mpc: a cart-pole that falls is brought back upright.

The model leaves Python as a library of CasADi's external functions. do-mpc takes its step for the
right-hand side of a discrete model, and plans through it; what is controlled is the mechanism. In
place of the mechanism's own model, `model` may be what was learned of it.

    pip install do-mpc
    python examples/control_with_do_mpc.py [steps]
"""

import contextlib
import io
import sys
import tempfile
import warnings
from pathlib import Path

import numpy as np

import mbdnode as mbd

DT, HORIZON, BOUND = 0.04, 20, 20.0  # seconds, steps, newtons


def make_controller(library: Path, name: str, parameters: np.ndarray):
    """A controller of do-mpc around the exported step."""
    import casadi
    import do_mpc

    step = casadi.external(f"{name}_step", str(library))
    model = do_mpc.model.Model("discrete", "MX")  # external functions need MX
    x, u = model.set_variable("_x", "x", (4, 1)), model.set_variable("_u", "u")
    model.set_rhs("x", step(x, u, parameters, DT))
    model.setup()
    controller = do_mpc.controller.MPC(model)
    quiet = {"ipopt.print_level": 0, "ipopt.sb": "yes", "print_time": 0}
    # The library has first derivatives, so the solver estimates the second ones.
    solver = {
        **quiet,
        "ipopt.hessian_approximation": "limited-memory",
        "ipopt.limited_memory_max_history": 50,
        "ipopt.tol": 1e-5,
    }
    controller.set_param(
        n_horizon=HORIZON, t_step=DT, store_full_solution=False, nlpsol_opts=solver
    )
    controller.set_objective(mterm=10 * casadi.sumsqr(x), lterm=casadi.sumsqr(x))
    controller.set_rterm(u=0.1)
    controller.bounds["lower", "_u", "u"], controller.bounds["upper", "_u", "u"] = -BOUND, BOUND
    controller.setup()
    return controller


def main(steps: int = 75, model=None) -> np.ndarray:
    """Run the closed loop; return theta, x and their rates, row by row."""
    cart = mbd.mechanisms.CartPole()
    names = ("theta", "x", "theta_dot", "x_dot")
    rows = [np.array([0.4, 0.0, 0.0, 0.0])]
    with tempfile.TemporaryDirectory() as folder, warnings.catch_warnings():
        warnings.simplefilter("ignore")  # do-mpc's own
        library = mbd.export(cart if model is None else model, f"{folder}/cart", "casadi")
        parameters = np.array([p.default for p in cart.parameters])
        with contextlib.redirect_stdout(io.StringIO()):
            controller = make_controller(library / "libcart.so", "cart", parameters)
        controller.x0 = rows[0]
        controller.set_initial_guess()
        for _ in range(steps):
            force = controller.make_step(rows[-1].reshape(-1, 1)).item()
            start = dict(zip(names, rows[-1], strict=True))
            run = mbd.simulate(cart, [0.0, DT], start, inputs=[[force]])
            rows.append(np.concatenate([run.q[-1], run.v[-1]]))
            assert controller.solver_stats["success"], "do-mpc found no plan"
    found = np.array(rows)
    print(f"theta: {found[0, 0]:.2f} rad at first, {found[-1, 0]:.1e} rad after {steps * DT:g} s")
    return found


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
