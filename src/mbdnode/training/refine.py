"""Levenberg-Marquardt on the errors of all windows: of all weights after Adam, or before it of the
affine part alone.

Adam stalls where the loss is a long narrow valley. What follows takes the errors of all windows and
their exact Jacobian, in iterations of `mbdnode.levenberg_marquardt.iterate`: with many windows
block by block, so that memory does not grow with the data.

Many networks fit the same errors, and differ where there is no data. With `regularization`, a
multiple of the weights' mean square is added to the mean squared error. It falls from iteration to
iteration, so that the data are met in the end, by weights that are as small as can be (the
iteratively regularized Gauss-Newton method: Bakushinskii, 1992). What is affine is free of it. It
starts at a part of Adam's last loss: if it outweighed what the network explains, all weights would
go to zero, where nothing has a slope, and stay there.
"""

import time
from collections.abc import Callable, Sequence
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int

from mbdnode.errors import UserError
from mbdnode.levenberg_marquardt import Iterate, iterate
from mbdnode.models import Network
from mbdnode.training.checkpoint import is_refinement
from mbdnode.training.compile_time import counted_compilation
from mbdnode.training.interrupts import noted_interrupts
from mbdnode.training.train import Progress, Report, Task

# Numbers in the whole Jacobian, or in the matrix of a system (half a gigabyte).
_MOST_NUMBERS = 64_000_000
# Numbers in the Jacobian of a block of windows (32 MB).
_BLOCK_NUMBERS = 4_000_000
# A mean squared error that falls by less than this part in so many iterations has settled, and so
# has one that is round-off.
_SETTLED, _OVER, _EXACT = 0.05, 5, 1e-24
# What is left of the regularization after each iteration.
_KEPT = 0.75
# Of the affine part alone.
_AFFINE_ITERATIONS, _AFFINE_DAMPING = 60, 1e-2

# Called with the progress, and whether it is the last.
Keep = Callable[[Progress, bool], Any]


def refine(
    task: Task,
    progress: Progress,
    history: list[dict[str, Any]],
    report: Report | None,
    keep: Keep | None = None,
    iterations: int | None = None,
) -> tuple[Progress, str, str, float]:
    """Iterate until the number that was asked for is reached or the loss has settled.

    A row is added to `history` for each iteration. `keep` is called with the progress, and whether
    it was the last one. Ctrl-C ends it after the running iteration; the weights are always the best
    so far. Returned are the progress, the outcome as a word and as a sentence, and the seconds of
    compilation.
    """
    most = task.config.refinement if iterations is None else iterations
    done = sum(map(is_refinement, history))
    total = len(history) - done + most
    check_refinement(task, progress)
    count = len(task.objective) * _sizes(task, progress.network)[1]
    requested, compile_s = False, 0.0
    settled = _settled(task, progress, history)
    with noted_interrupts() as interrupt:
        while not (requested or settled) and done < most:
            start = time.perf_counter()
            with counted_compilation() as compilation:
                found = _iterate(task, progress, _part(task, history, done))
                loss = float(found.cost) / count
            compile_s += compilation.seconds
            progress = eqx.tree_at(
                lambda p: (p.network, p.damping, p.updates),
                progress,
                (found.x, found.damping, progress.updates + 1),
            )
            spent = time.perf_counter() - start - compilation.seconds
            history.append(_row(len(history), loss, spent))
            done += 1
            if report is not None:
                report(history[-1], total)
            requested = interrupt.requested
            settled = _settled(task, progress, history)
            if keep is not None:
                keep(progress, settled or requested or done == most)
    if requested and not settled and done < most:
        status = f"interrupted after {done} of {most} refinements"
        return progress, "interrupted", status, compile_s
    ending = ", where the loss settled" if settled else ""
    return progress, "completed", f"refined {done} times{ending}", compile_s


def refine_each(
    tasks: Sequence[Task],
    given: Sequence[Progress],
    losses: list[float],
    history: list[dict[str, Any]],
    report: Report | None,
    keep: Keep | None = None,
    iterations: int | None = None,
) -> tuple[list[Progress], str, str, float]:
    """Each network as it would be alone, one after the other, since each has a large Jacobian.

    Of several, a row is added to the history for each iteration, with their mean loss, and `losses`
    has the last one of each. Ctrl-C ends it after the running iteration; the networks after that
    one are then as they were.
    """
    if len(tasks) == 1:
        found = refine(tasks[0], given[0], history, report, keep, iterations)
        losses[0] = history[-1]["loss"]
        return [found[0]], *found[1:]
    ended, outcome, compile_s = list(given), "completed", 0.0
    added: list[list[dict[str, Any]]] = []
    for number, task in enumerate(tasks):
        # The regularization goes by the member's own loss, not by the mean of all.
        own = [*history[:-1], *({**row, "loss": losses[number]} for row in history[-1:])]
        ended[number], outcome, _, seconds = refine(task, given[number], own, None)
        compile_s += seconds
        added.append(own[len(history) :])
        losses[number] = own[-1]["loss"]
        if outcome == "interrupted":
            break
    for row in _merged(added, len(history)):
        history.append(row)
        if report is not None:
            report(row, tasks[0].config.epochs + tasks[0].config.refinement)
    counts = [len(rows) for rows in added]
    status = f"refined {min(counts)} to {max(counts)} times"
    if outcome == "interrupted":
        status = f"interrupted in the refinement of member {len(added)} of {len(tasks)}"
    return ended, outcome, status, compile_s


def _merged(added: list[list[dict[str, Any]]], first: int) -> list[dict[str, Any]]:
    """One row an iteration; a member that has settled counts with its last loss."""
    rows = []
    for k in range(max(len(own) for own in added)):
        reached = [own[min(k, len(own) - 1)]["loss"] for own in added if own]
        spent = [own[k]["seconds"] for own in added if k < len(own)]
        rows.append(_row(first + k, float(np.mean(reached)), float(sum(spent))))
    return rows


def _row(epoch: int, loss: float, seconds: float) -> dict[str, Any]:
    return {"epoch": epoch, "loss": loss, "learning_rate": 0.0, "seconds": seconds}


def _settled(task: Task, progress: Progress, history: list[dict[str, Any]]) -> bool:
    """Whether the last iterations hardly lowered the loss, or it is round-off.

    While what the regularization adds to the loss matters, one that stays may yet fall.
    """
    losses = [row["loss"] for row in history if is_refinement(row)]
    if not losses:
        return False
    part = _part(task, history, len(losses) - 1)
    added = 0.0 if part is None else float(part) * _mean_square(progress.network)
    if added > _SETTLED * losses[-1] > _SETTLED * _EXACT:
        return False
    stuck = len(losses) > 1 and losses[-1] >= losses[-2]
    return stuck or _hardly_falls(losses)


def _hardly_falls(losses: list[float]) -> bool:
    slow = len(losses) > _OVER and losses[-1] >= (1 - _SETTLED) * losses[-1 - _OVER]
    return slow or losses[-1] <= _EXACT


def check_refinement(task: Task, progress: Progress) -> None:
    """Raise `UserError` for a network whose linear systems would not fit in memory."""
    weights, each = _sizes(task, progress.network)
    errors = each * len(task.objective)
    primal = weights <= errors or task.config.regularization > 0
    numbers = weights**2 if primal else weights * errors
    if numbers > _MOST_NUMBERS:
        raise UserError(
            f"The refinement of {weights:,} weights on {errors:,} errors needs a matrix of "
            f"{numbers:.1e} numbers; at most {_MOST_NUMBERS:.1e} are allowed. Lower the network's "
            "width, or leave the refinement out."
        )


def _sizes(task: Task, network: Any) -> tuple[int, int]:
    """How many weights there are, and how many errors a window has."""
    weights = sum(x.size for x in jax.tree.leaves(eqx.filter(network, eqx.is_array)))
    return weights, _count(task.objective, task.with_network(network))


def _count(objective: Any, model: Any) -> int:
    """How many errors a window has."""
    return jax.eval_shape(lambda: _errors(objective, model, jnp.zeros(1, int))).size


def _errors(objective: Any, model: Any, rows: Int[Array, " k"]) -> Float[Array, "k m"]:
    """Of these windows; zero for a row of -1."""
    picked = jax.tree.map(lambda x: x[jnp.maximum(rows, 0)], objective.examples)
    found = jax.vmap(lambda example: objective.errors(model, example))(picked)
    return jnp.where(rows[:, None] >= 0, found, 0.0)


def _blocks(task: Task, network: Any) -> Int[np.ndarray, "n k"]:
    """All windows, in rows of equal length; -1 fills up the last one."""
    weights, each = _sizes(task, network)
    count = len(task.objective)
    size = max(1, min(_BLOCK_NUMBERS // (weights * each), count))
    # Rows that are as even as can be.
    size = -(-count // -(-count // size))
    filled = np.full(-(-count // size) * size, -1)
    filled[:count] = np.arange(count)
    return filled.reshape(-1, size)


def _part(task: Task, history: list[dict[str, Any]], done: int) -> Float[Array, ""] | None:
    """How many times the weights' mean square an iteration adds to the mean squared error."""
    if not task.config.regularization:
        return None
    # Without epochs, the units of the errors.
    epochs = [row["loss"] for row in history if not is_refinement(row)]
    first = (epochs[-1] if epochs else 1.0) / _mean_square(task.model.network)
    value = task.config.regularization * first * _KEPT**done
    return jnp.asarray(value, task.config.precision)


def _penalized(network: Any, arrays: Any = jnp) -> Any:
    """One for every weight that is to be small, zero for what is affine.

    As JAX's arrays, or as NumPy's.
    """
    ones = jax.tree.map(arrays.ones_like, eqx.filter(network, eqx.is_inexact_array))
    if not isinstance(ones, Network):
        return ones
    return eqx.tree_at(_affine_part, ones, replace_fn=arrays.zeros_like)


def _affine_part(network: Network) -> tuple[Any, ...]:
    """What is affine of it, in one tuple."""
    return network.biases[-1], *([] if network.beside is None else [network.beside])


def _mean_square(network: Any) -> float:
    """Of the weights that are to be small, over all of them."""
    which = jax.tree.leaves(_penalized(network, np))
    weights = jax.tree.leaves(eqx.filter(network, eqx.is_inexact_array))
    pairs = zip(which, map(np.asarray, weights), strict=True)
    return sum(float(np.sum(w * x**2)) for w, x in pairs) / sum(x.size for x in weights)


@eqx.filter_jit
def _iterate(task: Task, progress: Progress, part: Float[Array, ""] | None) -> Iterate:
    def errors(network, rows):
        return _errors(task.objective, task.with_network(network), rows)

    blocks, ridge = _blocks(task, progress.network), None
    if part is not None:
        weights, each = _sizes(task, progress.network)
        size = part * len(task.objective) * each / weights
        ridge = jax.tree.map(lambda x: size * x, _penalized(progress.network))
    return iterate(errors, progress.network, progress.damping, blocks=blocks, ridge=ridge)


def fit_affine(objective: Any, model: Any) -> tuple[Any, float]:
    """Fit the affine part alone, on its few coefficients: the network with it, and the loss.

    The layers start as opposites that cancel, so the network starts at its affine part. What that
    can explain by itself is found to round-off, and it goes on outside of the training data as it
    does inside.
    """
    part, damping = _affine_part(model.network), jnp.asarray(_AFFINE_DAMPING)
    count, losses = len(objective) * _count(objective, model), []
    while len(losses) < _AFFINE_ITERATIONS and not (losses and _hardly_falls(losses)):
        found = _iterate_affine(objective, model, part, damping)
        part, damping = found.x, found.damping
        losses.append(float(found.cost) / count)
    return eqx.tree_at(_affine_part, model.network, part), losses[-1]


@eqx.filter_jit
def _iterate_affine(objective: Any, model: Any, part: Any, damping: Any) -> Iterate:
    def errors(part, rows):
        own = eqx.tree_at(lambda m: _affine_part(m.network), model, part)
        return _errors(objective, own, rows)

    return iterate(errors, part, damping, blocks=np.arange(len(objective))[None])
