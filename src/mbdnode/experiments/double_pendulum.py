"""The double pendulum: 3 s to learn from, 1 s more to predict.

The text releases it high, where it is far more chaotic than from the start that the paper's figures
and its error were made with; that one is the variant.
"""

import math

from mbdnode.experiments.case import Case
from mbdnode.mechanisms.double_pendulum import DoublePendulum

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
)
