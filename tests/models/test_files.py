"""A model file gives the same bits back, and whatever is wrong with it is said, never run."""

import json
import struct
from dataclasses import replace
from pathlib import Path

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
import safetensors.numpy
from toys import Elbow, Oscillator

from mbdnode.errors import UserError
from mbdnode.mechanisms import (
    CartPole,
    SingleMassSpring,
    SingleMassSpringDamper,
    SinglePendulum,
    SliderCrank,
    from_text,
    read_mechanism,
)
from mbdnode.models import MBDNODE, Ensemble, load, save

EXAMPLES = sorted(Path(__file__).parents[2].glob("examples/mechanisms/*.toml"))

SETTINGS = [
    (SinglePendulum(), {}),
    (SliderCrank(), {"constraints": "penalty", "activation": "relu"}),
    (SliderCrank(), {"angle_features": True, "initialization": "kaiming"}),
    (CartPole(), {"forces": "added", "divisor": (2.0, 0.1), "hidden_layers": 1}),
    (CartPole(), {"order": "first", "use_time": True, "use_parameters": ("l", "m")}),
    (SingleMassSpring(), {"use_velocity": False, "scaling": True}),
]


def leaves(model):
    return [np.asarray(leaf) for leaf in jax.tree.leaves(model)]


def same_bits(one, other):
    return all(
        a.dtype == b.dtype and a.tobytes() == b.tobytes()
        for a, b in zip(leaves(one), leaves(other), strict=True)
    )


@pytest.mark.parametrize("precision", ["float32", "float64"])
@pytest.mark.parametrize(("system", "settings"), SETTINGS)
def test_model_comes_back_bit_for_bit(system, settings, precision, tmp_path):
    model = MBDNODE.for_system(system, width=4, seed=7, **settings)
    model = jax.tree.map(lambda x: x.astype(precision), model)
    save(model, tmp_path / "model.safetensors")
    again = load(tmp_path / "model.safetensors")
    assert same_bits(again, model)
    assert again.config == model.config
    assert type(again.body) is type(system)
    assert again.minimal == model.minimal


def test_loaded_model_gives_the_same_rates(tmp_path):
    model = MBDNODE.for_system(SinglePendulum(), width=4)
    save(model, tmp_path / "model.safetensors")
    t, z, s, u = jnp.zeros(()), jnp.array([0.3]), jnp.array([1.0]), jnp.array([2.0])
    found = load(tmp_path / "model.safetensors").minimal_rates(t, z, s, u, {})
    assert np.array_equal(found[1], model.minimal_rates(t, z, s, u, {})[1])


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.stem)
def test_model_of_an_example_mechanism_is_loaded_with_it(path, tmp_path):
    model = MBDNODE.for_system(read_mechanism(path), width=4)
    save(model, tmp_path / "model.safetensors")
    again = load(tmp_path / "model.safetensors")
    # The order of bodies is that of the coordinates, that of forces that of the inputs.
    assert again.body.description == model.body.description
    assert same_bits(again, model)


@pytest.fixture
def saved(tmp_path):
    """A good file, and what it is made of."""
    path = tmp_path / "model.safetensors"
    save(MBDNODE.for_system(SinglePendulum(), width=4), path)
    with safetensors.safe_open(path, framework="numpy") as file:
        header = json.loads(file.metadata()["mbdnode"])
        arrays = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
    return path, arrays, header


def rewrite(path, arrays, header):
    text = header if isinstance(header, str) else json.dumps(header)
    safetensors.numpy.save_file(arrays, path, metadata={"mbdnode": text})


def test_file_can_be_taken_apart_and_put_together(saved):
    path, arrays, header = saved
    before = load(path)
    rewrite(path, arrays, header)
    assert same_bits(load(path), before)


def _config(**changes):
    return lambda header: {**header, "config": {**header["config"], **changes}}


def _field(**changes):
    return lambda header: {**header, **changes}


def _without(key):
    return lambda header: {k: v for k, v in header.items() if k != key}


def _config_without(key):
    return lambda header: {
        **header,
        "config": {k: v for k, v in header["config"].items() if k != key},
    }


BAD_HEADERS = {
    "next version": (_field(version=2), "format 2.*reads 1"),
    "no version": (_without("version"), "format None"),
    "version as text": (_field(version="1"), "format '1'"),
    "version as truth": (_field(version=True), "format True"),
    "unknown kind": (_field(kind="transformer"), "kind 'transformer'"),
    "no kind": (_without("kind"), "kind None"),
    "unknown mechanism": (_field(mechanism="warp-drive"), "catalog.*system="),
    "mechanism as list": (_field(mechanism=["single-pendulum"]), "catalog.*system="),
    "no configuration": (_without("config"), "MBDNODEConfig.*None"),
    "configuration as list": (_field(config=[1]), r"MBDNODEConfig.*\[1\]"),
    "unknown key": (_config(wdth=4), "'wdth'.*Did you mean 'width'"),
    "missing key": (_config_without("activation"), "activation"),
    "wrong type": (_config(width="4"), "width is '4'"),
    "wrong value": (_config(width=-4), "width is -4"),
    "wrong word": (_config(activation="os.system"), "activation 'os.system'"),
    "other width": (_config(width=5), r"network/weights/0.*\(4, 3\)"),
    "gigantic width": (_config(width=10**9), r"network/weights/0.*\(4, 3\)"),
    "other depth": (_config(hidden_layers=3), "layers"),
    "gigantic depth": (_config(hidden_layers=10**9), "layers"),
    "other inputs": (_config(use_time=True), r"\(4, 3\).*\(4, 4\)"),
    "not an object": (lambda header: [header], "header.*damaged"),
    "null": (lambda header: None, "header.*damaged"),
    "half of the text": (lambda header: json.dumps(header)[:40], "header.*damaged"),
    "deep nesting": (lambda header: "[" * 100_000, "header.*damaged"),
}


@pytest.mark.parametrize("kind", BAD_HEADERS)
def test_bad_header_is_refused(kind, saved):
    path, arrays, header = saved
    change, message = BAD_HEADERS[kind]
    rewrite(path, arrays, change(header))
    with pytest.raises(ValueError, match=message):
        load(path)


BAD_ARRAYS = {
    "wrong shape": ({"network/biases/1": np.zeros(5)}, r"network/biases/1.*\(5,\).*\(4,\)"),
    "transposed": ({"network/weights/0": np.zeros((3, 4))}, r"network/weights/0"),
    "one more": ({"network/weights/9": np.zeros((4, 4))}, "layers|network/weights/9"),
    "a stranger": ({"__reduce__": np.zeros(1)}, "__reduce__.*does not know"),
    "whole numbers": ({"network/biases/0": np.zeros(4, np.int64)}, "int64"),
    "half precision": ({"network/biases/0": np.zeros(4, np.float16)}, "float16"),
    "truth values": ({"network/biases/0": np.zeros(4, bool)}, "bool"),
}


@pytest.mark.parametrize("kind", BAD_ARRAYS)
def test_bad_array_is_refused(kind, saved):
    path, arrays, header = saved
    changes, message = BAD_ARRAYS[kind]
    rewrite(path, {**arrays, **changes}, header)
    with pytest.raises(ValueError, match=message):
        load(path)


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
def test_weight_that_is_not_finite_is_refused(value, saved):
    path, arrays, header = saved
    arrays["network/biases/1"][2] = value
    rewrite(path, arrays, header)
    with pytest.raises(ValueError, match=r"'network/biases/1' has 1 value.*not finite"):
        load(path)


def test_mechanism_of_a_model_file_is_no_larger_than_one_of_a_toml_file(tmp_path, saved):
    path, arrays, header = saved
    parts = {f"b{i}": {"center": [float(i), 0.0]} for i in range(20_000)}
    rewrite(path, arrays, {**header, "definition": {"bodies": parts}})
    with pytest.raises(ValueError, match=r"20,000 parts.*at most"):
        load(path)
    text = "\n".join(f"[bodies.{name}]\ncenter=[0.0,0.0]" for name in parts)
    with pytest.raises(ValueError, match=r"20,000 parts.*at most"):
        from_text(text)


def test_weights_of_two_precisions_are_refused(saved):
    path, arrays, header = saved
    changed = {**arrays, "network/biases/0": np.zeros(4, np.float32)}
    rewrite(path, changed, header)
    with pytest.raises(ValueError, match="float32"):
        load(path)


@pytest.mark.parametrize("name", ["network/weights/0", "network/biases/2", "spread"])
def test_missing_array_is_refused(name, saved):
    path, arrays, header = saved
    del arrays[name]
    rewrite(path, arrays, header)
    with pytest.raises(ValueError, match=f"lacks.*{name}|layers"):
        load(path)


@pytest.mark.parametrize("length", [0, 5, 8, 100, -1])
def test_truncated_file_is_refused(length, saved):
    path, _, _ = saved
    path.write_bytes(path.read_bytes()[:length])
    with pytest.raises(ValueError, match="not a whole safetensors file"):
        load(path)


def test_file_with_something_behind_it_is_refused(saved):
    path, _, _ = saved
    path.write_bytes(path.read_bytes() + b"import os")
    with pytest.raises(ValueError, match="not a whole safetensors file"):
        load(path)


@pytest.mark.parametrize(
    "content",
    [b"theta,omega\n1,2\n", b"\x80\x04\x95" + b"c__builtin__\neval\n." * 9, b"PK\x03\x04" * 9],
    ids=["csv", "pickle", "zip"],
)
def test_other_kinds_of_files_are_refused(content, tmp_path):
    path = tmp_path / "model.safetensors"
    path.write_bytes(content)
    with pytest.raises(ValueError, match="not a whole safetensors file"):
        load(path)


@pytest.mark.parametrize("metadata", [None, {"format": "pt"}])
def test_safetensors_of_others_are_refused(metadata, tmp_path):
    path = tmp_path / "model.safetensors"
    safetensors.numpy.save_file({"weight": np.zeros(3)}, path, metadata=metadata)
    with pytest.raises(ValueError, match="mbdnode did not write it"):
        load(path)


def test_header_length_beyond_the_file_is_refused(saved):
    path, _, _ = saved
    path.write_bytes(struct.pack("<Q", 2**62) + path.read_bytes()[8:])
    with pytest.raises(ValueError, match="not a whole safetensors file"):
        load(path)


def test_missing_file_is_named(tmp_path):
    with pytest.raises(ValueError, match=r"no file.*nothing.safetensors"):
        load(tmp_path / "nothing.safetensors")
    with pytest.raises(ValueError, match="no file"):
        load(tmp_path)


def test_mechanism_of_ones_own_must_be_given(tmp_path):
    path = tmp_path / "model.safetensors"
    model = MBDNODE.for_system(Elbow(), width=4)
    save(model, path)
    with pytest.raises(ValueError, match=r"'Elbow'.*system="):
        load(path)
    assert same_bits(load(path, system=Elbow()), model)


def test_model_is_not_put_on_another_mechanism(tmp_path):
    path = tmp_path / "model.safetensors"
    save(MBDNODE.for_system(SingleMassSpringDamper(), width=4), path)
    # A mass on a spring has the same coordinate, so the weights would fit.
    with pytest.raises(ValueError, match=r"SingleMassSpringDamper.*SingleMassSpring "):
        load(path, system=SingleMassSpring())
    with pytest.raises(ValueError, match=r"SingleMassSpringDamper.*Oscillator"):
        load(path, system=Oscillator())


def test_old_file_survives_a_failed_save(saved, monkeypatch):
    path, _, _ = saved
    before = path.read_bytes()

    def full_disk(*arguments):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("os.fsync", full_disk)
    with pytest.raises(OSError, match="No space left"):
        save(MBDNODE.for_system(CartPole(), width=4), path)
    assert path.read_bytes() == before
    assert [p.name for p in path.parent.iterdir()] == [path.name]


def _with(where, value):
    return lambda model: eqx.tree_at(where, model, value)


CHANGED = {
    "wider layer": (_with(lambda m: m.network.weights[0], jnp.zeros((9, 3))), r"\(9, 3\)"),
    "shorter center": (_with(lambda m: m.center, jnp.zeros(2)), r"center.*\(2,\)"),
    "whole numbers": (_with(lambda m: m.spread, jnp.ones(3, int)), r"spread.*int64"),
    "two precisions": (_with(lambda m: m.network.biases[0], jnp.zeros(4, "float32")), "mixes"),
    "more layers": (_with(lambda m: m.network.biases, (jnp.zeros(4),) * 4), "biases/2"),
    "not finite": (_with(lambda m: m.network.biases[0], jnp.full(4, jnp.nan)), "not finite"),
    "own activation": (
        lambda m: replace(m, network=replace(m.network, activation="relu")),
        "Something else than numbers",
    ),
    "own network": (
        _with(lambda m: m.network, eqx.nn.MLP(3, 1, 4, 2, key=jax.random.key(0))),
        "layers of its own",
    ),
    "own settings": (lambda m: replace(m, settings=replace(m.settings, width=5)), "width of 5"),
    "ensemble": (
        lambda m: Ensemble([eqx.tree_at(lambda n: n.center, m, jnp.zeros(2))] * 2),
        r"center.*\(2,\)",
    ),
}


@pytest.mark.parametrize("kind", CHANGED)
def test_model_that_could_not_be_loaded_is_not_written(kind, saved):
    path, _, _ = saved
    before = path.read_bytes()
    change, message = CHANGED[kind]
    with pytest.raises(UserError, match=message):
        save(change(load(path)), path)
    assert path.read_bytes() == before
    assert [p.name for p in path.parent.iterdir()] == [path.name]


def test_save_replaces_a_whole_file(saved):
    path, _, _ = saved
    model = MBDNODE.for_system(CartPole(), width=4)
    save(model, path)
    assert same_bits(load(path), model)
