"""The cart-pole, released at 30 degrees: 2 s to learn from, 0.5 s more to predict."""

import math

from mbdnode.experiments.case import Case
from mbdnode.mechanisms.cart_pole import CartPole

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
)
