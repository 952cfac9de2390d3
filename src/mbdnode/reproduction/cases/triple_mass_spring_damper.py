"""Three masses from 100 kg to 1 kg: 3 s to learn from, 1 s more to predict."""

from mbdnode.mechanisms.triple_mass_spring_damper import TripleMassSpringDamper
from mbdnode.reproduction.cases.case import Case, paper_table
from mbdnode.reproduction.cases.printed import Exhibit, Reference

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
    hyperparameters=paper_table("triple-mass-spring-damper", width=256, hidden_layers=2),
    references=(
        Reference("mbd-node", "rk4", 8.2e-3, "tab: model_errors"),
        Reference("lstm", "-", 1.8e-1, "tab: model_errors; a caption misprints it as 1.8e-2"),
        Reference("fcnn", "-", 4.2e-2, "tab: model_errors"),
        Reference("mbd-node", "fe1", 358.55, "tab:time_cost", "train_seconds"),
        Reference("mbd-node", "mp2", 608.55, "tab:time_cost", "train_seconds"),
        Reference("mbd-node", "rk4", 915.68, "tab:time_cost", "train_seconds"),
        Reference("fcnn", "-", 214.13, "tab:time_cost", "train_seconds"),
        Reference("lstm", "-", 460.33, "tab:time_cost", "train_seconds"),
    ),
    exhibits=(
        Exhibit("fig:tmsd_figure", "system", "The triple mass-spring-damper system."),
        Exhibit("fig:tmsd_xvt", "over-time", "Positions and velocities over time."),
        Exhibit("fig:tmsd_phase", "phase", "Phase portraits."),
    ),
    notes=(
        "The damper of the first mass acts as the paper's equation prints it, between the masses "
        "1 and 2.",
    ),
)
