"""A damped pendulum pushed off at its lowest point: 3 s to learn from, 1 s more to predict.

A model that has learned this one swing is then started elsewhere, and pushed at random. The variant
is what the paper's text says of parameters and shows no example of: one network for pendulums of
all lengths, which reads the length beside the state.
"""

import math

from mbdnode.mechanisms.single_pendulum import SinglePendulum
from mbdnode.models.paper_settings import mbdnode
from mbdnode.reproduction.cases.case import Case, Trial, paper_table
from mbdnode.reproduction.cases.printed import Exhibit, Reference

_STARTS = ((1.0, 0.0), (-0.2, 3.0), (-1.0, 0.0), (-0.5, -2.5))
# N(0, 25) in the text: 25 is read as the variance.
_PUSH_N = 5.0
# In meters. What is asked lies between two of those that were learned, and once beyond them all.
_LEARNED_M = (0.6, 0.8, 1.2, 1.4)
_ASKED_M = (0.7, 1.3, 1.6)

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
    hyperparameters=paper_table("single-pendulum", width=256, hidden_layers=2),
    references=(
        Reference("mbd-node", "mp2", 2.0e-3, "tab: model_errors"),
        Reference("lstm", "-", 3.4e-3, "tab: model_errors"),
        Reference("fcnn", "-", 8.0e-1, "tab: model_errors"),
        Reference("mbd-node", "fe1", 250.52, "tab:time_cost", "train_seconds"),
        Reference("mbd-node", "mp2", 276.12, "tab:time_cost", "train_seconds"),
        Reference("mbd-node", "rk4", 838.37, "tab:time_cost", "train_seconds"),
        Reference("fcnn", "-", 210.18, "tab:time_cost", "train_seconds"),
        Reference("lstm", "-", 348.36, "tab:time_cost", "train_seconds"),
    ),
    exhibits=(
        Exhibit(
            "fig: MNODE_un",
            "diagram",
            "The paper's forward pass: forces added to the network's.",
        ),
        Exhibit("fig:single_pendulum", "system", "The single pendulum."),
        Exhibit("fig:sp_xvt", "over-time", "Angle and angular velocity over time."),
        Exhibit("fig:sp_phase", "phase", "Phase portraits."),
        Exhibit("fig: sp_initialization", "starts", "Four initial states that were never seen."),
        Exhibit("fig: sp_force", "forced", "Under a random force."),
    ),
    trials=(
        *(
            Trial(
                f"start-{number}",
                f"from theta = {theta:g}, omega = {omega:g}",
                {"theta": theta, "theta_dot": omega},
                400,
                figure="fig: sp_initialization",
            )
            for number, (theta, omega) in enumerate(_STARTS, 1)
        ),
        Trial(
            "random-force",
            "under a random force of 5 N, a new one each step",
            {"theta": 0.0, "theta_dot": math.pi},
            300,
            lambda steps, random: random.normal(0.0, _PUSH_N, (steps, 1)),
            figure="fig: sp_force",
        ),
    ),
    notes=(
        "The random force N(0, 25) is read as having the variance 25 N^2. No model is trained "
        "under it: each adds the acceleration that it causes in the known pendulum to its own.",
    ),
)

LENGTHS = Case(
    name="single-pendulum:lengths",
    title="Damped single pendulum of any length",
    mechanism=SinglePendulum(),
    initial=CASE.initial,
    dt_s=CASE.dt_s,
    steps=CASE.steps,
    train_steps=0,
    integrator=CASE.integrator,
    source="paper, Section 'Extensions of Neural Ordinary Differential Equation' (PNODE)",
    training_parameters=tuple({"L": length} for length in _LEARNED_M),
    hyperparameters=mbdnode(
        "mp2",
        400,
        6e-4,
        0.98,
        "single-pendulum",
        width=256,
        hidden_layers=2,
        forces="none",
        use_parameters=("L",),
    ),
    exhibits=(
        Exhibit("parameters:over-time", "over-time", "A length that was never seen: 1 m."),
        Exhibit("parameters:lengths", "starts", "Three lengths more that were never seen."),
    ),
    trials=tuple(
        Trial(
            f"length-{length:g}",
            f"with L = {length:g} m",
            CASE.initial,
            CASE.steps,
            figure="parameters:lengths",
            parameters={"L": length},
        )
        for length in _ASKED_M
    ),
    notes=(
        f"Learned from pendulums of {', '.join(f'{length:g}' for length in _LEARNED_M)} m, one "
        "motion each, and asked for one of 1 m. The paper describes parameters among the "
        "network's inputs (PNODE) and has no such example, so there is no number to compare with.",
    ),
)
