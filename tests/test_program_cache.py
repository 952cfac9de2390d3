"""Programs are found again by what decides them, and by nothing less."""

import dataclasses
import errno
import os
import subprocess
import sys
from pathlib import Path
from typing import ClassVar

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import mbdnode as mbd
from mbdnode import program_cache
from mbdnode.control.state_space import state_space
from mbdnode.integrators import get_integrator
from mbdnode.program_cache import UndescribedError, describe


@dataclasses.dataclass(frozen=True)
class Foreign:
    """Of a module whose sources are not looked at."""

    number: float = 1.0


def test_arrays_count_by_shape_and_static_values_by_value():
    assert describe(jnp.ones(3)) == describe(jnp.zeros(3))
    assert describe(jnp.ones(3)) != describe(jnp.ones(4))
    assert describe(np.ones(3)) != describe(np.ones(3, np.float32))
    assert describe(np.ones(3), static=True) != describe(np.zeros(3), static=True)
    spring, other = (mbd.mechanisms.SliderCrank(), mbd.mechanisms.DrivenCrank())
    assert describe(spring) == describe(mbd.mechanisms.SliderCrank())
    assert describe(spring) != describe(other)
    assert describe(get_integrator("rk4")) != describe(get_integrator("mp2"))
    assert describe(get_integrator("lf2")) != describe(get_integrator("ys4"))
    assert describe((1, 2)) != describe((1.0, 2)) != describe([1, 2])
    assert describe(0.1) != describe(0.1 + 1e-17 + 2e-17)
    assert describe({"a": 1}) != describe({"a": True})
    assert describe(jax.nn.softplus) != describe(jax.nn.relu)


@pytest.mark.parametrize(
    "value",
    [lambda x: x, Foreign(), test_arrays_count_by_shape_and_static_values_by_value, object()],
    ids=["lambda", "class", "function", "object"],
)
def test_what_comes_from_elsewhere_has_no_description(value):
    with pytest.raises(UndescribedError):
        describe({"inside": (value,)})


CHILD = """
import jax, sys, numpy as np
traced = []
def listen(event, seconds, **facts):
    if event.endswith("jaxpr_trace_duration"):
        traced.append(facts.get("fun_name", ""))
jax.monitoring.register_event_duration_secs_listener(listen)
import mbdnode as mbd
class Mine(mbd.mechanisms.SliderCrank):
    def force(self, t, q, v, u, mu):
        return super().force(t, q, v, u, mu) * float(sys.argv[1])
t = [0.0, 0.1, 0.2]
start = {"theta1": 1.0, "theta1_dot": 1.0}
loads = np.array([[1.0, 2.0], [3.0, 4.0]])
def run(system, steps):
    return np.asarray(mbd.simulate(system, t[:steps], start, inputs=loads[: steps - 1]).q)
found = run(mbd.mechanisms.SliderCrank(), 3)
count = sum("roll" in name for name in traced)
short = run(mbd.mechanisms.SliderCrank(), 2)
mine = run(Mine(), 3)
print(count, found.tobytes().hex(), short.tobytes().hex(), mine.tobytes().hex())
"""


def in_a_child(folder, factor):
    variables = {**os.environ, "MBDNODE_CACHE": str(folder), "MBDNODE_TRACE": "0"}
    done = subprocess.run(
        [sys.executable, "-c", CHILD, str(factor)], env=variables, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    assert not done.stderr
    count, *runs = done.stdout.split()
    return int(count), [np.frombuffer(bytes.fromhex(run)).reshape(-1, 9) for run in runs]


@pytest.mark.slow
def test_a_second_process_traces_no_rollout_and_computes_the_same_bits(tmp_path):
    """Nor does it take the program of a user's class for that of another with the same name."""
    first, one = in_a_child(tmp_path, 1.0)
    second, two = in_a_child(tmp_path, 2.0)
    assert first > 0
    assert second == 0
    assert np.array_equal(one[0], two[0])
    assert np.array_equal(one[1], two[1])
    assert np.array_equal(one[0], one[2])  # A factor of one changes nothing.
    assert not np.allclose(two[0][-1], two[2][-1])
    for path in tmp_path.rglob("*.program"):
        path.write_bytes(path.read_bytes()[:-100])
    again, three = in_a_child(tmp_path, 1.0)
    assert again > 0
    assert np.array_equal(one[0], three[0])


def test_a_program_has_options_of_its_own_unless_it_is_a_part_of_another():
    """Under `vmap` alone it is compiled by itself; under `grad`, `jit` and `scan` it is not."""
    inside = lambda x: x + float(program_cache._inside_a_program())  # noqa: E731
    x = jnp.ones(3)
    np.testing.assert_array_equal(jax.vmap(inside)(x), np.ones(3))
    assert jax.value_and_grad(inside)(x[0])[0] == 2.0
    np.testing.assert_array_equal(jax.vmap(jax.value_and_grad(inside))(x)[0], 2 * np.ones(3))
    np.testing.assert_array_equal(jax.jit(jax.vmap(inside))(x), 2 * np.ones(3))
    assert jax.lax.scan(lambda c, _: (inside(c) - 1.0, inside(c)), x[0], None, 1)[1][0] == 2.0


class MyOscillator(mbd.AbstractMechanism):
    """Of a module whose sources are not looked at, so that no program of it can be kept."""

    coordinates: ClassVar = (mbd.length("x"),)
    inputs: ClassVar = (mbd.Input("f", "N"),)

    def mass_matrix(self, q, mu):
        """One kilogram."""
        return [1.0]

    def force(self, t, q, v, u, mu):
        """A spring, and the input."""
        return u - 4.0 * q


@pytest.mark.parametrize("kept", [True, False])
@pytest.mark.parametrize("system", [mbd.mechanisms.CartPole(), MyOscillator()], ids=["ours", "own"])
def test_bound_program_gives_what_its_function_gives_and_is_traced_once(
    tmp_path, monkeypatch, system, kept
):
    monkeypatch.setattr(program_cache.numerics, "programs_folder", tmp_path if kept else None)
    space, z = state_space(system)
    traces = []

    def rate(space, t, z, u):
        traces.append(1)
        return space.rate(t, z, u, space.home)[0]

    # As if it were one of the package, whose sources decide what is found.
    rate.__module__, rate.__qualname__ = "mbdnode.control.state_space", "state_space"
    bound = program_cache.bind(program_cache.stored_program(rate), space)
    for number in (0.1, 0.2, 0.3):
        at, u = np.asarray(z) + number, np.full(len(space.input_names), number)
        expected = space.rate(jnp.zeros(()), jnp.asarray(at), jnp.asarray(u), space.home)[0]
        np.testing.assert_allclose(bound(0.0, at, u), expected, rtol=1e-14)
    assert len(traces) == 1


def test_program_that_finds_no_space_leaves_no_part_of_itself(tmp_path, monkeypatch):
    def full(*_):
        raise OSError(errno.ENOSPC, "No space left on device")

    compiled = jax.jit(lambda x: [2 * x]).lower(jnp.ones(3)).compile()
    monkeypatch.setattr(Path, "replace", full)
    program_cache._store(tmp_path / "a.program", compiled, [program_cache._HOLE], False)
    assert list(tmp_path.iterdir()) == []
