"""What is checked before JAX is loaded is what is there once it is."""

import pytest

from mbdnode.cli import early_checks
from mbdnode.errors import UserError
from mbdnode.integrators import INTEGRATORS
from mbdnode.models import MODELS
from mbdnode.models.network_structures import STRUCTURES
from mbdnode.recipes import MODEL_NAMES, STRUCTURE_NAMES
from mbdnode.reproduction.cases import CASES
from mbdnode.reproduction.cases.catalog import check_values
from mbdnode.simulation.simulate import ANALYTIC


def test_names_are_those_of_what_is_there():
    assert tuple(INTEGRATORS) == early_checks.INTEGRATORS
    own_steps = [name for name, each in INTEGRATORS.items() if each.controls_error]
    assert tuple(own_steps) == early_checks.ADAPTIVE
    assert ANALYTIC == early_checks.ANALYTIC
    assert tuple(MODELS) == MODEL_NAMES
    assert tuple(STRUCTURES) == STRUCTURE_NAMES


@pytest.mark.parametrize("name", CASES)
def test_parameter_of_a_case_has_the_bounds_of_its_mechanism(name):
    for parameter in CASES[name].mechanism.parameters:
        for value in (-1.0, 0.0, 0.5, 1e3):
            refused = []
            for check in (parameter.check, lambda x, p=parameter: check_values(name, {p.name: x})):
                try:
                    check(value)
                except UserError as error:
                    refused.append(str(error).split(". ")[0])
            assert len(set(refused)) == len(refused) / 2, (parameter, refused)


@pytest.mark.parametrize(
    "address", ["tcp://127.0.0.1:8786", "tls://host-1.example:8786", "node1:1", "tcp://[::1]:8786"]
)
def test_address_of_a_scheduler_is_taken(address):
    early_checks.check_address(address)


@pytest.mark.parametrize("address", ["", "nonsense", "tcp://", "tcp://host", "a b:1", "host:port"])
def test_what_is_no_address_is_refused(address):
    with pytest.raises(UserError, match="no address"):
        early_checks.check_address(address)
