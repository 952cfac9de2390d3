"""Float64 is on; and if somebody takes it back, nothing is computed without a word.

Large batches end, and compiled programs are kept for the next process: both in processes of their
own, since JAX reads these settings once.
"""

import os
import subprocess
import sys

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import mbdnode as mbd
from mbdnode.numerics import cache_folder, shrink_cache


@pytest.fixture(scope="module")
def made():
    system = mbd.mechanisms.SingleMassSpring()
    model = mbd.MBDNODE.for_system(system, width=2)
    run = mbd.simulate(system, [0.0, 0.1, 0.2], {"x": 1.0})
    return system, model, run


CALLS = {
    "simulate": lambda s, m, r, path: mbd.simulate(s, [0.0, 0.1], {"x": 1.0}),
    "simulate a model": lambda s, m, r, path: mbd.simulate(m, [0.0, 0.1], {"x": 1.0}),
    "consistent_state": lambda s, m, r, path: mbd.consistent_state(s, {"x": 1.0}),
    "fit": lambda s, m, r, path: mbd.fit(m, r),
    "fit with members": lambda s, m, r, path: mbd.fit(m, r, members=2),
    "Dataset": lambda s, m, r, path: mbd.Dataset(r),
    "energy": lambda s, m, r, path: mbd.energy(s, r),
    "linearize": lambda s, m, r, path: mbd.linearize(s, [0.0, 0.0]),
    "for_system": lambda s, m, r, path: mbd.MBDNODE.for_system(s, width=2),
    "load": lambda s, m, r, path: mbd.load(path),
    "read": lambda s, m, r, path: mbd.read(path, time="t", coordinates=["x"]),
}


@pytest.mark.parametrize("name", CALLS)
def test_float32_after_the_import_is_refused(name, made, tmp_path):
    path = tmp_path / ("log.csv" if name == "read" else "model.safetensors")
    if name == "read":
        np.savetxt(
            path, np.column_stack([np.arange(9.0)] * 2), delimiter=",", header="t,x", comments=""
        )
    else:
        mbd.save(made[1], path)
    jax.config.update("jax_enable_x64", False)
    try:
        assert jnp.asarray(0.1).dtype == np.float32  # What would have been computed with.
        with pytest.raises(mbd.UserError, match="jax_enable_x64 is False"):
            CALLS[name](*made, path)
    finally:
        jax.config.update("jax_enable_x64", True)


SETTINGS = (
    "PJRT_NPROC",
    "JAX_COMPILATION_CACHE_DIR",
    "JAX_ENABLE_COMPILATION_CACHE",
    "JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS",
)


def in_a_new_process(code: str, variables: dict[str, str] | None = None, limit_s: float = 120):
    inherited = {name: value for name, value in os.environ.items() if name not in SETTINGS}
    return subprocess.run(
        [sys.executable, "-c", code],
        env={**inherited, **(variables or {})},
        capture_output=True,
        text=True,
        timeout=limit_s,
        check=True,
    )


def test_a_loop_over_a_large_batch_of_small_solves_ends():
    """With as many threads as cores it hangs on two: each waits for parts that need a thread."""
    code = """
import mbdnode, jax, jax.numpy as jnp, numpy as np
jax.config.update("jax_enable_x64", True)
a = np.random.default_rng(0).normal(size=(10_000, 8, 8)) + 9 * np.eye(8)
solve = jax.vmap(jnp.linalg.solve)
def body(x, _):
    return solve(a, x) + solve(a + 1e-3 * x[:, :, None], x) + solve(a.transpose(0, 2, 1), x), None
found = jax.jit(lambda x: jax.lax.scan(body, x, None, length=60)[0])(np.ones((10_000, 8)))
x = np.ones((3, 8))
for _ in range(60):
    few = a[:3], a[:3] + 1e-3 * x[:, :, None], a[:3].transpose(0, 2, 1)
    x = sum(np.linalg.solve(m, x[:, :, None])[:, :, 0] for m in few)
print(np.abs(found[:3] - x).max() / np.abs(x).max())
"""
    assert float(in_a_new_process(code).stdout) < 1e-9  # 60 solves of condition below 100.


@pytest.mark.slow
@pytest.mark.parametrize("many", [4_000, 10_000])
def test_thousands_of_slider_cranks_at_once_end(many):
    code = f"""
import jax, numpy as np, mbdnode as mbd
crank = mbd.mechanisms.SliderCrank()
start, t = mbd.consistent_state(crank, {{"theta1": 1.0}}), 0.01 * np.arange(101)
loads = np.random.default_rng(1).uniform(-10, 10, ({many}, 100, 2))
runs = jax.jit(jax.vmap(lambda u: mbd.simulate(crank, t, start, inputs=u)))(loads)
alone = mbd.simulate(crank, t, start, inputs=loads[-1])
print(np.abs(runs.q[-1] - alone.q).max())
"""
    assert float(in_a_new_process(code, limit_s=600).stdout) < 1e-12


def test_a_pool_that_was_made_before_us_is_told():
    early = "import jax; jax.numpy.ones(3); import mbdnode"
    told = in_a_new_process(early).stderr
    assert "PJRT_NPROC=16" in told or (os.cpu_count() or 1) >= 16
    assert "PJRT_NPROC" not in in_a_new_process(early, {"PJRT_NPROC": "16"}).stderr
    assert "PJRT_NPROC" not in in_a_new_process("import jax, mbdnode; jax.numpy.ones(3)").stderr


# A loop over 8 kB, and whether it is one function in the compiled program.
LOOP = """
import os, mbdnode, jax, jax.numpy as jnp
loop = lambda x: jax.lax.fori_loop(0, 9, lambda _, y: jnp.sin(y) + y[::-1], x)
compiled = jax.jit(loop).lower(jnp.ones(1_000)).compile()
print("small_call" in compiled.as_text(), os.environ["XLA_FLAGS"])
"""


def test_small_loops_are_compiled_as_one_function_unless_the_user_has_such_options():
    first, flags = in_a_new_process(LOOP, {"XLA_FLAGS": "--xla_cpu_max_isa=AVX2"}).stdout.split(
        " ", 1
    )
    assert first == "True"
    assert flags.startswith("--xla_cpu_max_isa=AVX2 --xla_backend_extra_options=")
    own = "--xla_backend_extra_options=xla_cpu_small_while_loop_byte_threshold=64"
    own = f"{own} --xla_cpu_experimental_ynn_fusion_type=dot"
    assert in_a_new_process(LOOP, {"XLA_FLAGS": own}).stdout.split() == ["False", *own.split()]


def test_flags_that_are_in_a_file_are_left_there(tmp_path):
    flags = tmp_path / "flags"
    flags.write_text("--xla_cpu_max_isa=AVX2")
    assert in_a_new_process(LOOP, {"XLA_FLAGS": str(flags)}).stdout.split()[1] == str(flags)


def test_cores_are_those_that_this_process_may_use():
    """A queue gives two cores of a machine that has many, and JAX makes a thread for each."""
    code = """
import os
os.cpu_count, os.sched_getaffinity = (lambda: 64), (lambda _: {0, 1})
import mbdnode
print(os.environ.get("PJRT_NPROC"))
"""
    assert in_a_new_process(code).stdout.strip() == "16"


WHERE = "import mbdnode.numerics, jax; print(jax.config.values['jax_compilation_cache_dir'])"


def test_programs_are_kept_where_they_are_wanted(tmp_path):
    ours = in_a_new_process(WHERE, {"MBDNODE_CACHE": str(tmp_path / "own")}).stdout.strip()
    assert ours.startswith(str(tmp_path / "own" / "programs"))
    folder = cache_folder(None, str(tmp_path))
    assert folder is not None
    assert folder.is_relative_to(tmp_path / "mbdnode" / "programs")


def test_cache_folder_that_is_not_absolute_does_not_count(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    folder = cache_folder(None, "relative")
    assert folder is not None
    assert folder.is_relative_to(tmp_path / "home" / ".cache" / "mbdnode")
    assert not (tmp_path / "relative").exists()
    for word in ("off", "0", "", "no"):
        assert cache_folder(word, str(tmp_path)) is None
    chosen = in_a_new_process(WHERE, {"JAX_COMPILATION_CACHE_DIR": str(tmp_path / "jax")}).stdout
    assert chosen.strip() == str(tmp_path / "jax")


def test_a_folder_that_cannot_be_made_is_done_without(tmp_path):
    (tmp_path / "file").write_text("")
    assert cache_folder(str(tmp_path / "file" / "below"), None) is None


@pytest.mark.slow
def test_the_second_process_computes_the_same_bits_from_what_was_kept(tmp_path):
    code = """
import mbdnode as mbd
run = mbd.simulate(mbd.mechanisms.SinglePendulum(), [0.0, 0.1, 0.2], {"theta": 1.0})
print(run.q.tobytes().hex())
"""
    kept = {"MBDNODE_CACHE": str(tmp_path)}
    first, second = (in_a_new_process(code, kept) for _ in range(2))
    without = in_a_new_process(code, {"MBDNODE_CACHE": "off"})
    assert first.stdout == second.stdout == without.stdout
    assert not second.stderr
    assert list(tmp_path.rglob("jit_*"))
    for path in tmp_path.rglob("jit_*"):
        path.write_bytes(b"half a program")
    damaged = in_a_new_process(code, kept)
    assert (damaged.stdout, damaged.stderr) == (first.stdout, "")


def test_programs_of_all_processors_are_bounded_together_and_other_files_left_alone(tmp_path):
    """What was not used for longest goes first."""
    ages = ["one/new-cache", "two/old-cache", "one/older-cache", "one/thesis.tex"]
    for age, name in enumerate(ages):
        path = tmp_path / name
        path.parent.mkdir(exist_ok=True)
        path.write_bytes(bytes(100))
        os.utime(path, (1e9 - age, 1e9 - age))
    for _ in range(2):
        shrink_cache(tmp_path, most=250)
        left = {str(path.relative_to(tmp_path)) for path in tmp_path.glob("*/*")}
        assert left == {"one/new-cache", "two/old-cache", "one/thesis.tex"}
    shrink_cache(tmp_path / "gone")
