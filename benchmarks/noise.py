"""At which noise the structure of a law is still found, beside published figures.

    python -m benchmarks.noise [--recipe best] [--seeds 1] [SYSTEM ...]

The systems with their masses, lengths and initial states, the step of 0.01 s and the kind of noise
(one standard deviation for all columns, in rad, m, rad/s and m/s) are those of Purnomo and
Hayashibe, *Sparse identification of Lagrangian for nonlinear dynamical systems via proximal
gradient method*, and of their repository AdamPurnomo/Extended-Lagrangian-SINDy-xL-SINDy-; its table
has the highest noise with the right structure, of their method (xL-SINDy) and of SINDy-PI. There
100 runs of 5 s are given with their accelerations, and one noise moves all columns of a row alike;
here there are no accelerations, fewer runs, and every column has noise of its own. A structure is
right if the law has the terms of the true one and no others. Twice the level of xL-SINDy is tried
first, then lower ones.
"""

import argparse
import time
from collections.abc import Callable
from dataclasses import dataclass

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from rich.console import Console
from rich.table import Table

import mbdnode as mbd
from mbdnode.models.learned_mechanism import LearnedMechanism

GRAVITY, DT_S, STEPS, SUBSTEPS = 9.81, 0.01, 500, 5


@dataclass(frozen=True)
class Published:
    """A system and the highest noise with the right structure, as published.

    **Arguments:**

    - `acceleration`, `coordinates`: of the system.
    - `start`: positions and velocities at the start of a run.
    - `terms`: of the law, as its equations print them, group by group.
    - `xl_sindy`, `sindy_pi`: the highest level with the right structure.
    """

    acceleration: Callable
    coordinates: tuple
    start: Callable
    terms: frozenset[str]
    xl_sindy: float
    sindy_pi: float


def _double(t, q, v, u, mu):
    """Two rods of 1 m with 1 kg at their ends, angles from the vertical."""
    across, turn = jnp.cos(q[0] - q[1]), jnp.sin(q[0] - q[1])
    force = jnp.array(
        [
            -turn * v[1] ** 2 - 2 * GRAVITY * jnp.sin(q[0]),
            turn * v[0] ** 2 - GRAVITY * jnp.sin(q[1]),
        ]
    )
    return jnp.linalg.solve(jnp.array([[2.0, across], [across, 1.0]]), force)


def _cart(t, q, v, u, mu):
    """A cart of 1 kg with 0.5 kg at the end of a rod of 1 m; the angle first."""
    sine, cosine = jnp.sin(q[0]), jnp.cos(q[0])
    force = jnp.array([-0.5 * GRAVITY * sine, 0.5 * sine * v[0] ** 2])
    return jnp.linalg.solve(jnp.array([[0.5, 0.5 * cosine], [0.5 * cosine, 1.5]]), force)


def _spherical(t, q, v, u, mu):
    """A bob of 1 kg on a rod of 1 m: angle from the vertical, and about it."""
    sine, cosine = jnp.sin(q[0]), jnp.cos(q[0])
    return jnp.array([sine * cosine * v[1] ** 2 - GRAVITY * sine, -2 * v[0] * v[1] * cosine / sine])


SYSTEMS = {
    "double pendulum": Published(
        _double,
        (mbd.angle("q1"), mbd.angle("q2")),
        lambda random: (random.uniform(-np.pi, np.pi, 2), np.zeros(2)),
        frozenset({"M11 1", "M12 cos(q1 - q2)", "M22 1", "V cos(q1)", "V cos(q2)"}),
        1e-1,
        1e-3,
    ),
    "cart-pendulum": Published(
        _cart,
        (mbd.angle("q1"), mbd.length("x")),
        lambda random: (np.array([random.uniform(-np.pi, np.pi), 0.0]), np.zeros(2)),
        frozenset({"M11 1", "M12 cos(q1)", "M22 1", "V cos(q1)"}),
        4e-2,
        1e-3,
    ),
    "spherical pendulum": Published(
        _spherical,
        (mbd.angle("q1"), mbd.angle("q2")),
        lambda random: (
            np.array([random.uniform(np.pi / 3, np.pi / 2), 0.0]),
            np.array([0.0, np.pi]),
        ),
        frozenset({"M11 1", "M22 1", "M22 cos(2 q1)", "V cos(q1)"}),
        2e-2,
        1e-6,
    ),
}


def noisy_runs(system: Published, level: float, count: int, seed: int) -> list:
    """Runs of 5 s with noise of their own in every column."""
    random = np.random.default_rng(seed)
    body = mbd.AccelerationFunction(system.acceleration, system.coordinates)
    fine = np.arange(STEPS * SUBSTEPS + 1) * (DT_S / SUBSTEPS)
    runs = []
    for _ in range(count):
        q, v = system.start(random)
        run = mbd.simulate(body, fine, mbd.State(jnp.asarray(q), jnp.asarray(v)))
        cut = jax.tree.map(lambda x: jnp.asarray(np.asarray(x)[::SUBSTEPS]) if x.ndim else x, run)
        moved = tuple(x + level * jnp.asarray(random.normal(size=x.shape)) for x in (cut.q, cut.v))
        whole = eqx.tree_at(lambda r: r.status.step, cut, jnp.asarray(STEPS))
        runs.append(eqx.tree_at(lambda r: (r.q, r.v), whole, moved))
    return runs


def terms_of(found) -> frozenset[str]:
    """The terms of a law's Lagrangian and forces, without their coefficients."""
    if not isinstance(found.model, LearnedMechanism):
        return frozenset({found.structure})
    groups = dict(found.equations.groups)
    names = found.model.independent
    terms = set()
    for i, first in enumerate(names):
        for j, second in enumerate(names):
            for equation in groups["mass matrix"]:
                if equation.left.text == f"M[{first}, {second}]":
                    terms |= {f"M{i + 1}{j + 1} {_text(term)}" for term in equation.terms}
    for heading, equations in groups.items():
        if heading == "potential":
            terms |= {f"V {_text(term)}" for term in equations[0].terms}
        elif heading != "mass matrix":
            terms |= {f"Q {_text(term)}" for one in equations for term in one.terms}
    return frozenset(terms)


def _text(term) -> str:
    return " ".join(factor.text for factor in term.factors) or "1"


def main() -> None:
    """Try every system from twice the published noise down, and print."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("systems", nargs="*", help="all of them if none is named")
    parser.add_argument("--recipe", default="best")
    parser.add_argument("--runs", type=int, default=20)
    parser.add_argument("--seeds", type=int, default=1)
    parser.add_argument("--factors", default="2,1,0.5", help="of xL-SINDy's level, with commas")
    given = parser.parse_args()
    console = Console(width=150)
    table = Table(title=f"Highest noise with the right structure, {given.runs} runs of 5 s")
    for column in ("system", "xL-SINDy", "SINDy-PI", "level", "right", "s (compile)", "terms"):
        table.add_column(column)
    for name in given.systems or SYSTEMS:
        system = SYSTEMS[name]
        for factor in (float(x) for x in given.factors.split(",")):
            level, right, row = factor * system.xl_sindy, 0, ("", "")
            for seed in range(given.seeds):
                runs = noisy_runs(system, level, given.runs, seed)
                body = mbd.AccelerationFunction(system.acceleration, system.coordinates)
                begun = time.perf_counter()
                found = mbd.identify(body, mbd.Dataset(runs), given.recipe)
                seconds = time.perf_counter() - begun
                terms = terms_of(found)
                right += terms == system.terms
                row = f"{seconds:.0f} ({found.compile_seconds:.0f})", ", ".join(sorted(terms))
                jax.clear_caches()
            published = f"{system.xl_sindy:g}", f"{system.sindy_pi:g}"
            cells = (name, *published, f"{level:g}", f"{right} of {given.seeds}", *row)
            table.add_row(*cells)
            console.print(*cells, style="dim")
            if right == given.seeds:
                break
    console.print(table)


if __name__ == "__main__":
    main()
