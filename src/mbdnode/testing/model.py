"""The contract of a learned model, as checks that a user's own can be held to."""

import tempfile
from pathlib import Path

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from mbdnode.models import AbstractModel, AbstractRateModel, load, save
from mbdnode.multibody import consistent_state, resolve_parameters
from mbdnode.simulation import simulate

_ROUND_OFF = 1e-12


def check_model(model: AbstractModel, *, steps: int = 20, dt_s: float = 0.01) -> None:
    """Raise `AssertionError` with the rule that is broken, if one is.

    A model that gives rates must give those of its minimal coordinates, under jit, vmap and grad;
    roll out from its system's start; keep hard constraints to round-off; and read velocities only
    if it is not declared separable. One that gives states must give one for each time and begin
    with those that it was given. Both must come back from a file with the same bits.

    **Arguments:**

    - `model`: trained or not.
    - `steps`, `dt_s`: of the rollout.
    """
    if isinstance(model, AbstractRateModel):
        mu = resolve_parameters(model)
        state = consistent_state(model.body, {})
        index = np.array(model.minimal)
        z, s = state.q[index], state.v[index] + 0.1
        u = jnp.zeros(len(model.inputs))
        _check_rates(model, z, s, u, mu)
        _check_slopes(model, z, s, u, mu)
        _check_separable(model, z, s, u, mu)
        _check_rollout(model, state, steps, dt_s)
    else:
        _check_forecast(model, steps, dt_s)
    _check_file(model)


def _check_forecast(model, steps: int, dt_s: float) -> None:
    past, count = model.history, len(model.coordinates)
    t = np.arange(steps + past) * dt_s
    rows = np.random.default_rng(0).normal(size=(past, 2 * count))
    states = eqx.filter_jit(model.forecast)(jnp.asarray(t), jnp.asarray(rows))
    wanted = (len(t), 2 * count)
    assert states.shape == wanted, f"forecast gives {states.shape} states; there must be {wanted}."
    assert bool(jnp.all(jnp.isfinite(states))), "A forecast is not finite."
    if past > 1:
        assert np.array_equal(states[:past], rows), "A forecast must begin with what it was given."


def _check_rates(model, z, s, u, mu) -> None:
    t = jnp.zeros(())
    one = jax.jit(lambda *y: model.minimal_rates(t, *y, u, mu))(z, s)
    for name, rate, like in zip(("positions", "velocities"), one, (z, s), strict=True):
        assert rate.shape == like.shape, (
            f"minimal_rates gives {rate.shape} rates of {like.shape} minimal {name}."
        )
        assert rate.dtype == like.dtype, f"Rates are {rate.dtype}, the state is {like.dtype}."
        assert bool(jnp.all(jnp.isfinite(rate))), f"The rates of the {name} are not finite."
    many = jax.jit(jax.vmap(lambda a, b: model.minimal_rates(t, a, b, u, mu)))(
        jnp.stack([z, z]), jnp.stack([s, s])
    )
    # A batched product may add in another order: float32's round-off, on values near one.
    for alone, batched in zip(one, many, strict=True):
        assert np.allclose(batched[1], alone, rtol=1e-5, atol=1e-5), "vmap changes the rates."


def _check_slopes(model, z, s, u, mu) -> None:
    def size(network):
        changed = eqx.tree_at(lambda m: m.network, model, network)
        return jnp.sum(changed.minimal_rates(jnp.zeros(()), z + 0.1, s, u, mu)[1] ** 2)

    slope = jax.tree.leaves(eqx.filter_jit(eqx.filter_grad(size))(model.network))
    assert all(bool(jnp.all(jnp.isfinite(g))) for g in slope), "A weight's slope is not finite."
    assert any(bool(jnp.any(g != 0)) for g in slope), "No weight changes the accelerations."


def _check_separable(model, z, s, u, mu) -> None:
    if not model.separable:
        return
    slope = jax.jit(jax.jacfwd(lambda w: model.minimal_rates(jnp.zeros(()), z, w, u, mu)[1]))(s)
    assert bool(jnp.all(slope == 0)), "Declared separable, but velocities change accelerations."


def _check_rollout(model, state, steps: int, dt_s: float) -> None:
    run = simulate(model, np.arange(steps + 1) * dt_s, state, check_step=False)
    assert bool(run.status.ok), f"The rollout did not reach its end: {run.status}"
    if getattr(model.settings, "constraints", "none") == "hard":
        worst = float(max(run.position_residual.max(), run.velocity_residual.max()))
        size = 1.0 + float(jnp.max(jnp.abs(run.q))) + float(jnp.max(jnp.abs(run.v)))
        assert worst <= _ROUND_OFF * size, f"Hard constraints are left by {worst:.1e}."


def _check_file(model) -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "model.safetensors"
        save(model, path)
        again = load(path, model.body)
    for before, after in zip(
        jax.tree.leaves(eqx.filter(model, eqx.is_array)),
        jax.tree.leaves(eqx.filter(again, eqx.is_array)),
        strict=True,
    ):
        assert before.dtype == after.dtype, "A file changes the precision."
        assert np.array_equal(before, after, equal_nan=True), "A file changes the weights."
