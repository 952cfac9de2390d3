"""The cart-pole, released at 30 degrees: 2 s to learn from, 0.5 s more to predict."""

import math

from mbdnode.evaluation.verdict import Reference
from mbdnode.experiments.case import Case
from mbdnode.experiments.hyperparameters import fcnn, lstm, mbdnode
from mbdnode.mechanisms.cart_pole import CartPole
from mbdnode.report.chapters import Exhibit

CASE = Case(
    name="cart-pole",
    title="Cart-pole system",
    mechanism=CartPole(),
    initial={"theta": math.pi / 6, "x": 1.0, "theta_dot": 0.0, "x_dot": 0.0},
    dt_s=0.005,
    steps=500,
    train_steps=400,
    integrator="mp2",
    source="paper, Section 'Cart-pole System'",
    hyperparameters=(
        *mbdnode("mp2 rk4 fe1", 450, 1e-3, 0.98, "tab:hyper_cp"),
        lstm("tab:hyper_cp"),
        fcnn("tab:hyper_cp", decay=0.99),
    ),
    references=(
        Reference("mbd-node", "mp2", 6.0e-5, "tab: model_errors"),
        Reference("lstm", "-", 3.2e-4, "tab: model_errors"),
        Reference("fcnn", "-", 4.7e-2, "tab: model_errors"),
        Reference("mbd-node", "fe1", 255.80, "tab:time_cost", "train_seconds"),
        Reference("mbd-node", "mp2", 285.04, "tab:time_cost", "train_seconds"),
        Reference("mbd-node", "rk4", 776.08, "tab:time_cost", "train_seconds"),
        Reference("fcnn", "-", 214.26, "tab:time_cost", "train_seconds"),
        Reference("lstm", "-", 358.14, "tab:time_cost", "train_seconds"),
    ),
    exhibits=(
        Exhibit("fig:cart-pole", "system", "The cart-pole system."),
        Exhibit("fig:cart-pole_x_v_t", "over-time", "Positions and velocities over time."),
        Exhibit("fig:cart-pole_phrase", "phase", "Phase portraits."),
    ),
)
