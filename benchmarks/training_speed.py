"""The paper's recipe: time an update, beside the same algorithm in eager PyTorch and torchdiffeq.

One core for all (the process is pinned), one run for all. RK4, two hidden layers of 256, tanh,
float32, one Adam update for each pair of neighboring states. What bounds it is measured beside
it: the matrix products with their gradients alone, and Adam alone. Then rollouts of the network:
one trajectory, and many at once beside the machine's own matrix product.
"""

import itertools
import os
import statistics
import time
from collections.abc import Callable

os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})

import equinox as eqx  # noqa: E402
import jax  # noqa: E402
import jax.numpy as jnp  # noqa: E402
import numpy as np  # noqa: E402
import optax  # noqa: E402
import torch  # noqa: E402
import torchdiffeq  # noqa: E402
from rich.console import Console  # noqa: E402
from rich.table import Table  # noqa: E402

import mbdnode as mbd  # noqa: E402
from benchmarks.timing import measure  # noqa: E402
from mbdnode.reproduction.cases import get_case  # noqa: E402

torch.set_num_threads(1)
CASE = get_case("single-mass-spring-damper")
WIDTH, MASS, DT_S = 256, 10.0, 0.01


def torch_update(odeint: Callable | None) -> Callable:
    """One pass of the paper's algorithm over some pairs, eagerly."""
    net = torch.nn.Sequential(
        torch.nn.Linear(2, WIDTH),
        torch.nn.Tanh(),
        torch.nn.Linear(WIDTH, WIDTH),
        torch.nn.Tanh(),
        torch.nn.Linear(WIDTH, 1),
    )
    optimizer = torch.optim.Adam(net.parameters(), lr=1e-3)
    loss = torch.nn.MSELoss()
    times = torch.tensor([0.0, DT_S])

    def field(t, y):
        return torch.cat([y[1:], net(y) / MASS])

    def step(y):
        if odeint is not None:
            return odeint(field, y, times, method="rk4")[-1]
        k1 = field(0.0, y)
        k2 = field(0.0, y + DT_S / 2 * k1)
        k3 = field(0.0, y + DT_S / 2 * k2)
        k4 = field(0.0, y + DT_S * k3)
        return y + DT_S / 6 * (k1 + 2 * k2 + 2 * k3 + k4)

    def updates(states: torch.Tensor) -> None:
        for before, after in itertools.pairwise(states):
            optimizer.zero_grad()
            loss(step(before), after).backward()
            optimizer.step()

    return updates


def seconds_an_update(updates: Callable, states: torch.Tensor) -> float:
    """The median of three passes, after one to warm up."""
    count = len(states) - 1
    updates(states)
    taken = []
    for _ in range(3):
        start = time.perf_counter()
        updates(states)
        taken.append((time.perf_counter() - start) / count)
    return statistics.median(taken)


def our_updates(data: mbd.Trajectory) -> tuple[float, float]:
    """Seconds an update and seconds of compilation, as `fit` itself reports them."""
    model = mbd.MBDNODE.for_system(CASE.mechanism, divisor=(MASS,))
    fit = mbd.fit(model, data, mbd.TrainingConfig(epochs=20))
    return statistics.median(row["seconds"] for row in fit.history) / (len(data) - 1), (
        fit.compile_seconds
    )


def bounds(count: int = 300) -> tuple[float, float]:
    """Seconds of an update's matrix products (forwards and backwards) alone, and of Adam alone."""
    model = mbd.MBDNODE.for_system(CASE.mechanism)
    weights = jax.tree.map(lambda x: x.astype(jnp.float32), model.network)
    weights, shape = eqx.partition(weights, eqx.is_array)

    def four(weights, x):
        # Each evaluation feeds the next, as the stages of RK4 do.
        net = eqx.combine(weights, shape)
        for _ in range(4):
            x = jnp.concatenate([x[1:], net(x)])
        return jnp.sum(x**2)

    def products(carry, _):
        slope = jax.grad(four)(carry, jnp.ones(2, jnp.float32))
        return jax.tree.map(lambda w, g: w - 1e-9 * g, carry, slope), None

    adam = optax.scale_by_adam()

    def moments(carry, _):
        weights, state = carry
        step, state = adam.update(jax.tree.map(lambda w: 0.5 * w, weights), state)
        return (jax.tree.map(lambda w, s: w - 1e-9 * s, weights, step), state), None

    def seconds(body, start) -> float:
        loop = jax.jit(lambda c: jax.lax.scan(body, c, None, length=count)[0])
        return measure(lambda: loop(start)).run_s / count

    return seconds(products, weights), seconds(moments, (weights, adam.init(weights)))


def rollouts(console: Console) -> None:
    """Steps a second of one trajectory, and the rate of many against that of one large product."""
    model = mbd.MBDNODE.for_system(CASE.mechanism)
    arrays, rest = eqx.partition(model, eqx.is_inexact_array)
    model = eqx.combine(jax.tree.map(lambda x: x.astype(jnp.float32), arrays), rest)
    steps = 20_000
    t = np.arange(steps + 1) * DT_S
    start = mbd.State(jnp.array([0.1]), jnp.array([0.0]))
    one = measure(lambda: mbd.simulate(model, t, start, check_step=False))
    many, short = 1024, np.arange(51) * DT_S
    starts = mbd.State(jnp.linspace(0.1, 1.0, many)[:, None], jnp.zeros((many, 1)))
    batch = jax.jit(jax.vmap(lambda s: mbd.simulate(model, short, s).q))
    parallel = measure(lambda: batch(starts))
    # Two products of every weight: multiply and add, in each of RK4's four evaluations.
    work = 2 * 4 * sum(w.size for w in model.network.weights)
    reached = work * many * 50 / parallel.run_s
    square = jnp.ones((1024, 1024), jnp.float32)
    product = jax.jit(lambda a: a @ a)
    possible = 2 * 1024**3 / measure(lambda: product(square)).run_s
    console.print(
        f"Rollout of the network with RK4: {steps / one.run_s:,.0f} steps a second for one "
        f"trajectory (compiled in {one.compile_s:.1f} s); {many * 50 / parallel.run_s:,.0f} for "
        f"{many:,} at once, {reached / 1e9:.0f} Gflop/s, {reached / possible:.0%} of a large "
        f"matrix product's {possible / 1e9:.0f}"
    )


def main(console: Console) -> None:
    """Measure and print."""
    truth = mbd.simulate(CASE.mechanism, CASE.times(), CASE.initial)
    data = truth.rows(0, CASE.train_steps)
    states = torch.tensor(np.concatenate([data.q, data.v], axis=1)[:101], dtype=torch.float32)
    eager = seconds_an_update(torch_update(None), states)
    library = seconds_an_update(torch_update(torchdiffeq.odeint), states)
    ours, compile_s = our_updates(data)
    products, adam = bounds()
    table = Table(title="The paper's recipe: one Adam update, RK4, 2 x 256, float32, one core")
    for column in ("what", "compile \\[s]", "us an update", "times faster than eager"):
        table.add_column(column, justify="left" if column == "what" else "right")
    rows = (
        ("mbdnode, one scan an epoch", f"{compile_s:.1f}", ours),
        ("  its matrix products and their gradients alone", "", products),
        ("  its Adam update alone", "", adam),
        ("PyTorch, eager", "-", eager),
        ("PyTorch with torchdiffeq", "-", library),
    )
    for name, compiled, seconds in rows:
        table.add_row(name, compiled, f"{seconds * 1e6:,.0f}", f"{eager / seconds:.1f}")
    console.print(table)
    rollouts(console)


if __name__ == "__main__":
    main(Console(width=110))
