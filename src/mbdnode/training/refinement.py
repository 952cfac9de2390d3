"""Refinement: after Adam, damped Gauss-Newton on all errors at once (Levenberg-Marquardt).

Adam stalls where the loss is a long narrow valley. The errors `e` of all windows are nearly linear
in the weights `w` of a wide network, and with fewer errors than weights the step

    w - J' (J J' + damping I)^-1 e

needs one solve of the errors' own size. It changes the weights as little as possible, which
matters where the data says nothing. A step that lowers the mean squared error is taken and the
damping falls; otherwise the damping rises and the step is tried again.

A Jacobian of much data would not fit in memory. Then each iteration takes every k-th window,
beginning one further than the last did, and all windows judge the step.
"""

import time
from collections.abc import Callable
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax.flatten_util import ravel_pytree
from jaxtyping import Array, Float, Int

from mbdnode.training.checkpoint import noted_interrupts
from mbdnode.training.engine import Progress, Task, counted_compilation

# Numbers in a Jacobian (half a gigabyte), and rows of the matrix that is factored.
_MOST_NUMBERS = 64_000_000
_MOST_ROWS = 2_000
# Windows that are differentiated together; more need memory and gain nothing.
_TOGETHER = 16
_FASTER, _SLOWER, _TRIALS = 0.1, 10.0, 8
# A mean squared error that falls by less than this part in an iteration has settled, and so has
# one that is round-off.
_SETTLED, _EXACT = 1e-3, 1e-24


class Refined(eqx.Module):
    """What an iteration gives: the best weights, the loss there, the next one's damping."""

    network: Any
    damping: Float[Array, ""]
    loss: Float[Array, ""]


def refine(
    task: Task,
    progress: Progress,
    history: list[dict[str, Any]],
    report: Callable | None,
    keep: Callable[[Progress, bool], None],
) -> tuple[Progress, str, str, float]:
    """Iterate until the number that was asked for is reached or the loss has settled.

    **Arguments:**

    - `task`: with the data to fit.
    - `progress`: where training stands.
    - `history`: rows so far; those of the iterations are added, with a learning rate of zero.
    - `report`: called after every iteration, as by `fit`.
    - `keep`: called with the progress after every iteration, and whether it was the last.

    **Returns:**

    The progress, the outcome as a word and as a sentence, and the seconds of compilation. Ctrl-C
    ends it after the running iteration; the weights are always the best so far.
    """
    config = task.config
    done = sum(map(is_refinement, history))
    total = len(history) - done + config.refinement
    stride, size = _thinning(task, progress)
    requested, compile_s = False, 0.0
    with noted_interrupts() as interrupt:
        while not (requested or _settled(history)) and done < config.refinement:
            rows = jnp.asarray(done % stride + stride * np.arange(size))
            start = time.perf_counter()
            with counted_compilation() as compilation:
                found = _iterate(task, rows, progress)
                loss = float(found.loss)
            compile_s += compilation.seconds
            progress = eqx.tree_at(
                lambda p: (p.network, p.damping, p.updates),
                progress,
                (found.network, found.damping, progress.updates + 1),
            )
            row = {
                "epoch": len(history),
                "loss": loss,
                "learning_rate": 0.0,
                "seconds": time.perf_counter() - start - compilation.seconds,
            }
            history.append(row)
            done += 1
            if report is not None:
                report(row, total)
            requested = interrupt.requested
            keep(progress, _settled(history) or requested or done == config.refinement)
    if requested and not _settled(history) and done < config.refinement:
        status = f"interrupted after {done} of {config.refinement} refinements"
        return progress, "interrupted", status, compile_s
    ending = "" if not _settled(history) else ", where the loss settled"
    return progress, "completed", f"refined {done} times{ending}", compile_s


def is_refinement(row: dict[str, Any]) -> bool:
    """Whether a row of the history is an iteration of the refinement; Adam's rate is never zero."""
    return row["learning_rate"] == 0.0


def _settled(history: list[dict[str, Any]]) -> bool:
    """Whether the last iteration hardly lowered the loss of the one before, or all of it."""
    last = [row["loss"] for row in history[-2:] if is_refinement(row)]
    stalled = len(last) == 2 and last[1] >= (1 - _SETTLED) * last[0]
    return stalled or (bool(last) and last[-1] <= _EXACT)


def _thinning(task: Task, progress: Progress) -> tuple[int, int]:
    """Every how manieth window an iteration takes, and how many that are."""
    weights = sum(x.size for x in jax.tree.leaves(eqx.filter(progress.network, eqx.is_array)))
    each = jax.eval_shape(lambda: _errors(task, progress.network, jnp.zeros(1, int))).size
    most = max(min(_MOST_ROWS, _MOST_NUMBERS // weights) // each, 1)
    stride = -(-len(task.objective) // most)
    return stride, len(task.objective) // stride


def _errors(task: Task, network: Any, rows: Int[Array, " k"]) -> Float[Array, "k m"]:
    model, objective = task.with_network(network), task.objective
    picked = jax.tree.map(lambda x: x[rows], objective.examples)
    return jax.vmap(lambda example: objective.errors(model, example))(picked)


@eqx.filter_jit
def _iterate(task: Task, rows: Int[Array, " k"], progress: Progress) -> Refined:
    """One Jacobian, and as many solves as it takes to find a step that lowers the loss."""
    weights, restored = ravel_pytree(progress.network)
    everything = jnp.arange(len(task.objective))
    loss = lambda w: jnp.mean(_errors(task, restored(w), everything) ** 2)  # noqa: E731

    def slopes(row):
        own = lambda w: _errors(task, restored(w), row[None])[0]  # noqa: E731
        return jax.jacrev(own)(weights)

    jacobian = jax.lax.map(slopes, rows, batch_size=_TOGETHER).reshape(-1, weights.size)
    errors = _errors(task, progress.network, rows).reshape(-1)
    gram = jacobian @ jacobian.T
    size = jnp.trace(gram) / errors.size
    first = loss(weights)

    def attempt(state):
        trial, damping, _, _ = state
        damped = gram + damping * size * jnp.eye(errors.size)
        factor = jax.scipy.linalg.cho_factor(damped, lower=True)
        moved = weights - jax.scipy.linalg.cho_solve(factor, errors) @ jacobian
        reached = loss(moved)
        lower = jnp.isfinite(reached) & (reached < first)
        next_damping = jnp.where(lower, damping * _FASTER, damping * _SLOWER)
        best = jnp.where(lower, moved, weights), jnp.where(lower, reached, first)
        return trial + 1, next_damping, *best

    def unfinished(state):
        return (state[0] < _TRIALS) & (state[3] >= first) & (first > 0)

    start = (jnp.zeros((), int), progress.damping, weights, first)
    _, damping, weights, last = jax.lax.while_loop(unfinished, attempt, start)
    floor = jnp.finfo(weights.dtype).eps
    return Refined(restored(weights), jnp.maximum(damping, floor), last)
