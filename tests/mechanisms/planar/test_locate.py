"""The line of a key, in every way that TOML has to write one."""

from mbdnode.mechanisms.toml_files.key_lines import find_line, key_lines

TEXT = '''\
name = "a [b] = c"  # bodies.x = 1
long = """
[bodies.fake]
mass = 1
"""
bodies.dotted.mass = 3
list = [
  # x = 1
  [1, 2],
]

[bodies.plain]
mass = 1.0
center = [0, 0]
[joints]
pin = { type = "revolute", points = [[0, 0], [1, 1]] }
'quoted key'.x = 1
[bodies . "spaced"]
  mass = 2
'''


def test_every_key_has_the_line_on_which_it_begins():
    lines = key_lines(TEXT)
    expected = {
        ("name",): 1,
        ("long",): 2,
        ("bodies", "dotted", "mass"): 6,
        ("list",): 7,
        ("bodies", "plain"): 12,
        ("bodies", "plain", "mass"): 13,
        ("bodies", "plain", "center"): 14,
        ("joints",): 15,
        ("joints", "pin", "type"): 16,
        ("joints", "pin", "points"): 16,
        ("joints", "quoted key", "x"): 17,
        ("bodies", "spaced", "mass"): 19,
    }
    assert {path: lines.get(path) for path in expected} == expected
    assert ("bodies", "fake") not in lines
    assert ("bodies", "x") not in lines


def test_a_key_that_is_missing_has_the_line_of_its_table():
    lines = key_lines(TEXT)
    assert find_line(lines, ("bodies", "plain", "inertia")) == 12
    assert find_line(lines, ("joints", "pin", "bodies")) == 16
    assert find_line(lines, ("nothing",)) is None


def test_a_file_made_to_be_slow_is_left_before_its_end():
    text = "first = 1\nlist = [\n" + "1,\n" * 20_000 + "]\nlast = 2\n"
    lines = key_lines(text)
    assert lines[("first",)] == 1
    assert ("last",) not in lines
