"""The slider-crank under random force and torque, 10,000 steps; and with friction in its guide."""

import math

from mbdnode.control import Limits, QuadraticCost
from mbdnode.mechanisms.slider_crank import SliderCrank
from mbdnode.mechanisms.slider_crank_friction import SliderCrankFriction
from mbdnode.models.paper_settings import mbdnode
from mbdnode.reproduction.cases.case import Case, Trial, paper_table
from mbdnode.reproduction.cases.control_task import ControlTask
from mbdnode.reproduction.cases.printed import Exhibit, Reference

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
    hyperparameters=paper_table("slider-crank", width=256, hidden_layers=2),
    references=(Reference("mbd-node", "rk4", 3.2e-2, "tab: model_errors"),),
    exhibits=(
        Exhibit("fig: MNODE_con", "diagram", "The paper's forward pass with constraints."),
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

_INITIAL = {"theta1": 0.0, "theta1_dot": 0.0}
_LEARNED_C, _ASKED_C = (0.0, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6), (0.05, 0.15, 0.35, 0.45, 0.55)

FRICTION = Case(
    name="slider-crank:friction",
    title="Slider-crank with friction in the slider's guide",
    mechanism=SliderCrankFriction(),
    initial=_INITIAL,
    parameters={"c": 0.25},
    dt_s=0.01,
    steps=2_000,
    train_steps=0,
    integrator="rk4",
    source="FNODE (arXiv 2509.00183), main_fnode_fric.py of its code",
    training_parameters=tuple({"c": c} for c in _LEARNED_C),
    hyperparameters=mbdnode(
        "rk4",
        500,
        1e-3,
        0.98,
        "slider-crank",
        width=256,
        hidden_layers=2,
        batch_size=64,
        angle_features=True,
        use_parameters=("c",),
    ),
    exhibits=(
        Exhibit("friction:over-time", "over-time", "A coefficient that was never seen: 0.25."),
        Exhibit("friction:coefficients", "starts", "Five coefficients more, never seen."),
    ),
    trials=tuple(
        Trial(
            f"c-{c:g}",
            f"with c = {c:g}",
            _INITIAL,
            2_000,
            figure="friction:coefficients",
            parameters={"c": c},
        )
        for c in _ASKED_C
    ),
    notes=(
        f"Learned from one motion with each of c = {', '.join(f'{c:g}' for c in _LEARNED_C)}, from "
        "the outstretched pose at rest, 20 s at 0.01 s, as FNODE's code does; asked for 0.25.",
        "There the damper turns both bodies the same way, the spring pushes where it should pull, "
        "and a torque of 0.002 N m acts that the network does not read. Here damper and spring "
        "obey action and reaction, and there is no torque, so the numbers are not comparable.",
    ),
)
