"""A damped pendulum pushed off at its lowest point: 3 s to learn from, 1 s more to predict."""

import math

from mbdnode.experiments.case import Case
from mbdnode.mechanisms.single_pendulum import SinglePendulum

CASE = Case(
    name="single-pendulum",
    title="Damped single pendulum",
    mechanism=SinglePendulum(),
    initial={"theta": 0.0, "theta_dot": math.pi},
    dt_s=0.01,
    steps=400,
    train_steps=300,
    integrator="mp2",
    source="paper, Section 'Damped Single Pendulum'",
)
