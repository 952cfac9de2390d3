"""A damped mass on a spring: 3 s to learn from, 1 s more to predict."""

from mbdnode.experiments.case import Case
from mbdnode.mechanisms.single_mass_spring_damper import SingleMassSpringDamper

CASE = Case(
    name="single-mass-spring-damper",
    title="Single mass-spring-damper system",
    mechanism=SingleMassSpringDamper(),
    initial={"x": 1.0, "x_dot": 0.0},
    dt_s=0.01,
    steps=400,
    train_steps=300,
    integrator="rk4",
    source="paper, Section 'Single Mass-Spring-Damper System'",
)
