"""The double pendulum: 3 s to learn from, 1 s more to predict.

The text releases it high, where it is far more chaotic than from the start that the paper's figures
and its error were made with; that one is the variant.
"""

import math

from mbdnode.mechanisms.double_pendulum import DoublePendulum
from mbdnode.reproduction.cases.case import Case, paper_table
from mbdnode.reproduction.cases.printed import Exhibit, Reference

_OTHER_START = (
    "the paper's code starts at (pi/2, pi/4), which is double-pendulum:released-low; the text's "
    "start is far more chaotic"
)
_ERRORS = (("mbd-node", "rk4", 2.0e-1), ("lstm", "-", 6.4e-1), ("fcnn", "-", 2.2))

CASE = Case(
    name="double-pendulum",
    title="Double pendulum",
    mechanism=DoublePendulum(),
    initial={
        "theta1": 3 * math.pi / 7,
        "theta2": 3 * math.pi / 4,
        "theta1_dot": 0.0,
        "theta2_dot": 0.0,
    },
    dt_s=0.01,
    steps=400,
    train_steps=300,
    integrator="rk4",
    source="paper, Section 'Double Pendulum'",
    hyperparameters=paper_table("double-pendulum", width=256, hidden_layers=2),
    references=(
        *(
            Reference(model, integrator, mse, "tab: model_errors", incomparable=_OTHER_START)
            for model, integrator, mse in _ERRORS
        ),
        Reference("mbd-node", "fe1", 253.34, "tab:time_cost", "train_seconds"),
        Reference("mbd-node", "mp2", 368.75, "tab:time_cost", "train_seconds"),
        Reference("mbd-node", "rk4", 854.06, "tab:time_cost", "train_seconds"),
        Reference("fcnn", "-", 176.51, "tab:time_cost", "train_seconds"),
        Reference("lstm", "-", 402.62, "tab:time_cost", "train_seconds"),
    ),
    exhibits=(
        Exhibit("fig:double_pendulum", "system", "The double pendulum."),
        Exhibit("fig:dp_xvt", "over-time", "Angles and angular velocities over time."),
        Exhibit("fig:dp_phase", "phase", "Phase portraits."),
    ),
)

RELEASED_LOW = Case(
    name="double-pendulum:released-low",
    title="Double pendulum, released low",
    mechanism=DoublePendulum(),
    initial={
        "theta1": math.pi / 2,
        "theta2": math.pi / 4,
        "theta1_dot": 0.0,
        "theta2_dot": 0.0,
    },
    # 400 samples from 0 s to 4 s, both ends included, the first 300 of them for training.
    dt_s=4 / 399,
    steps=399,
    train_steps=299,
    integrator="rk4",
    source="the paper's published code, double pendulum",
    parameters={"g": 9.8},
    hyperparameters=paper_table("double-pendulum", width=256, hidden_layers=2),
    references=tuple(
        Reference(model, integrator, mse, "tab: model_errors") for model, integrator, mse in _ERRORS
    ),
    exhibits=(
        Exhibit("fig:dp_xvt", "over-time", "Angles and angular velocities over time."),
        Exhibit("fig:dp_phase", "phase", "Phase portraits."),
    ),
)
