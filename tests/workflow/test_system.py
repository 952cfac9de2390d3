"""What a user may name as the machine."""

from dataclasses import replace

import numpy as np
import pytest

import mbdnode as mbd
from mbdnode.data.logs import Columns
from mbdnode.multibody import RecordedSystem, recorded_from
from mbdnode.trajectory import Dataset
from mbdnode.workflow.config import FitConfig
from mbdnode.workflow.fit import read_and_check
from mbdnode.workflow.systems import find_system, recorded_system, used_parameters

SOURCE = """
import mbdnode as mbd

class Mine(mbd.AbstractMechanism):
    coordinates = (mbd.length("x"),)
    def mass_matrix(self, q, mu):
        return [1.0]
    def force(self, t, q, v, u, mu):
        return [-q[0]]

made = Mine()
number = 3
"""

ROD = """
[bodies.rod]
center = [0.5, 0.0]
mass = 1.0
inertia = 0.1
[joints.pin]
type = "revolute"
bodies = ["ground", "rod"]
points = [[0.0, 0.0], [-0.5, 0.0]]
"""


def test_name_of_the_catalog_is_found():
    assert type(find_system("slider-crank")).__name__ == "SliderCrank"


def test_file_is_read(tmp_path):
    (tmp_path / "m.toml").write_text(ROD)
    assert find_system(str(tmp_path / "m.toml")).coordinate_names[0] == "rod_x"


@pytest.mark.parametrize("attribute", ["Mine", "made"])
def test_class_or_instance_of_the_users_own_is_found(attribute, tmp_path, monkeypatch):
    (tmp_path / f"my_{attribute.lower()}_rig.py").write_text(SOURCE)
    monkeypatch.chdir(tmp_path)
    assert find_system(f"my_{attribute.lower()}_rig:{attribute}").coordinate_names == ("x",)


@pytest.mark.parametrize(
    ("name", "says"),
    [
        ("slider", "catalog"),
        ("no_such_module_here:Rig", "cannot be imported"),
        ("json:loader", "has no 'loader'"),
        ("json:dumps", "must be a mechanism"),
        ("nowhere/m.toml", "m.toml"),
    ],
)
def test_what_is_no_machine_is_refused(name, says):
    with pytest.raises(ValueError, match=says):
        find_system(name)


def test_log_alone_gives_names_angles_inputs_and_parameters():
    cart = mbd.mechanisms.CartPole()
    run = mbd.simulate(cart, np.linspace(0.0, 0.1, 5), {"theta": 0.1})
    system = recorded_system(Dataset(run, {"m": 2.0}))
    assert [c.is_angle for c in system.coordinates] == [True, False]
    assert system.input_names == ("u",)
    assert system.parameters[0].default == 2.0
    assert recorded_from(system.to_dict()) == system


def test_log_alone_gives_the_units_of_what_it_records(tmp_path):
    t = np.arange(40) * 0.02
    table = np.column_stack([t, 10 * np.sin(t), np.sin(t), np.cos(t), np.full(40, 2.5)])
    path = tmp_path / "run.csv"
    heading = "t [s],x [mm],angle [deg],F [N],m [kg]"
    np.savetxt(path, table, delimiter=",", header=heading, comments="")
    roles = {"coordinates": ["x", "angle"], "inputs": ["F"], "parameters": ["m"]}
    data = mbd.read(path, time="t", **roles)
    system = recorded_system(data, data.summary.angles)
    assert [(c.unit, c.is_angle) for c in system.coordinates] == [("m", False), ("rad", True)]
    assert [i.unit for i in system.inputs] == ["N"]
    assert [p.unit for p in system.parameters] == ["kg"]
    assert recorded_from(system.to_dict()) == system
    # Of windows, which have no summary, they are given.
    bare = Dataset(data.trajectories, data.parameters)
    assert recorded_system(bare, data.summary.angles, data.summary.units) == system


def test_recorded_system_has_no_motion_of_its_own():
    system = RecordedSystem(coordinates=(mbd.length("x"),))
    with pytest.raises(ValueError, match="no motion of its own"):
        mbd.simulate(system, np.linspace(0.0, 1.0, 5), {"x": 1.0})


@pytest.mark.parametrize("data", [None, {}, {"coordinates": 3}, {"coordinates": [["x"]]}])
def test_damaged_description_is_refused(data):
    with pytest.raises(ValueError, match="does not describe"):
        recorded_from(data)


def test_unit_of_a_column_says_that_it_is_an_angle(tmp_path):
    # By its name none of them would be known: two angles, and a length that is called like one.
    t = np.arange(60) * 0.01
    table = np.stack([t, 10 * np.sin(t), np.cos(t), np.sin(2 * t)], axis=1)
    header = "t [s],shoulder [deg],arm [rad],pitch [mm]"
    np.savetxt(tmp_path / "run.csv", table, delimiter=",", header=header, comments="")
    columns = Columns("t", ["shoulder", "arm", "pitch"])
    prepared = read_and_check(FitConfig((str(tmp_path / "run.csv"),), columns))
    assert [c.is_angle for c in prepared.system.coordinates] == [True, True, False]
    said = FitConfig((str(tmp_path / "run.csv"),), replace(columns, angles=["pitch"]))
    assert [c.is_angle for c in read_and_check(said).system.coordinates] == [False, False, True]


def test_parameters_of_nonholonomic_constraints_are_used_by_mechanism_and_network():
    car = mbd.mechanisms.Vehicle()
    assert "l" in used_parameters(car)
    assert set(used_parameters(car)) == set(car.parameter_names)
    network = mbd.MBDNODE.for_system(car, width=4, use_parameters=("R",))
    assert used_parameters(network) == ("R", "l")
