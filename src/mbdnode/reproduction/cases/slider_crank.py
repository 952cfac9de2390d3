"""The slider-crank under random force and torque, 10,000 steps."""

import math

from mbdnode.control import Limits, QuadraticCost
from mbdnode.mechanisms.slider_crank import SliderCrank
from mbdnode.reproduction.cases.case import Case, paper_table
from mbdnode.reproduction.cases.control_task import ControlTask
from mbdnode.reproduction.reference import Exhibit, Reference

SPEED = ControlTask(
    name="speed",
    title="turned at a constant speed, with a load from 4 s on",
    initial={"theta1": 1.0, "theta1_dot": 0.0},
    steps=250,
    settings={
        "horizon": 25,
        "dt": 0.04,
        "actuated": ("T",),
        "limits": Limits(u_bounds=(-10.0, 10.0)),
        "relinearize": "each",
        "observer_gain": 0.3,
    },
    # Where the crank is does not matter, only how fast it turns.
    cost=QuadraticCost(
        Q=(0.0, 1.0), R=(1e-6,), target={"theta1": 1.0, "theta1_dot": 0.8}, terminal=None
    ),
    disturbance=lambda t: {"T": -2.0 if t >= 4.0 else 0.0},
    tolerance=1e-2,
    figure="control:slider-crank",
)

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
    bounds={
        "theta1": (0.0, 2 * math.pi),
        "theta1_dot": (-4.0, 4.0),
        "F": (-10.0, 10.0),
        "T": (-10.0, 10.0),
    },
    hyperparameters=paper_table("slider-crank"),
    references=(Reference("mbd-node", "rk4", 3.2e-2, "tab: model_errors"),),
    exhibits=(
        Exhibit("fig: MNODE_con", "forward-pass", "The paper's forward pass with constraints."),
        Exhibit("fig:slider_crank", "system", "The slider-crank mechanism."),
        Exhibit("fig:slider_crank_dyanmics", "driven", "The crank under force and torque."),
        Exhibit("fig:slider_crank_full", "dependent", "The dependent coordinates."),
        Exhibit(
            "control:slider-crank",
            "control-trials",
            f"Turned at a constant speed ({SPEED.setting}).",
        ),
    ),
    trials=(SPEED,),
    network_notes=(
        "The network reads sine and cosine of the crank's angle; the text does not say how.",
    ),
)
