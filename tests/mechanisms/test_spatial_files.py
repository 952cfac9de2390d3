"""Files in space that are right are read as they are; of others, the line and the key are named."""

import math
import time
import tomllib
from pathlib import Path

import numpy as np
import pytest
from scipy.spatial.transform import Rotation

import mbdnode as mbd
from mbdnode.mechanisms import read_description
from mbdnode.mechanisms.spatial.reading import described, is_spatial
from mbdnode.mechanisms.spatial.writing import to_dict, to_toml
from mbdnode.mechanisms.toml_files.values import Source

EXAMPLES = Path(__file__).parents[2] / "examples" / "mechanisms"

GOOD = """\
gravity = [0, 0, -9.81]

[bodies.rod]
mass = 1.2
center = [0.15, 0, 0]
inertia = [1e-4, 9e-3, 9e-3, 0, 0, 0]
shapes = [{ type = "capsule", ends = [[0, 0, 0], [0.3, 0, 0]], radius = 0.01 }]

[bodies.slider]
shapes = [
  { type = "box", size = [0.1, 0.1, 0.1], density = 1000 },
  { type = "sphere", radius = 0.02 },
]

[bodies.wheel]
mass = 2.0

[joints.shoulder]
type = "revolute"
bodies = ["ground", "rod"]
frames = [{ at = [0, 0, 1] }, { at = [0, 0, 0], rpy = ["0 deg", "90 deg", 0.5] }]
axis = [0, 1, 0]
armature = 0.01
start = "30 deg"

[joints.tip]
type = "spherical"
bodies = ["rod", "slider"]
cut = true

[joints.guide]
type = "cylindrical"
bodies = ["ground", "slider"]
start = [0.1, 0.2]

[joints.floor]
type = "rolling"
bodies = ["ground", "wheel"]
radius = 0.3
axis = [0, 0, 1]

[couplings.gear]
coordinates = ["guide_angle", "shoulder"]
ratio = 2

[springs.coil]
coordinate = "guide_slide"
stiffness = 5

[springs.rope]
bodies = ["rod", "wheel"]
points = [[0.3, 0, 0], [0, 0, 0]]
stiffness = 7.0
free = 0.5
preload = 1.0

[dampers.oil]
coordinate = "shoulder"
damping = 0.1

[forces.push]
body = "slider"
direction = [1, 0, 0]
frame = "body"

[torques.twist]
body = "wheel"
direction = [0, 0, 1]
value = 0.5
against = "rod"

[motors.servo]
coordinate = "shoulder"
gear = 100
rotor_inertia = 1e-5

[drives.swing]
joint = "guide_slide"
motion = "sine"
amplitude = 0.1
frequency = 2.0

[friction.bearing]
joint = "shoulder"
limit = 0.2

[outputs.hand]
point = { body = "rod", at = [0.3, 0, 0] }

[outputs.imu]
accelerometer = { body = "wheel", rpy = [0, 0, "90 deg"] }

[outputs.gap]
distance = { bodies = ["rod", "ground"], points = [[0.3, 0, 0], [1, 0, 0]] }
"""


def read(text, name="machine"):
    return described(tomllib.loads(text), Source("the text", text), name)


def line_of(text):
    return 1 + GOOD[: GOOD.index(text)].count("\n")


def test_a_file_says_what_its_keys_mean(tmp_path):
    path = tmp_path / "machine.toml"
    path.write_text(GOOD)
    found = read_description(path)
    assert found.name == "machine"
    rod, slider, wheel = found.bodies
    assert (rod.mass, rod.center) == (1.2, (0.15, 0.0, 0.0))
    assert wheel.inertia == (0.0,) * 6
    shoulder, tip, guide, floor = found.joints
    assert shoulder.frames[1].rpy == pytest.approx((0.0, math.pi / 2, 0.5), rel=1e-15)
    assert shoulder.start == pytest.approx((math.pi / 6,), rel=1e-15)
    assert (tip.cut, guide.cut) == (True, None)
    assert guide.start == (0.1, 0.2)
    assert (floor.radius, floor.axis) == (0.3, (0.0, 0.0, 1.0))
    assert found.couplings[0].coefficients == (0.0, 2.0)
    assert [(s.name, s.stiffness, s.damping) for s in found.springs] == [
        ("coil", 5.0, 0.0),
        ("rope", 7.0, 0.0),
        ("oil", 0.0, 0.1),
    ]
    assert [(load.name, load.kind, load.value) for load in found.loads] == [
        ("push", "force", None),
        ("twist", "torque", 0.5),
    ]
    assert [output.type for output in found.outputs] == ["point", "accelerometer", "distance"]
    assert slider.mass == pytest.approx(1.0, rel=1e-14)


def test_a_description_is_written_and_read_back_unchanged():
    found = read(GOOD)
    assert described(to_dict(found), Source("the data"), "other") == found
    assert read(to_toml(found)) == found


def test_every_parameter_finds_its_place_in_the_file():
    found = mbd.mechanisms.spatial.SpatialMechanism(read(GOOD))
    values = {p.name: p.default + 0.125 for p in found.parameters}
    # Inertias that a body can have.
    values |= {f"wheel_inertia_{key}": 0.125 for key in ("xx", "yy", "zz")}
    values |= {p.name: p.default for p in found.parameters if p.name[-3:] in ("_xy", "_xz", "_yz")}
    again = mbd.mechanisms.spatial.SpatialMechanism(read(found.to_toml(values)))
    assert {p.name: p.default for p in again.parameters} == pytest.approx(values, rel=1e-15)
    with pytest.raises(mbd.UserError, match="Unknown parameter 'rod_weight'"):
        found.to_toml({"rod_weight": 1.0})


def test_planar_files_are_told_from_those_in_space():
    for path in EXAMPLES.glob("*.toml"):
        assert not is_spatial(tomllib.loads(path.read_text()))
    assert is_spatial(tomllib.loads(GOOD))
    assert not is_spatial(tomllib.loads('plane = "xy"\n' + GOOD))
    assert not is_spatial({})
    assert not is_spatial({"bodies": 3, "joints": [], "gravity": "down"})


def moments(shape):
    body = read(f'[bodies.solid]\nshapes = [{shape}]\n[outputs.o]\npoint = {{ body = "solid" }}')
    (solid,) = body.bodies
    return solid.mass, np.array(solid.center), np.array(solid.inertia)


def test_mass_and_inertia_of_a_capsule_are_those_of_many_thin_disks():
    r, length, density = 0.2, 0.7, 800.0
    z = np.linspace(-length / 2 - r, length / 2 + r, 200_001)
    z = (z[1:] + z[:-1]) / 2
    over = np.maximum(np.abs(z) - length / 2, 0)
    area = np.pi * (r**2 - over**2)
    dm = density * area * (z[1] - z[0])
    squared = area / np.pi
    mass, center, inertia = moments(
        f'{{ type = "capsule", radius = {r}, length = {length}, density = {density} }}'
    )
    assert mass == pytest.approx(dm.sum(), rel=1e-8)
    np.testing.assert_allclose(center, 0, atol=1e-15)
    across, along = (dm * (squared / 4 + z**2)).sum(), (dm * squared / 2).sum()
    np.testing.assert_allclose(inertia, [across, across, along, 0, 0, 0], rtol=1e-8, atol=1e-12)


def test_shapes_add_up_by_the_parallel_axis_theorem_in_turned_frames():
    # Two boxes that are the halves of one, cut across its diagonal direction.
    whole = moments('{ type = "box", size = [2, 3, 4], density = 5, rpy = [0.3, -0.4, 1.2] }')
    turn = rotation(0.3, -0.4, 1.2)
    half = 'type = "box", size = [1, 3, 4], density = 5, rpy = [0.3, -0.4, 1.2]'
    places = [(turn @ [x, 0, 0]).tolist() for x in (0.5, -0.5)]
    halves = ", ".join(f"{{ {half}, at = {at} }}" for at in places)
    mass, center, inertia = moments(halves)
    assert mass == pytest.approx(whole[0], rel=1e-14)
    np.testing.assert_allclose(center, 0, atol=1e-15)
    np.testing.assert_allclose(inertia, whole[2], rtol=1e-13)
    matrix = turn @ np.diag([120 * 25 / 12, 120 * 20 / 12, 120 * 13 / 12]) @ turn.T
    np.testing.assert_allclose(inertia[:3], np.diag(matrix), rtol=1e-13)
    np.testing.assert_allclose(inertia[3:], matrix[[0, 0, 1], [1, 2, 2]], rtol=1e-12)


def rotation(roll, pitch, yaw):
    return Rotation.from_euler("xyz", [roll, pitch, yaw]).as_matrix()


def test_ends_and_frames_say_the_same_of_a_cylinder():
    ends = [[0.1, -0.2, 0.3], [0.4, 0.5, -0.6]]
    a, b = map(np.array, ends)
    along = (b - a) / np.linalg.norm(b - a)
    mass, center, inertia = moments(
        f'{{ type = "cylinder", radius = 0.1, ends = {ends}, density = 100 }}'
    )
    length = np.linalg.norm(b - a)
    assert mass == pytest.approx(100 * np.pi * 0.01 * length, rel=1e-14)
    np.testing.assert_allclose(center, (a + b) / 2, rtol=1e-14)
    across, axial = mass * (0.03 + length**2) / 12, mass * 0.01 / 2
    matrix = across * np.eye(3) + (axial - across) * np.outer(along, along)
    np.testing.assert_allclose(inertia[:3], np.diag(matrix), rtol=1e-13)
    np.testing.assert_allclose(inertia[3:], matrix[[0, 0, 1], [1, 2, 2]], rtol=1e-12)


# What is replaced, by what, the key, and words of the rule.
INERTIA = "inertia = [1e-4, 9e-3, 9e-3, 0, 0, 0]"
WRONG = {
    "a negative mass": ("mass = 1.2", "mass = -1", "bodies.rod.mass", "at least 0"),
    "a negative moment": (INERTIA, "inertia = [1, -1, 1, 0, 0, 0]", "bodies.rod.inertia", "negati"),
    "a large product": (INERTIA, "inertia = [1, 1, 1, 2, 0, 0]", "bodies.rod.inertia", "negative"),
    "a triangle": (INERTIA, "inertia = [1, 1, 2.1, 0, 0, 0]", "bodies.rod.inertia", "exceeds"),
    "a needle": (INERTIA, "inertia = [0, 1, 2, 0, 0, 0]", "bodies.rod.inertia", "exceeds the sum"),
    "three moments": (INERTIA, "inertia = [1, 1, 1]", "bodies.rod.inertia", "xx, yy, zz, xy"),
    "a planar inertia": (INERTIA, "inertia = 0.1", "bodies.rod.inertia", "must be a list"),
    "a unit": ("mass = 1.2", 'mass = "1.2 kg"', "bodies.rod.mass", "must be a number"),
    "a unit of an angle": ('"0 deg",', '"0 grad",', "joints.shoulder.frames.1.rpy", '"30 deg"'),
    "a planar point": ("[0.15, 0, 0]", "[0.15, 0]", "bodies.rod.center", "list such as"),
    "a typing mistake": ("ends = ", "end = ", "bodies.rod.shapes.0.end", "Did you mean 'ends'"),
    "no radius": (", radius = 0.01", "", "bodies.rod.shapes.0.radius", "missing from this capsule"),
    "no shape": ('"sphere"', '"ball"', "bodies.slider.shapes.1.type", "Known: capsule"),
    "a flat box": ("[0.1, 0.1, 0.1]", "[0.1, 0.1, 0]", "bodies.slider.shapes.0.size", "above 0"),
    "an end": ("[0.3, 0, 0]], r", "[0, 0, 0]], r", "bodies.rod.shapes.0.ends", "one point"),
    "an unknown joint": ('"revolute"', '"hinge"', "joints.shoulder.type", "Unknown type"),
    "an unknown body": (
        '"ground", "rod"]\nf',
        '"ground", "rood"]\nf',
        "joints.shoulder.bodies",
        "'",
    ),
    "itself": ('["ground", "rod"]\nf', '["rod", "rod"]\nf', "joints.shoulder.bodies", "twice"),
    "a zero axis": ("axis = [0, 1, 0]", "axis = [0, 0, 0]", "joints.shoulder.axis", "no direction"),
    "one frame": ("[{ at = [0, 0, 1] }, ", "[", "joints.shoulder.frames", "one frame for each"),
    "a key of a frame": (
        "{ at = [0, 0, 1] }",
        "{ to = [0, 0, 1] }",
        "joints.shoulder.frames.0.to",
        "",
    ),
    "starts": (
        "start = [0.1, 0.2]",
        "start = [0.1]",
        "joints.guide.start",
        "guide_angle, guide_sl",
    ),
    "a turned slide": ("[0.1, 0.2]", '[0.1, "2 deg"]', "joints.guide.start", "no angle"),
    "a key of another joint": ("cut = true", "pitch = 1", "joints.tip.pitch", "Unknown key"),
    "no radius of a wheel": ("radius = 0.3\n", "", "joints.floor.radius", "missing"),
    "a ratio": ("ratio = 2", "", "couplings.gear", "a ratio or coefficients"),
    "a coordinate": (
        '"guide_angle"',
        '"guide_angel"',
        "couplings.gear.coordinates",
        "'guide_angle'",
    ),
    "a cut joint": (
        'coordinate = "guide_slide"',
        'coordinate = "tip_e0"',
        "springs.coil.coordinate",
        "Unk",
    ),
    "its own gear": (
        '"guide_angle", "shoulder"',
        '"shoulder", "shoulder"',
        "couplings.gear.coordinates",
        "twice",
    ),
    "nowhere": ('coordinate = "guide_slide"\n', "", "springs.coil", "two bodies or a coordinate"),
    "an angle": ("free = 0.5", 'free = "3 deg"', "springs.rope.free", "it is a length"),
    "no direction": ("direction = [1, 0, 0]\n", "", "forces.push.direction", "missing"),
    "a frame": ('frame = "body"', 'frame = "world"', "forces.push.frame", "Known: ground, body"),
    "a gear of zero": ("gear = 100", "gear = 0", "motors.servo.gear", "drives nothing"),
    "a drive": ("amplitude = 0.1", 'amplitude = "3 deg"', "drives.swing.amplitude", "slides"),
    "friction": ("limit = 0.2", "limit = [0.1, 0.2]", "friction.bearing.limit", "over"),
    "no output": ("point = { body", "place = { body", "outputs.hand.place", "Unknown key"),
    "an output": (
        "point = { body",
        'velocity = { body = "rod" }\npoint = { body',
        "outputs.hand",
        "Give one",
    ),
    "a body of a sensor": (
        'body = "wheel", rpy',
        'body = "weel", rpy',
        "outputs.imu.accelerometer.body",
        "'wheel'",
    ),
    "a name used twice": ("[outputs.hand]", "[outputs.rod]", "outputs.rod", "already"),
    "a column used twice": ("[motors.servo]", "[motors.wheel_x]", "motors.wheel_x", "two columns"),
    "gravity": ("[0, 0, -9.81]\n", "[0, -9.81]\n", "gravity", "list such as"),
    "an unknown of another name": (
        "gravity",
        'unknown = ["rod_mas"]\ngravity',
        "unknown",
        "'rod_mass'",
    ),
    "independent": ("gravity", 'independent = ["sholder"]\ngravity', "independent", "'shoulder'"),
}

# The change is not on the line that is named: what is missing has the line of its table.
ELSEWHERE = {
    "no radius of a wheel": "[joints.floor]",
    "a ratio": "[couplings.gear]",
    "nowhere": "[springs.coil]",
    "no direction": "[forces.push]",
    "an output": "[outputs.hand]",
    "itself": 'bodies = ["ground", "rod"]\nf',
    "an unknown body": 'bodies = ["ground", "rod"]\nf',
}


@pytest.mark.parametrize("case", WRONG)
def test_what_is_wrong_is_named_with_its_line_and_key(case, tmp_path):
    old, new, key, words = WRONG[case]
    assert GOOD.count(old) >= 1
    path = tmp_path / "machine.toml"
    path.write_text(GOOD.replace(old, new, 1))
    with pytest.raises(mbd.UserError) as caught:
        read_description(path)
    message = str(caught.value)
    assert f"{path}, line {line_of(ELSEWHERE.get(case, old))}, key '{key}'" in message
    assert words in message


def test_mass_and_density_are_one_too_many():
    with pytest.raises(mbd.UserError, match=r"key 'bodies.slider.mass'.*shapes have a density"):
        read(GOOD.replace("[bodies.wheel]", "mass = 1.0\n\n[bodies.wheel]"))


def test_meshes_must_be_there_and_are_found_beside_the_file(tmp_path):
    mesh = '{ type = "mesh", file = "hand.stl" }'
    path = tmp_path / "machine.toml"
    path.write_text(GOOD.replace('{ type = "sphere", radius = 0.02 }', mesh))
    line = line_of('{ type = "sphere"')
    with pytest.raises(mbd.UserError, match=rf"line {line}, .*shapes.1.file.*no file .*hand\.stl"):
        read_description(path)
    (tmp_path / "hand.stl").write_text("solid")
    assert read_description(path).bodies[1].shapes[1].file == str(tmp_path / "hand.stl")


def test_every_table_of_a_list_has_its_own_line(tmp_path):
    text = '[bodies.a]\n[[bodies.a.shapes]]\ntype = "sphere"\nradius = 1.0\n'
    text += '[[bodies.a.shapes]]\ntype = "sphere"\nradius = -1.0\n'
    with pytest.raises(mbd.UserError, match=r"line 7, key 'bodies\.a\.shapes\.1\.radius'"):
        read(text)


def test_a_coordinate_is_driven_once_and_follows_once():
    drive = '\n[drives.again]\njoint = "guide_slide"\nmotion = "rate"\nrate = 1\n'
    with pytest.raises(mbd.UserError, match="'guide_slide' is driven by 'swing' already"):
        read(GOOD + drive)
    gear = '\n[couplings.other]\ncoordinates = ["guide_angle", "wheel_x"]\nratio = 1\n'
    with pytest.raises(mbd.UserError, match="'guide_angle' follows by 'gear' already"):
        read(GOOD + gear)


@pytest.mark.parametrize("inertia", ["[0, 1, 1, 0, 0, 0]", "[0.0833, 0.0833, 0.1667, 0, 0, 0]"])
def test_rods_and_plates_in_four_digits_are_bodies(inertia):
    assert read(GOOD.replace(INERTIA, f"inertia = {inertia}")).bodies[0].mass == 1.2


def test_a_file_with_twenty_thousand_bodies_ends_in_a_sentence_soon(tmp_path):
    path = tmp_path / "large.toml"
    path.write_text("\n".join(f"[bodies.b{n}]\nmass = 1" for n in range(20_000)))
    began = time.perf_counter()
    with pytest.raises(mbd.UserError, match="20,000 parts; a mechanism has at most 1,000"):
        read_description(path)
    assert time.perf_counter() - began < 10.0


def outcome(text):
    try:
        read(text)
    except mbd.UserError as error:
        return "refused" if str(error).startswith("the text") else str(error)
    except tomllib.TOMLDecodeError:
        return "refused"
    return "read"


def test_every_cut_of_a_good_file_is_read_or_refused():
    random = np.random.default_rng(0)
    for length in random.integers(0, len(GOOD), 60):
        assert outcome(GOOD[:length]) in ("read", "refused")


def test_random_damage_never_ends_in_another_error():
    random = np.random.default_rng(1)
    letters = list("\"'[]{}=.,#\n 019-abxnf\\\x7f\u2028é")
    for _ in range(200):
        text = list(GOOD)
        for place in random.integers(0, len(text), 2):
            text[place] = letters[random.integers(len(letters))]
        assert outcome("".join(text)) in ("read", "refused")
