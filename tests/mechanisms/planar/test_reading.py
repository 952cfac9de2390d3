"""Files that are right are read as they are; of others, the line and the key are named."""

import math
from pathlib import Path

import numpy as np
import pytest

from mbdnode.mechanisms import from_dict, from_text, read_mechanism
from mbdnode.mechanisms.planar import PlanarMechanism

EXAMPLES = Path(__file__).parents[3] / "examples" / "mechanisms"
NAMES = ["slider_crank", "four_bar", "quick_return", "double_wishbone", "five_link_chain"]

GOOD = """\
gravity = [0.0, -9.81]

[bodies.arm]
mass = 2.0
inertia = 0.5
center = [1.0, 0.0]
angle = "30 deg"

[bodies.cart]
mass = 1.0
inertia = 0.0
center = [
  0.0,
  0.0,
]

[joints.pin]
type = "revolute"
bodies = ["cart", "arm"]
points = [[0.0, 0.0], [-1.0, 0.0]]

[joints.rail]
type = "prismatic"
bodies = ["ground", "cart"]
points = [[0.0, 0.0], [0.0, 0.0]]

[springs.coil]
type = "linear"
bodies = ["ground", "cart"]
points = [[-1.0, 0.0], [0.0, 0.0]]
stiffness = 5
free_length = 1.0

[dampers.oil]
type = "torsional"
bodies = ["cart", "arm"]
damping = 0.1

[forces.push]
body = "cart"

[torques.motor]
bodies = ["cart", "arm"]
"""


def line_of(text):
    return 1 + GOOD[: GOOD.index(text)].count("\n")


def test_examples_are_those_that_the_tests_know():
    assert {path.stem for path in EXAMPLES.glob("*.toml")} == set(NAMES)


@pytest.mark.parametrize("name", NAMES)
def test_a_file_read_twice_or_through_plain_data_is_the_same_mechanism(name):
    first, second = (read_mechanism(EXAMPLES / f"{name}.toml") for _ in range(2))
    assert isinstance(first, PlanarMechanism)
    # The same key in the cache of compiled programs.
    assert first == second
    assert hash(first) == hash(second)
    assert from_dict(first.to_dict()) == first


def test_names_follow_from_those_of_the_parts():
    mechanism = from_text(GOOD, name="cart")
    assert mechanism.description.name == "cart"
    assert mechanism.coordinate_names == (
        *("arm_x", "arm_y", "arm_angle"),
        *("cart_x", "cart_y", "cart_angle"),
    )
    assert [c.is_angle for c in mechanism.coordinates] == [False, False, True] * 2
    assert [(i.name, i.unit) for i in mechanism.inputs] == [("push", "N"), ("motor", "N m")]
    assert {p.name: p.default for p in mechanism.parameters} == {
        "gravity_x": 0.0,
        "gravity_y": -9.81,
        "arm_mass": 2.0,
        "arm_inertia": 0.5,
        "cart_mass": 1.0,
        "cart_inertia": 0.0,
        "coil_stiffness": 5.0,
        "coil_free_length": 1.0,
        "oil_damping": 0.1,
    }
    assert mechanism.reference["arm_angle"] == pytest.approx(math.pi / 6, rel=1e-15)


def test_angles_may_have_a_unit():
    angles = {'"30 deg"': math.pi / 6, '"-1e2deg"': -math.radians(100), '"0.5 rad"': 0.5, "2": 2.0}
    for text, value in angles.items():
        mechanism = from_text(GOOD.replace('"30 deg"', text))
        assert mechanism.reference["arm_angle"] == pytest.approx(value, rel=1e-15)


def test_a_byte_order_mark_and_windows_line_ends_do_not_matter(tmp_path):
    path = tmp_path / "cart.toml"
    path.write_bytes(b"\xef\xbb\xbf" + GOOD.replace("\n", "\r\n").encode())
    assert read_mechanism(path) == from_text(GOOD, name="cart")
    path.write_bytes(GOOD.replace("\n", "\r\n").replace("damping = 0.1", "damping = -1").encode())
    with pytest.raises(
        ValueError, match=rf"line {line_of('damping = 0.1')}, key 'dampers\.oil\.damping'"
    ):
        read_mechanism(path)


# What is replaced, by what, the key, and words of the rule.
WRONG = {
    "a negative mass": ("mass = 2.0", "mass = -2.0", "bodies.arm.mass", "-2; it must be above 0"),
    "no mass": ("mass = 2.0", "mass = 0", "bodies.arm.mass", "must be above 0"),
    "not a number": ("mass = 2.0", "mass = nan", "bodies.arm.mass", "nan; it must be a finite"),
    "infinite": ("damping = 0.1", "damping = inf", "dampers.oil.damping", "finite"),
    "huge": ("mass = 2.0", f"mass = 1{'0' * 400}", "bodies.arm.mass", "finite"),
    "text": ("mass = 2.0", 'mass = "2 kg"', "bodies.arm.mass", "must be a number"),
    "a switch": ("mass = 2.0", "mass = true", "bodies.arm.mass", "must be a number"),
    "a date": ("mass = 2.0", "mass = 2020-01-01", "bodies.arm.mass", "must be a number"),
    "a typing mistake": ("mass = 2.0", "mas = 2.0", "bodies.arm.mas", "Did you mean 'mass'"),
    "mass alone": ("inertia = 0.5\n", "\n", "bodies.arm.mass", "needs inertia"),
    "a bad angle": ('"30 deg"', '"30 grad"', "bodies.arm.angle", '"30 deg" or "0.5 rad"'),
    "an angle of dots": ('"30 deg"', '".. deg"', "bodies.arm.angle", '"30 deg" or "0.5 rad"'),
    "a long point": ("[1.0, 0.0]", "[1.0, 0.0, 2.0]", "bodies.arm.center", "list such as"),
    "an unknown body": ('"cart", "arm"]\np', '"cart", "amr"]\np', "joints.pin.bodies", "'arm'"),
    "itself": ('"cart", "arm"]\np', '"arm", "arm"]\np', "joints.pin.bodies", "twice"),
    "three bodies": ('"cart", "arm"]\np', '"arm"]\np', "joints.pin.bodies", "list such as"),
    "one point": ("[[0.0, 0.0], [-1.0, 0.0]]", "[0.0, 0.0]", "joints.pin.points", "list such as"),
    "an unknown type": ('"revolute"', '"revolut"', "joints.pin.type", "Did you mean 'revolute'"),
    "a type of another": ('"torsional"', '"linear"', "dampers.oil.points", "missing"),
    "a key of another": ('"prismatic"', '"prismatic"\nlength = 1', "joints.rail.length", "Unknown"),
    "gravity": ("[0.0, -9.81]\n", "9.81\n", "gravity", "list such as"),
    "top": ("gravity =", "gravitation =", "gravitation", "Did you mean 'gravity'"),
    "a kind": ("[springs.coil]", "[spring.coil]", "spring", "Did you mean 'springs'"),
    "a list of tables": ("[springs.coil]", "[[springs]]", "springs", "must be a table"),
    "the ground": ("[bodies.cart]", "[bodies.ground]", "bodies.ground", "stands still"),
    "a strange name": ("[bodies.cart]", '[bodies."my cart"]', "bodies.my cart", "underscores"),
    "a name used twice": ("[torques.motor]", "[torques.pin]", "torques.pin", "already"),
    "an input like a coordinate": (
        "[forces.push]",
        "[forces.arm_x]",
        "forces.arm_x",
        "two columns",
    ),
    "time": ("[forces.push]", "[forces.t]", "forces.t", "two columns"),
    "free length": ("free_length = 1.0", "", "springs.coil.free_length", "missing"),
    "frame": ('body = "cart"', 'body = "cart"\nframe = "world"', "forces.push.frame", "ground"),
}


ELSEWHERE = {
    "mass alone": "mass = 2.0",
    "a type of another": "[dampers.oil]",
    "free length": "[springs.coil]",
}
# The change adds a line, and that one is wrong.
BELOW = ("a key of another", "frame")


@pytest.mark.parametrize("case", WRONG)
def test_what_is_wrong_is_named_with_its_line_and_key(case, tmp_path):
    old, new, key, words = WRONG[case]
    assert GOOD.count(old) >= 1
    path = tmp_path / "cart.toml"
    path.write_text(GOOD.replace(old, new, 1))
    with pytest.raises(ValueError, match=r".") as caught:
        read_mechanism(path)
    message = str(caught.value)
    assert str(path) in message
    assert f"key '{key}'" in message
    assert words in message
    # The line is that of the change, or of the table where something is missing.
    line = line_of(ELSEWHERE.get(case, old)) + (case in BELOW)
    assert f"{path}, line {line}, key" in message


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"", "is empty"),
        (b"# only a comment\n", "is empty"),
        (b'name = "nothing"\n', "no bodies"),
        (b"[bodies]\n", "no bodies"),
        (b"[bodies.a\ncenter = 1\n", "line 1"),
        (b"[bodies.a]\ncenter = [0, 0]\n[bodies.a]\n", "line 3"),
        (b"[bodies.a]\ncenter = [0, 0]\ncenter = [0, 1]\n", "line 3"),
        (b"\x89PNG\r\n\x1a\n\x00\x00", "line 1: byte 0 is not UTF-8"),
        (b"[bodies.a]\ncenter = [0, 0] # \xe9\n", "line 2: byte"),
        (b"\x00\x01\x02", "not TOML"),
        (b"a = " + b"[" * 5000, "not TOML"),
        (b"a = " + b"1" * 5000, "not TOML"),
        (b"x" * 1_000_001, "1,000,000 bytes"),
        (b"bodies = 3\n", "must be a table"),
        (b"[bodies]\narm = 3\n", "line 2, key 'bodies.arm'"),
    ],
)
def test_what_is_no_mechanism_is_refused_with_the_reason(content, words, tmp_path):
    path = tmp_path / "it.toml"
    path.write_bytes(content)
    with pytest.raises(ValueError, match=r".") as caught:
        read_mechanism(path)
    assert words in str(caught.value)
    assert str(path) in str(caught.value)


def test_missing_files_and_directories_are_refused(tmp_path):
    with pytest.raises(ValueError, match="There is no file"):
        read_mechanism(tmp_path / "none.toml")
    with pytest.raises(ValueError, match="no regular file"):
        read_mechanism(tmp_path)


def test_parameters_of_the_same_name_are_refused():
    text = GOOD.replace("[springs.coil]", "[springs.coil_free]").replace(
        "[dampers.oil]", "[dampers.coil]"
    )
    assert isinstance(from_text(text), PlanarMechanism)
    clash = text + '\n[joints.coil_free_free]\ntype = "distance"\nbodies = ["ground", "arm"]\n'
    clash += "points = [[0, 0], [0, 0]]\nlength = 1.0\n"
    with pytest.raises(ValueError, match="two parameters called 'coil_free_free_length'"):
        from_text(clash)


@pytest.mark.parametrize(
    ("drive", "words"),
    [
        ('joint = "pni"\nmotion = "rate"\nrate = 1', "Did you mean 'pin'"),
        ('joint = "rod"\nmotion = "rate"\nrate = 1', "a distance joint; only a revolute"),
        ('joint = "pin"\nmotion = "step"', "Unknown motion"),
        ('joint = "pin"', "motion"),
        ('joint = "pin"\nmotion = "sine"\namplitude = 1.0', "frequency"),
        ('joint = "pin"\nmotion = "polynomial"\ncoefficients = []', "list such as"),
        ('joint = "rail"\nmotion = "rate"\nrate = 1\nstart = "3 deg"', "Give a number in meters"),
    ],
)
def test_drives_that_cannot_be_are_refused(drive, words):
    rod = '[joints.rod]\ntype = "distance"\nbodies = ["ground", "arm"]\n'
    rod += "points = [[0, 0], [0, 0]]\nlength = 1.0\n"
    with pytest.raises(ValueError, match=words):
        from_text(f"{GOOD}\n{rod}\n[drives.wheel]\n{drive}\n")


def test_a_joint_has_one_drive():
    one = 'joint = "pin"\nmotion = "rate"\nrate = 1.0\n'
    with pytest.raises(ValueError, match=r"drives\.b\.joint.*'pin' is driven by 'a' already"):
        from_text(f"{GOOD}\n[drives.a]\n{one}\n[drives.b]\n{one}")


def test_independent_coordinates_must_exist():
    with pytest.raises(ValueError, match=r"line 1, key 'independent'.*'arm_angle'"):
        from_text('independent = ["arm_angel"]\n' + GOOD)


def outcome(text):
    try:
        from_text(text)
    except ValueError as error:
        # Our own sentence, which begins with what was read.
        return "refused" if str(error).startswith("the text") else str(error)
    return "read"


def test_every_cut_of_a_good_file_is_read_or_refused():
    random = np.random.default_rng(0)
    for length in random.integers(0, len(GOOD), 60):
        assert outcome(GOOD[:length]) in ("read", "refused")


def test_random_damage_never_ends_in_another_error():
    random = np.random.default_rng(1)
    letters = list("\"'[]{}=.,#\n 019-abxnf\\\x7f\u2028é")
    for _ in range(150):
        text = list(GOOD)
        for place in random.integers(0, len(text), 3):
            text[place] = letters[random.integers(len(letters))]
        assert outcome("".join(text)) in ("read", "refused")
