"""The public names: they are all there, and say what they are for."""

import pytest

import mbdnode


@pytest.mark.parametrize("name", mbdnode.__all__)
def test_public_name_is_there_and_says_what_it_is_for(name):
    value = getattr(mbdnode, name)
    assert value.__doc__
    assert name in dir(mbdnode)


def test_no_name_is_listed_twice():
    assert len(set(mbdnode.__all__)) == len(mbdnode.__all__)


def test_unknown_name_is_an_attribute_error():
    with pytest.raises(AttributeError, match="simulat"):
        _ = mbdnode.simulat
