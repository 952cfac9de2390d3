"""A family of pendulums as one model (PNODE): length, mass and damping are inputs of the network.

Many short swings with random length, mass, damping and start are simulated at once and learned by
mini batches. The model is then run with values that it has not seen, inside the range of its
training and outside of it.

    python examples/learn_pendulum_family.py [runs] [epochs]
"""

import sys

import jax
import jax.numpy as jnp
import numpy as np

import mbdnode as mbd

LOW = {"L": 0.8, "m": 0.8, "c": 0.05}
HIGH = {"L": 1.6, "m": 1.6, "c": 0.3}
PENDULUM = mbd.mechanisms.SinglePendulum()


def swings(runs: int, seed: int) -> mbd.Dataset:
    """Random members of the family, half a second each."""
    random = np.random.default_rng(seed)
    mu = {name: random.uniform(LOW[name], HIGH[name], runs) for name in LOW}
    starts = mbd.State(
        jnp.asarray(random.uniform(-2.0, 2.0, (runs, 1))),
        jnp.asarray(random.uniform(-4.0, 4.0, (runs, 1))),
    )
    t = np.linspace(0.0, 0.5, 51)
    batch = jax.vmap(lambda start, values: mbd.simulate(PENDULUM, t, start, parameters=values))
    return mbd.Dataset(batch(starts, jax.tree.map(jnp.asarray, mu)), mu)


def error(model: mbd.MBDNODE, values: dict[str, float]) -> float:
    """The mean squared error over four seconds from a start at one radian."""
    t = np.linspace(0.0, 4.0, 401)
    truth = mbd.simulate(PENDULUM, t, {"theta": 1.0}, parameters=values)
    again = mbd.simulate(model, t, {"theta": 1.0}, parameters=values)
    return mbd.evaluate(truth, again).mse


def main(runs: int = 400, epochs: int = 300) -> dict[str, float]:
    """Learn, test and print.

    **Returns:**

    The error for each tested member of the family.
    """
    model = mbd.MBDNODE.for_system(
        PENDULUM,
        width=64,
        forces="none",
        use_parameters=("L", "m", "c"),
        angle_features=True,
        scaling=True,
    )
    recipe = mbd.TrainingConfig(
        epochs=epochs, batch_size=200, shuffle=True, window=5, learning_rate=3e-3, decay=0.985
    )
    fit = mbd.fit(model, swings(runs, seed=0), recipe)
    print(f"{fit.status}: {fit.updates:,} updates in {fit.train_seconds:.0f} s")
    tested = {
        "inside, the middle": {"L": 1.2, "m": 1.2, "c": 0.15},
        "inside, near a corner": {"L": 0.85, "m": 1.5, "c": 0.28},
        "outside, 20 % longer than any": {"L": 1.92, "m": 1.2, "c": 0.15},
        "outside, twice the damping of any": {"L": 1.2, "m": 1.2, "c": 0.6},
    }
    errors = {name: error(fit.model, values) for name, values in tested.items()}
    for name, value in errors.items():
        print(f"  {name:<34} mse {value:.1e}")
    return errors


if __name__ == "__main__":
    main(*(int(argument) for argument in sys.argv[1:3]))
