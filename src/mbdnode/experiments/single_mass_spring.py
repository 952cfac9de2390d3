"""A mass on a spring, from the closed form: 3 s to learn from, 30 s to predict."""

from mbdnode.experiments.case import Case
from mbdnode.mechanisms.single_mass_spring import SingleMassSpring

CASE = Case(
    name="single-mass-spring",
    title="Single mass-spring system",
    mechanism=SingleMassSpring(),
    initial={"x": 1.0, "x_dot": 0.0},
    dt_s=0.01,
    steps=3_000,
    train_steps=300,
    integrator="analytic",
    source="paper, Section 'Single Mass-Spring System'",
)
