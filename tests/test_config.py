"""Configurations survive JSON unchanged, and what cannot be read exactly is not read at all."""

import json
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

import pytest

from mbdnode.config import check_types, from_dict, parse_toml, replace, to_dict
from mbdnode.errors import UserError


@dataclass(frozen=True)
class Engine:
    cylinders: int = 4
    fuel: Literal["petrol", "diesel"] = "petrol"


@dataclass(frozen=True)
class Car:
    name: str
    seats: int = 5
    mass_kg: float = 1_000.0
    electric: bool = False
    owner: str | None = None
    doors: int | None = 4
    wheel_sizes: tuple[float, ...] = (0.3, 0.3)
    plates: tuple[str, ...] = ()
    engine: Engine = field(default_factory=Engine)
    options: Mapping[str, float] = field(default_factory=dict)


@dataclass(frozen=True)
class Checked:
    count: int = 1
    sizes: tuple[float, ...] = ()
    kind: Literal["round", "square"] = "round"

    def __post_init__(self):
        check_types(self)


FULL = Car(
    "Ida",
    seats=2,
    mass_kg=0.1 + 0.2,
    electric=True,
    owner="Mæve",
    doors=None,
    wheel_sizes=(0.1, 1e-17, 3.0),
    plates=("a", "b"),
    engine=Engine(6, "diesel"),
    options={"radio": 1.5},
)


@pytest.mark.parametrize("car", [Car("Bo"), FULL])
def test_configuration_is_the_same_after_json(car):
    again = from_dict(Car, json.loads(json.dumps(to_dict(car))))
    assert again == car
    assert type(again.wheel_sizes) is tuple
    assert type(again.engine) is Engine


def test_fields_that_are_left_out_keep_their_defaults():
    assert from_dict(Car, {"name": "Bo", "engine": {"cylinders": 8}}) == Car("Bo", engine=Engine(8))


def test_whole_number_is_read_as_a_float_where_one_is_meant():
    mass = from_dict(Car, {"name": "Bo", "mass_kg": 900}).mass_kg
    assert mass == 900.0
    assert type(mass) is float


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"name": "Bo", "seat": 3}, "'seat'.*Did you mean 'seats'"),
        ({"name": "Bo", "engine": {"cylinder": 3}}, "'cylinder'.*Did you mean 'cylinders'"),
        ({"name": "Bo", "engine": {"fuel": "deisel"}}, "'deisel'.*Did you mean 'diesel'"),
        ({"name": "Bo", "engine": 3}, "engine is 3"),
        ({"name": 3}, "name is 3.*str"),
        ({"name": "Bo", "seats": 2.0}, "seats is 2.0.*int"),
        ({"name": "Bo", "seats": True}, "seats is True.*int"),
        ({"name": "Bo", "seats": "2"}, "seats is '2'.*int"),
        ({"name": "Bo", "mass_kg": "heavy"}, "mass_kg is 'heavy'.*float"),
        ({"name": "Bo", "mass_kg": True}, "mass_kg is True.*float"),
        ({"name": "Bo", "electric": 1}, "electric is 1.*bool"),
        ({"name": "Bo", "owner": 3}, "owner is 3.*str"),
        ({"name": "Bo", "seats": None}, "seats is None.*int"),
        ({"name": "Bo", "wheel_sizes": 0.3}, "wheel_sizes is 0.3"),
        ({"name": "Bo", "wheel_sizes": "0.3"}, "wheel_sizes is '0.3'"),
        ({"name": "Bo", "wheel_sizes": [0.3, "b"]}, "wheel_sizes is 'b'.*float"),
        ({"name": "Bo", "options": {"radio": "on"}}, r"options\.radio is 'on'.*float"),
        ({"seats": 2}, "Car lacks 'name'"),
        ([], r"Car.*\[\]"),
        (None, "Car.*None"),
    ],
)
def test_what_cannot_be_read_exactly_is_refused_by_name(values, message):
    with pytest.raises(ValueError, match=message):
        from_dict(Car, values)


@pytest.mark.parametrize(
    ("key", "text", "value"),
    [
        ("seats", "7", 7),
        ("mass_kg", "1e3", 1000.0),
        ("mass_kg", "7", 7.0),
        ("electric", "true", True),
        ("electric", "Yes", True),
        ("electric", "0", False),
        ("electric", "no", False),
        ("owner", "none", None),
        ("owner", "Eve", "Eve"),
        ("doors", "None", None),
        ("doors", "2", 2),
        ("wheel_sizes", "0.1,2", (0.1, 2.0)),
        ("wheel_sizes", "0.1", (0.1,)),
        ("wheel_sizes", "", ()),
        ("plates", "x,y", ("x", "y")),
    ],
)
def test_text_is_read_by_the_type_of_its_field(key, text, value):
    found = getattr(replace(Car("Bo"), {key: text}), key)
    assert found == value
    assert type(found) is type(value)


def test_text_is_one_of_the_words_that_a_field_allows():
    assert replace(Engine(), {"fuel": "diesel"}).fuel == "diesel"
    with pytest.raises(ValueError, match=r"'deisel'.*Did you mean 'diesel'"):
        replace(Engine(), {"fuel": "deisel"})


def test_replacing_leaves_the_rest_and_the_original_alone():
    car = Car("Bo", seats=3)
    assert replace(car, {"mass_kg": "2"}) == Car("Bo", seats=3, mass_kg=2.0)
    assert car == Car("Bo", seats=3)


@pytest.mark.parametrize(
    ("key", "text", "message"),
    [
        ("seats", "many", "seats is 'many'.*whole number"),
        ("seats", "2.5", "seats is '2.5'.*whole number"),
        ("seats", "none", "seats is 'none'.*whole number"),
        ("doors", "many", "doors is 'many'.*whole number"),
        ("mass_kg", "heavy", "mass_kg is 'heavy'.*number"),
        ("electric", "maybe", "electric is 'maybe'.*true or false"),
        ("wheel_sizes", "0.1,big", "wheel_sizes is 'big'.*number"),
        ("seat", "3", "Unknown setting 'seat'.*Did you mean 'seats'"),
    ],
)
def test_text_of_the_wrong_kind_is_refused(key, text, message):
    with pytest.raises(ValueError, match=message):
        replace(Car("Bo"), {key: text})


def test_types_are_checked_when_a_configuration_is_made_in_code():
    made = Checked(2, sizes=[1, 2.5])
    assert made.sizes == (1.0, 2.5)
    assert hash(made) == hash(Checked(2, (1.0, 2.5)))
    with pytest.raises(ValueError, match=r"count is 2.0.*int"):
        Checked(2.0)
    with pytest.raises(ValueError, match=r"'rond'.*Did you mean 'round'"):
        Checked(kind="rond")


@pytest.mark.parametrize(
    "text",
    [
        "a." * 20_000 + "b = 1",
        "[" + ".".join(["a"] * 20_000) + "]",
        '"a b" . ' * 20_000 + "c = 1",
        "a = " + "[" * 20_000 + "]" * 20_000,
        "a = " + "{a = " * 20_000 + "1" + "}" * 20_000,
        "a = " + "[" * 60 + "]" * 60,
    ],
    ids=["dotted key", "header", "quoted keys", "lists", "tables", "shallow lists"],
)
def test_toml_that_is_nested_without_end_is_refused_at_once(text):
    began = time.perf_counter()
    with pytest.raises(UserError, match="more than 50 levels deep"):
        parse_toml(text, "file.toml", "Correct it.")
    # The parser alone takes half a minute for the first.
    assert time.perf_counter() - began < 2.0


def test_toml_of_usual_depth_is_parsed():
    text = "a = " + "[" * 40 + "]" * 40 + '\nb.c.d = 1.5\nname = "v1.2.3, of 4.5.6"'
    assert parse_toml(text, "file.toml", "")["b"] == {"c": {"d": 1.5}}
