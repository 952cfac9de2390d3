"""A damped mass on a spring: 3 s to learn from, 1 s more to predict."""

from mbdnode.mechanisms.single_mass_spring_damper import SingleMassSpringDamper
from mbdnode.reproduction.cases.case import Case, paper_table
from mbdnode.reproduction.cases.printed import Exhibit, Reference

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
    hyperparameters=paper_table("single-mass-spring-damper", width=256, hidden_layers=2),
    references=(
        Reference("mbd-node", "rk4", 8.6e-4, "tab: model_errors"),
        Reference("lstm", "-", 1.8e-2, "tab: model_errors"),
        Reference("fcnn", "-", 9.9e-2, "tab: model_errors"),
        Reference("mbd-node", "fe1", 316.86, "tab:time_cost", "train_seconds"),
        Reference("mbd-node", "mp2", 518.09, "tab:time_cost", "train_seconds"),
        Reference("mbd-node", "rk4", 1254.13, "tab:time_cost", "train_seconds"),
        Reference("fcnn", "-", 220.13, "tab:time_cost", "train_seconds"),
        Reference("lstm", "-", 500.63, "tab:time_cost", "train_seconds"),
    ),
    exhibits=(
        Exhibit("fig:smsd_figure", "system", "The single mass-spring-damper system."),
        Exhibit("fig:smsd_xvt", "over-time", "Position and velocity over time."),
        Exhibit("fig:smsd_phase", "phase", "Phase portraits."),
    ),
)
