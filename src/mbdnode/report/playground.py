"""A page on which anyone can play with a model: drag it, throw it, drive it, watch it.

The page carries the code of the model itself, traced and printed as JavaScript, and that of its
drawing and its energy: nothing of a mechanism is written by hand for it. A mechanism and what was
learned of it run side by side from one state.
"""

import base64
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import jax.numpy as jnp
import numpy as np

from mbdnode.errors import UserError
from mbdnode.exports import trace_program
from mbdnode.exports.languages.javascript import javascript_functions, javascript_source
from mbdnode.models import FittedMechanism
from mbdnode.multibody import (
    AbstractMechanism,
    AbstractSystem,
    Coordinate,
    Parameter,
    Params,
    constraint_counts,
    resolve_parameters,
)
from mbdnode.report.drawings import Drawing, find_drawing
from mbdnode.report.html import plain_view
from mbdnode.report.panels import thinned
from mbdnode.report.pictures import view_of
from mbdnode.simulation import AbstractEnsemble, Domain, simulate
from mbdnode.trajectory import State, Trajectory

# What the page needs of a model; the rest of its functions would only make it longer.
_ENTRIES = ("init", "project", "step", "outputs")
# How long the motion is that says how large everything is; a paper of a recorder holds some of it.
_TRIED_S, _PAPER_S, _MOST_STEPS, _MOST_POSES = 10.0, 12.0, 4_000, 400


@dataclass(frozen=True)
class Play:
    """What a playground shows.

    **Arguments:**

    - `title`: of the page; `name` is that of the file with the recorded rows.
    - `system`: what is played with: a mechanism, a model or an ensemble.
    - `label`: what it is called, such as "law".
    - `initial`: its start, as for `simulate`.
    - `truth`: the mechanism beside a model of it; None if there is none.
    - `parameters`: values other than the defaults.
    - `integrator`, `dt_s`: of the steps.
    - `inputs`: the range of each input's slider, by name.
    - `domain`: where the training data lies.
    - `used`: the parameters that the model depends on; None for all of them.
    - `motion`: one that shows how far the system moves; simulated if there is none.
    - `held`: the inputs at which it opens, by name; the others are zero.
    """

    title: str
    name: str
    system: Any
    label: str
    initial: Mapping[str, float] | State
    truth: AbstractMechanism | None = None
    parameters: Mapping[str, Any] = field(default_factory=dict)
    integrator: str = "rk4"
    dt_s: float = 0.01
    inputs: Mapping[str, tuple[float, float]] = field(default_factory=dict)
    domain: Domain | None = None
    used: Sequence[str] | None = None
    motion: Trajectory | None = None
    held: Mapping[str, float] = field(default_factory=dict)


@dataclass(frozen=True)
class Playground:
    """A play as a page carries it.

    **Arguments:**

    - `data`: plain data for its script.
    - `programs`: JavaScript by name, each an expression statement and the name that it defines.
    """

    data: dict[str, Any]
    programs: Mapping[str, tuple[str, str]]


def make_playground(play: Play, *, key: str = "play", whole: bool = False) -> Playground:
    """Trace all that a playground needs; `UserError` for a model that cannot be exported.

    `key` names its programs in the page. In a `whole` page, keys act wherever the focus is.
    """
    members = list(play.system) if isinstance(play.system, AbstractEnsemble) else [play.system]
    main = members[0]
    if not isinstance(main, AbstractSystem):
        raise UserError(
            f"{type(main).__name__} continues a recorded motion, so it cannot start where a hand "
            "lets it go. Play with a model that gives accelerations, such as a law or mbd-node."
        )
    motion = _tried(play, main) if play.motion is None else play.motion
    mu = resolve_parameters(main, play.parameters)
    programs: dict[str, tuple[str, str]] = {}
    systems = [] if play.truth is None else [("mechanism", play.truth, "truth")]
    systems += [(play.label, main, "model")]
    told = []
    for label, system, name in systems:
        told.append(_add(programs, f"{key}-{name}", name, label, system, play))
    for number, member in enumerate(members[1:], 1):
        name = f"member{number}"
        _add(programs, f"{key}-{name}", name, name, member, play)
    drawing = find_drawing(_drawn(play, main))
    functions = _energy(play.truth or main, motion.q[0], mu)
    scene = None
    if drawing is not None:
        functions |= _drawing_functions(drawing, motion, mu)
        scene = _scene(drawing, motion, mu)
    if functions:
        programs[f"{key}-scene"] = (javascript_functions("scene", functions), "scene")
    rows = thinned(len(motion), _MOST_POSES)
    q, v = np.asarray(motion.q)[rows], np.asarray(motion.v)[rows]
    first = play.initial
    begin = (first.q, first.v) if isinstance(first, State) else (q[0], v[0])
    start = {name: np.asarray(x).tolist() for name, x in zip("qv", begin, strict=True)}
    data = {
        "title": play.title,
        "name": play.name,
        "whole": whole,
        "dt": play.dt_s,
        "systems": told,
        "functions": f"{key}-scene" if functions else None,
        "coordinates": [
            _coordinate(one, q[:, i], v[:, i], start["q"][i])
            for i, one in enumerate(main.coordinates)
        ],
        "independent": told[-1]["independent"],
        "inputs": [_input(one, play) for one in main.inputs],
        "parameters": [_parameter(one, float(mu[one.name]), play) for one in main.parameters],
        "start": start,
        "constraints": sum(constraint_counts(main, mu)) > 0,
        "energy": "energy" in functions,
        "scene": scene,
        "domain": None if play.domain is None else _domain(play.domain),
        "band": _band(main, [f"{key}-member{i}" for i in range(1, len(members))], key),
    }
    return Playground(data, programs)


def _tried(play: Play, main: AbstractSystem) -> Trajectory:
    """The motion from the start without inputs, or as much of it as there is."""
    steps = int(min(max(_TRIED_S / play.dt_s, 10), _MOST_STEPS))
    given = {"parameters": play.parameters, "integrator": play.integrator, "check_step": False}
    run = simulate(main, play.dt_s * np.arange(steps + 1), play.initial, **given)
    return run.kept


def _add(
    programs: dict[str, tuple[str, str]], key: str, name: str, label: str, system: Any, play: Play
) -> dict[str, Any]:
    program = trace_program(
        system,
        name=name,
        integrator=play.integrator,
        dt_s=play.dt_s,
        parameters=play.parameters,
        entries=_ENTRIES,
    )
    programs[key] = (javascript_source(program), name)
    return {
        "program": key,
        "label": label,
        "outputs": [one.name for one in program.tables.outputs],
        "independent": list(program.tables.independent_rates),
    }


def _drawn(play: Play, main: AbstractSystem) -> AbstractSystem:
    """What has a drawing: the mechanism that a model is of."""
    return play.truth or getattr(main, "body", main)


def _energy(body: AbstractSystem, q: Any, mu: Params) -> dict[str, Any]:
    """Kinetic and potential energy as a function of plain arrays, of what has masses."""
    if not isinstance(body, AbstractMechanism) or body.potential_energy(q, mu) is None:
        return {}
    names = list(mu)

    def joules(q, v, p):
        values = dict(zip(names, p, strict=True))
        both = (0.5 * v @ body.mass(q, values) @ v, body.potential_energy(q, values))
        return jnp.stack([jnp.asarray(x, float) for x in both])

    return {"energy": (joules, (q, q, jnp.zeros(len(names))))}


def _drawing_functions(
    drawing: Drawing, motion: Trajectory, mu: Mapping[str, Any]
) -> dict[str, tuple[Any, tuple[Any, ...]]]:
    """Numbers of parts and ground, and points of paths, from coordinates and parameters."""
    names, q = list(mu), jnp.zeros(motion.q.shape[1])
    p, poses = jnp.zeros(len(names)), jnp.zeros((2 * len(q), len(q)))
    by_name = lambda p: dict(zip(names, p, strict=True))  # noqa: E731

    def numbers(shapes):
        found = [number for shape in shapes for number in shape.numbers]
        return jnp.stack([jnp.asarray(x, float) for x in found]) if found else jnp.zeros(0)

    def traces(q, p):
        both = jnp.stack([q, q])
        paths = drawing.traces(np.arange(2.0), both, by_name(p))
        return jnp.concatenate([path[0] for path in paths]) if paths else jnp.zeros(0)

    return {
        "parts": (lambda q, p: numbers(drawing.parts(q, by_name(p))), (q, p)),
        "ground": (lambda poses, p: numbers(drawing.ground(poses, by_name(p))), (poses, p)),
        "traces": (traces, (q, p)),
    }


def _scene(drawing: Drawing, motion: Trajectory, mu: Mapping[str, Any]) -> dict[str, Any]:
    q = np.asarray(motion.q)[thinned(len(motion), _MOST_POSES)]
    plain = {name: float(value) for name, value in mu.items()}
    poses = [q[index] for column in q.T for index in (np.argmin(column), np.argmax(column))]
    paper = drawing.paper and dict(zip(("top", "length"), drawing.paper, strict=True))
    return {
        "looks": [shape.look for shape in drawing.parts(q[0], plain)],
        "ground": [shape.look for shape in drawing.ground(np.array(poses), plain)],
        "colors": list(drawing.colors),
        "paper": paper and {**paper, "seconds": _PAPER_S},
        "poses": [pose.tolist() for pose in poses],
        "view": plain_view(view_of(drawing, q, plain)),
    }


def _coordinate(one: Coordinate, q: np.ndarray, v: np.ndarray, start: float) -> dict[str, Any]:
    """A coordinate with the ranges of its sliders, which the motion fits into."""
    fastest = float(np.max(np.abs(v)))
    if one.is_angle:
        turn = 2 * math.pi * round(start / (2 * math.pi))
        low, high = turn - math.pi, turn + math.pi
    else:
        middle, half = (q.min() + q.max()) / 2, max(0.75 * float(np.ptp(q)), 0.5)
        low, high = float(middle - half), float(middle + half)
    speed = _round_up(max(2 * fastest, 1.0))
    return {
        "name": one.name,
        "rate": one.rate,
        "unit": one.unit,
        "angle": one.is_angle,
        "range": {"low": low, "high": high},
        "rateRange": {"low": -speed, "high": speed},
        "kick": max(0.5 * fastest, 0.3),
    }


def _input(one: Any, play: Play) -> dict[str, Any]:
    low, high = play.inputs.get(one.name, (-10.0, 10.0))
    value = float(play.held.get(one.name, 0.0))
    return {"name": one.name, "unit": one.unit, "low": low, "high": high, "value": value}


def _parameter(one: Parameter, value: float, play: Play) -> dict[str, Any]:
    """A parameter with a slider from a fourth of its value to four times it, within its bounds."""
    ends = sorted((value / 4, 4 * value)) if value else [-1.0, 1.0]
    least = max(one.at_least, one.above + (1e-3 * abs(value) if value else 1e-3))
    low, high = max(ends[0], least), min(ends[1], one.at_most)
    note = ""
    if play.used is not None and one.name not in play.used:
        note = f"the {play.label} was learned at one value of it"
    return {
        "name": one.name,
        "unit": one.unit,
        "value": value,
        "low": low,
        "high": max(high, low),
        "meaning": one.meaning,
        "note": note,
    }


def _round_up(value: float) -> float:
    """To one digit."""
    power = 10.0 ** math.floor(math.log10(value))
    return math.ceil(value / power) * power


def _domain(domain: Domain) -> dict[str, Any]:
    points = np.ascontiguousarray(domain.points, "<f4")
    return {
        "points": base64.b64encode(points.tobytes()).decode(),
        "center": domain.center.tolist(),
        "std": domain.std.tolist(),
        "threshold": float(domain.threshold),
        "positions": list(domain.positions),
        "velocities": list(domain.velocities),
        "angles": list(domain.angles),
    }


def _band(main: AbstractSystem, others: Sequence[str], key: str) -> dict[str, Any] | None:
    """What runs beside a model to say how sure it is; None for a model that does not know."""
    if others:
        return {"members": [f"{key}-model", *others]}
    if not isinstance(main, FittedMechanism) or not main.deviations:
        return None
    known = main.deviations
    none = (0.0,) * len(next(iter(known.values())))
    along = np.array([known.get(p.name, none) for p in main.parameters])
    finite = lambda x: x if math.isfinite(x) else None  # noqa: E731
    return {
        "directions": along.T.tolist(),
        "bounds": [[finite(max(p.at_least, p.above)), finite(p.at_most)] for p in main.parameters],
    }
