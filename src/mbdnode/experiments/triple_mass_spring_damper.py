"""Three masses from 100 kg to 1 kg: 3 s to learn from, 1 s more to predict."""

from mbdnode.experiments.case import Case
from mbdnode.mechanisms.triple_mass_spring_damper import TripleMassSpringDamper

CASE = Case(
    name="triple-mass-spring-damper",
    title="Multiscale triple mass-spring-damper system",
    mechanism=TripleMassSpringDamper(),
    initial={"x1": 1.0, "x2": 2.0, "x3": 3.0, "x1_dot": 0.0, "x2_dot": 0.0, "x3_dot": 0.0},
    dt_s=0.01,
    steps=400,
    train_steps=300,
    integrator="rk4",
    source="paper, Section 'Multiscale Triple Mass-Spring-Damper System'",
)
