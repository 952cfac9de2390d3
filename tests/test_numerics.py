"""Float64 is on; and if somebody takes it back, nothing is computed without a word."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import mbdnode as mbd


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
    "fit_ensemble": lambda s, m, r, path: mbd.fit_ensemble(m, r),
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
