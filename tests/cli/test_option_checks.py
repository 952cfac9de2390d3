"""Addresses of schedulers are told from what is none; names stand where they can be looked up."""

import pytest

from mbdnode.cli.option_checks import check_address
from mbdnode.errors import UserError
from mbdnode.models import MODELS
from mbdnode.models.network_structures import STRUCTURES
from mbdnode.recipes import MODEL_NAMES, STRUCTURE_NAMES


def test_names_are_those_of_what_is_there():
    assert tuple(MODELS) == MODEL_NAMES
    assert tuple(STRUCTURES) == STRUCTURE_NAMES


@pytest.mark.parametrize(
    "address", ["tcp://127.0.0.1:8786", "tls://host-1.example:8786", "node1:1", "tcp://[::1]:8786"]
)
def test_address_of_a_scheduler_is_taken(address):
    check_address(address)


@pytest.mark.parametrize("address", ["", "nonsense", "tcp://", "tcp://host", "a b:1", "host:port"])
def test_what_is_no_address_is_refused(address):
    with pytest.raises(UserError, match="no address"):
        check_address(address)
