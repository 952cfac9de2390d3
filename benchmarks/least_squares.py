"""Our Levenberg-Marquardt and Optimistix's, on two problems of identification.

    python -m benchmarks.least_squares

Initial states of 16 windows of a noisy pendulum, and shooting refinement of its law over the
segments of one noisy run. The first time is mostly compilation; then the median of five.
"""

import statistics
import time

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import optimistix as optx
from jax.flatten_util import ravel_pytree

import mbdnode as mbd
from mbdnode.data.rows import counted, estimate_noise, rows_of
from mbdnode.identification import initial_states, shooting
from mbdnode.integrators import get_integrator
from mbdnode.mechanisms import SinglePendulum
from mbdnode.models.function_library import Library
from mbdnode.trajectory import State

RK4, NOISE, TOLERANCE = get_integrator("rk4"), 0.02, 1e-4


def law(weight: float) -> tuple[Library, np.ndarray]:
    """`theta'' = weight sin theta`, and the place of its coefficient."""
    model = Library.for_system(SinglePendulum(), degree=1, quadratic=False)
    sine = model.basis.terms.index((2,))
    weights = jnp.zeros_like(model.network.weights).at[0, sine].set(weight)
    return eqx.tree_at(lambda m: m.network.weights, model, weights), np.array([sine])


def noisy(start: tuple[float, float], steps: int, seed: int) -> mbd.Trajectory:
    """A motion of that law with 2 % noise."""
    theta, rate = start
    t = 0.01 * np.arange(steps + 1)
    run = mbd.simulate(law(-9.81)[0], t, State(jnp.array([theta]), jnp.array([rate])))
    random = np.random.default_rng(seed)
    off = lambda x: x + NOISE * jnp.std(x) * random.normal(size=x.shape)  # noqa: E731
    return eqx.tree_at(lambda r: (r.q, r.v), run, (off(run.q), off(run.v)))


def report(name: str, work) -> None:
    """Print what the work gives, and its first and later times."""
    seconds = []
    for _ in range(6):
        start = time.perf_counter()
        found, said = work()
        seconds.append(time.perf_counter() - start)
    later = statistics.median(seconds[1:])
    print(f"{name:32s} cost {found:.6f}  {said:28s} first {seconds[0]:.2f} s, then {later:.4f} s")


def path_residual(model, initial, rows, integrator, unit):
    """Residual of one path and its initial state, traced as a whole."""

    def onward(y, row):
        t, dt, u, mu = row
        rate = lambda time, x: model.minimal_rates(time, x[0], x[1], u, mu)  # noqa: E731
        y, _ = integrator.step(rate, t, dt, y)
        return y, y

    count = rows.z.shape[1]
    begun = initial[:count], initial[count:]
    z, s = jax.lax.scan(onward, begun, (rows.t, rows.dt, rows.u, rows.mu))[1]
    away = jnp.concatenate([z - rows.z_next, s - rows.s_next], axis=1) / unit[None]
    away = jnp.where(rows.weight[:, None] > 0, away, 0.0)
    measured = jnp.concatenate([rows.z[0], rows.s[0]])
    return jnp.concatenate([((initial - measured) / unit)[None], away]).reshape(-1)


def initial() -> None:
    """States at the beginnings of windows, each alone."""
    model, random = law(-9.81)[0], np.random.default_rng(0)
    runs = [noisy(tuple(random.uniform(-2, 2, 2)), 300, i) for i in range(16)]
    rows = [rows_of(model, model.minimal, mbd.Dataset(run)) for run in runs]
    windows = initial_states.last_windows(rows)
    assert windows is not None
    noise = estimate_noise(rows_of(model, model.minimal, mbd.Dataset(runs), accelerations=False))
    singles = [jax.tree.map(lambda x, i=i: x[i], windows) for i in range(16)]
    lone = [jax.tree.map(lambda x: x[None], counted(one)) for one in singles]
    units = jnp.asarray(np.stack([shooting.unit_of(one, noise) for one in lone]))

    def ours():
        found = initial_states.fit_initial_states(model, windows, RK4, units)
        return found.cost.sum(), f"{found.iterations.min()}-{found.iterations.max()} iterations"

    @eqx.filter_jit
    def theirs(model, windows, units):
        def one(rows, unit):
            begun = jnp.concatenate([rows.z[0], rows.s[0]])
            residual = lambda x, _: path_residual(model, x, rows, RK4, unit)  # noqa: E731
            solver = optx.LevenbergMarquardt(TOLERANCE, TOLERANCE)
            found = optx.least_squares(residual, solver, begun, throw=False)
            return jnp.sum(residual(found.value, None) ** 2), found.stats["num_steps"]

        return jax.vmap(one)(windows, units)

    def other():
        cost, steps = (np.asarray(x) for x in theirs(model, windows, units))
        return cost.sum(), f"{steps.min()}-{steps.max()} iterations"

    report("initial states, ours", ours)
    report("initial states, Optimistix", other)


def refinement() -> None:
    """A coefficient and the initial states of all segments together."""
    (rough, free), run = law(-9.0), noisy((2.0, 0.0), 1500, 1)
    rows = rows_of(rough, rough.minimal, mbd.Dataset(run))
    segments, noise = shooting.make_segments(rows), estimate_noise(rows)
    assert segments is not None
    unit = jnp.asarray(shooting.unit_of(segments.rows, noise))

    def residual(y, _=None):
        values, restored = ravel_pytree(rough.network)
        own = eqx.tree_at(lambda m: m.network, rough, restored(values.at[free].set(y[0])))
        one = lambda x, rows: path_residual(own, x, rows, RK4, unit)  # noqa: E731
        return jax.vmap(one)(y[1], segments.rows)

    cost = eqx.filter_jit(lambda y: jnp.sum(residual(y) ** 2))

    def ours():
        model, begun = shooting.refine_segments(rough, segments, RK4, noise, free)
        found = ravel_pytree(model.network)[0][free]
        return float(cost((found, begun))), f"coefficient {float(found[0]):.5f}"

    @eqx.filter_jit
    def theirs(y):
        solver = optx.LevenbergMarquardt(TOLERANCE, TOLERANCE)
        return optx.least_squares(residual, solver, y, throw=False).value

    def other():
        found = theirs((ravel_pytree(rough.network)[0][free], segments.initial))
        return float(cost(found)), f"coefficient {float(found[0][0]):.5f}"

    report("shooting refinement, ours", ours)
    report("shooting refinement, Optimistix", other)


if __name__ == "__main__":
    initial()
    refinement()
