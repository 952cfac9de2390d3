"""At which noise the structure of a law is still found, beside published figures.

    python -m benchmarks.noise [--recipe fast] [--seeds 3] [--factors 2] [--noise own] [SYSTEM ...]

The systems with their masses, lengths and initial states, the runs of 5 s with a step of 0.01 s and
the size of the noise (one standard deviation for all columns, in rad, m, rad/s and m/s) are those
of Purnomo and Hayashibe, *Sparse identification of Lagrangian for nonlinear dynamical systems via
proximal gradient method*, as their repository AdamPurnomo/Extended-Lagrangian-SINDy-xL-SINDy- has
them; its table has the highest noise with the right structure, of their method (xL-SINDy) and of
SINDy-PI. What differs:

- There, 100 runs are given with their accelerations, and one noise moves positions, velocities and
  accelerations of a row alike. Here, no accelerations are given, there are 20 runs unless `--runs`
  says otherwise, and every column has noise of its own, or one noise moves all columns of a row
  (`--noise shared`).
- There, one term of the Lagrangian is known, up to three more are exempt from the penalty, and some
  terms are taken out of the library by hand, others for each system. Here nothing is known but
  which coordinates are angles.

A structure is right if the law has the terms of the true Lagrangian and no others, forces included.
Errors of the coefficients are relative, the largest of them, after the factor by which a Lagrangian
is free. Predictions are of five motions without noise that were not seen, from initial states as
those of the training, the median of their NRMSE (error by standard deviation) over 2 s.
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
# Of the motions that are predicted.
UNSEEN, UNSEEN_STEPS = 5, 200


@dataclass(frozen=True)
class Published:
    """A system and the highest noise with the right structure, as published.

    **Arguments:**

    - `mass`, `potential`: of the positions; they are all of the Lagrangian.
    - `coordinates`: of the system.
    - `start`: positions and velocities at the start of a run.
    - `xl_sindy`, `sindy_pi`: the highest level with the right structure.
    """

    mass: Callable
    potential: Callable
    coordinates: tuple
    start: Callable
    xl_sindy: float
    sindy_pi: float

    def system(self) -> mbd.AccelerationFunction:
        """The Euler-Lagrange equations, as a system to simulate."""

        def acceleration(t, q, v, u, mu):
            kinetic = lambda q: 0.5 * v @ self.mass(q) @ v  # noqa: E731
            turned = jax.jvp(lambda q: self.mass(q) @ v, (q,), (v,))[1]
            force = jax.grad(kinetic)(q) - jax.grad(self.potential)(q) - turned
            return jnp.linalg.solve(self.mass(q), force)

        return mbd.AccelerationFunction(acceleration, self.coordinates)


def _double_mass(q):
    """Of two rods of 1 m with 1 kg at their ends, angles from the vertical."""
    across = jnp.cos(q[0] - q[1])
    return jnp.array([[2.0, across], [across, 1.0]])


def _cart_mass(q):
    """Of a cart of 1 kg with 0.5 kg at the end of a rod of 1 m; the angle first."""
    across = 0.5 * jnp.cos(q[0])
    return jnp.array([[0.5, across], [across, 1.5]])


SYSTEMS = {
    "double pendulum": Published(
        _double_mass,
        lambda q: -GRAVITY * (2 * jnp.cos(q[0]) + jnp.cos(q[1])),
        (mbd.angle("q1"), mbd.angle("q2")),
        lambda random: (random.uniform(-np.pi, np.pi, 2), np.zeros(2)),
        1e-1,
        1e-3,
    ),
    "cart-pendulum": Published(
        _cart_mass,
        lambda q: -0.5 * GRAVITY * jnp.cos(q[0]),
        (mbd.angle("q1"), mbd.length("x")),
        lambda random: (np.array([random.uniform(-np.pi, np.pi), 0.0]), np.zeros(2)),
        4e-2,
        1e-3,
    ),
    # A bob of 1 kg on a rod of 1 m: the angle from the vertical, and about it.
    "spherical pendulum": Published(
        lambda q: jnp.diag(jnp.array([1.0, jnp.sin(q[0]) ** 2])),
        lambda q: -GRAVITY * jnp.cos(q[0]),
        (mbd.angle("q1"), mbd.angle("q2")),
        lambda random: (
            np.array([random.uniform(np.pi / 3, np.pi / 2), 0.0]),
            np.array([0.0, np.pi]),
        ),
        2e-2,
        1e-6,
    ),
}


def clean_runs(system: Published, count: int, seed: int, steps: int = STEPS) -> list:
    """Runs without noise, at five times the recorded steps."""
    random = np.random.default_rng(seed)
    body = system.system()
    fine = np.arange(steps * SUBSTEPS + 1) * (DT_S / SUBSTEPS)
    runs = []
    for _ in range(count):
        q, v = system.start(random)
        run = mbd.simulate(body, fine, mbd.State(jnp.asarray(q), jnp.asarray(v)))
        cut = jax.tree.map(lambda x: jnp.asarray(np.asarray(x)[::SUBSTEPS]) if x.ndim else x, run)
        runs.append(eqx.tree_at(lambda r: r.status.step, cut, jnp.asarray(steps)))
    return runs


def with_noise(runs: list, level: float, kind: str, seed: int) -> list:
    """Normal noise, of every column its own or of every row one for all columns."""
    random, noisy = np.random.default_rng(seed), []
    for run in runs:
        width = 1 if kind == "shared" else 2 * run.q.shape[1]
        moves = np.broadcast_to(random.normal(size=(len(run.t), width)), (len(run.t), 4))
        moved = run.q + level * moves[:, :2], run.v + level * moves[:, 2:]
        noisy.append(eqx.tree_at(lambda r: (r.q, r.v), run, moved))
    return noisy


def coefficients(model: LearnedMechanism) -> dict[str, float]:
    """Every term of a law by name, with its coefficient, zeros left out."""
    mass, potential, damping, drive, resistance = (np.asarray(part) for part in model.parts())
    names, found = model.independent, {}
    pairs = [(i, j) for i in range(len(names)) for j in range(i, len(names))]
    for (i, j), row in zip(pairs, mass, strict=True):
        for term, value in zip(model.mass_basis.terms, row, strict=True):
            found[f"M[{names[i]}, {names[j]}] {_factors(term, model)}"] = value
    for term, value in zip(model.potential_basis.terms[1:], potential, strict=False):
        found[f"V {_factors(term, model)}"] = value
    springs = potential[len(model.potential_basis) - 1 :]
    rest = {"V spring": springs, "damping": damping, "input": drive, "resistance": resistance}
    for name, values in rest.items():
        found |= {f"{name} {k}": value for k, value in enumerate(np.ravel(values))}
    return {name: float(value) for name, value in found.items() if value != 0}


def _factors(term: tuple[int, ...], model: LearnedMechanism) -> str:
    """A product of the basis in words."""
    words = []
    for name, factor, is_angle in zip(
        model.independent, term, model.mass_basis.angles, strict=True
    ):
        order = (factor + 1) // 2 if is_angle else factor
        times = "" if order == 1 else f"{order} "
        if factor and is_angle:
            words.append(f"{'cos' if factor % 2 else 'sin'}({times}{name})")
        elif factor:
            words.append(f"{name}^{order}")
    return " ".join(words) or "1"


def true_coefficients(system: Published, model: LearnedMechanism) -> dict[str, float] | None:
    """The true Lagrangian in the terms of a law's form; None where the form cannot say it."""
    random = np.random.default_rng(0)
    places = [jnp.asarray(random.uniform(-2, 2, len(model.independent))) for _ in range(400)]
    rows, columns = np.triu_indices(len(model.independent))
    inertia = np.array([np.asarray(system.mass(q))[rows, columns] for q in places])
    energy = np.array([float(system.potential(q)) for q in places])[:, None]
    solved = []
    for basis, wanted in ((model.mass_basis, inertia), (model.potential_basis, energy)):
        table = np.array([np.asarray(basis(q)) for q in places])
        values = np.linalg.lstsq(table, wanted, rcond=None)[0]
        if np.max(np.abs(table @ values - wanted)) > 1e-9:
            return None
        solved.append(np.where(np.abs(values) > 1e-9, values, 0.0))
    blank = replace_values(model, np.zeros(sum(np.asarray(x).size for x in model.parts())))
    values = np.array(blank.network.values)
    values[: solved[0].size] = solved[0].T.ravel()
    values[solved[0].size : solved[0].size + len(solved[1]) - 1] = solved[1][1:, 0]
    return coefficients(replace_values(model, values))


def replace_values(model: LearnedMechanism, values: np.ndarray) -> LearnedMechanism:
    """The same form with other coefficients, of all of its columns."""
    settings = {
        name: getattr(model.settings, name)
        for name in (
            "mass_degree",
            "potential_degree",
            "angle_springs",
            "joint_laws",
            "relative_angles",
        )
    }
    # Lengths as they are: the true law is written in them, and only which terms it has is used.
    whole = LearnedMechanism.for_system(model.body, **settings)
    whole = eqx.tree_at(
        lambda m: (m.mass_basis, m.potential_basis),
        whole,
        (model.mass_basis, model.potential_basis),
    )
    return eqx.tree_at(lambda m: m.network.values, whole, jnp.asarray(values))


@dataclass(frozen=True)
class Comparison:
    """A law beside the true one.

    **Arguments:**

    - `extra`, `missing`: terms, by name.
    - `error`: the largest relative error of the coefficients of the true terms.
    """

    extra: tuple[str, ...]
    missing: tuple[str, ...]
    error: float

    @property
    def right(self) -> bool:
        """Whether the law has the terms of the true one and no others."""
        return not (self.extra or self.missing)


def compare_structure(system: Published, model) -> Comparison:
    """Which terms a law has beside those of the true Lagrangian, and which it lacks.

    **Arguments:**

    - `system`: with the true Lagrangian.
    - `model`: the law that was found, of any kind.

    **Returns:**

    The `Comparison`. A law that is no Lagrangian, or whose form lacks a term, is not right.
    """
    if not isinstance(model, LearnedMechanism):
        return Comparison((), ("a Lagrangian",), np.inf)
    true, found = true_coefficients(system, model), coefficients(model)
    if true is None:
        return Comparison((), ("terms that its form does not have",), np.inf)
    own = np.array([found.get(name, 0.0) for name in true])
    given = np.array(list(true.values()))
    # The law is free up to a factor: the one with the smallest relative errors.
    ratio = own / given
    factor = float(ratio @ ratio / np.sum(ratio)) if np.sum(ratio) else 1.0
    return Comparison(
        tuple(name for name in found if name not in true),
        tuple(name for name in true if name not in found),
        float(np.max(np.abs(ratio / factor - 1))),
    )


def unseen_error(system: Published, model, seed: int) -> float:
    """The median NRMSE of predictions of motions without noise."""
    errors = []
    for run in clean_runs(system, UNSEEN, 1_000 + seed, UNSEEN_STEPS):
        start = mbd.State(run.q[0], run.v[0])
        path = mbd.simulate(model, np.asarray(run.t), start)
        both = [np.concatenate([np.asarray(x.q), np.asarray(x.v)], axis=1) for x in (path, run)]
        if both[0].shape != both[1].shape or not np.all(np.isfinite(both[0])):
            errors.append(np.inf)
            continue
        spread = np.std(both[1], axis=0)
        moving = spread > 0
        scaled = (both[0] - both[1])[:, moving] / spread[moving]
        errors.append(float(np.sqrt(np.mean(scaled**2))))
    return float(np.median(errors))


def main() -> None:
    """Try every system at every level, and print."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("systems", nargs="*", help="all of them if none is named")
    parser.add_argument("--recipe", default="fast")
    parser.add_argument("--runs", type=int, default=20)
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--factors", default="2", help="of xL-SINDy's level, with commas")
    parser.add_argument("--noise", default="own", choices=("own", "shared"))
    given = parser.parse_args()
    console = Console(width=150)
    table = Table(title=f"Right structure in noise, {given.recipe}, {given.runs} runs of 5 s")
    for column in (
        "system",
        "xL-SINDy",
        "SINDy-PI",
        "level",
        "right",
        "coefficients",
        "NRMSE",
        "s",
    ):
        table.add_column(column)
    for name in given.systems or SYSTEMS:
        system = SYSTEMS[name]
        for factor in (float(x) for x in given.factors.split(",")):
            level, right, errors, rollouts, times = factor * system.xl_sindy, 0, [], [], []
            for seed in range(given.seeds):
                clean = clean_runs(system, given.runs, seed)
                runs = with_noise(clean, level, given.noise, seed + 100)
                begun = time.perf_counter()
                found = mbd.identify(system.system(), mbd.Dataset(runs), given.recipe)
                times.append(time.perf_counter() - begun)
                compared = compare_structure(system, found.model)
                right += compared.right
                errors.append(compared.error)
                rollouts.append(unseen_error(system, found.model, seed))
                console.print(
                    f"{name}, noise {level:g}, seed {seed}: right {compared.right}"
                    f", extra {list(compared.extra)}, missing {list(compared.missing)}, "
                    f"coefficients within {compared.error:.2%}, NRMSE {rollouts[-1]:.2%}, "
                    f"{times[-1]:.0f} s ({found.compile_seconds:.0f} s compiling)",
                    style="dim",
                    markup=False,
                )
            table.add_row(
                name,
                f"{system.xl_sindy:g}",
                f"{system.sindy_pi:g}",
                f"{level:g}",
                f"{right} of {given.seeds}",
                f"{np.median(errors):.2%}",
                f"{np.median(rollouts):.2%}",
                f"{np.median(times):.0f}",
            )
    console.print(table)


if __name__ == "__main__":
    main()
