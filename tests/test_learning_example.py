"""The example that learns a family of pendulums, on small data."""

import importlib.util
from pathlib import Path

import pytest

EXAMPLE = Path(__file__).parent.parent / "examples" / "learn_pendulum_family.py"


@pytest.mark.slow
def test_learned_family_swings_like_its_unseen_members_inside_the_range(capsys):
    spec = importlib.util.spec_from_file_location("learn_pendulum_family", EXAMPLE)
    family = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(family)
    errors = family.main(runs=100, epochs=100)
    # A pendulum that hung still would be off by the swing's own mean square, above one.
    assert errors["inside, the middle"] < 0.3
    assert "mse" in capsys.readouterr().out
