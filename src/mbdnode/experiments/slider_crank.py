"""The slider-crank under random force and torque, 10,000 steps."""

from mbdnode.experiments.case import Case
from mbdnode.mechanisms.slider_crank import SliderCrank

CASE = Case(
    name="slider-crank",
    title="Slider-crank mechanism",
    mechanism=SliderCrank(),
    initial={"theta1": 1.0, "theta1_dot": 1.0},
    dt_s=0.01,
    steps=10_000,
    # The training data are samples of the state space, not a piece of this rollout.
    train_steps=0,
    integrator="rk4",
    source="paper, Section 'Slider-Crank Mechanism'",
    inputs=lambda steps, random: random.uniform(-10.0, 10.0, (steps, 2)),
)
