"""FMUs, opened and simulated by FMPy, against `simulate`, closed forms and `linearize`."""

import inspect
import shutil
import subprocess
import zipfile
from pathlib import Path

import numpy as np
import pytest
from exports.exporting import export_in

import mbdnode as mbd

fmpy = pytest.importorskip("fmpy", reason="FMPy, of the extra `test`, is not installed")
pytestmark = pytest.mark.skipif(shutil.which("cc") is None, reason="an FMU needs a C compiler")

# Constraints and an exchange of the independent coordinates; inputs and no constraints.
PENDULUM, CART = mbd.mechanisms.SinglePendulumCartesian(), mbd.mechanisms.CartPole()
MODELS = {"pendulum": PENDULUM, "cart": CART}
SPIN = {"x": 0.6, "x_dot": 4.0}  # turns over: both coordinates pass their dead points
T = 0.01 * np.arange(201)


class Follower(mbd.AbstractMechanism):
    """A mass on a ring, and one that follows it; the constraints give the latter explicitly."""

    coordinates = (mbd.length("x"), mbd.length("y"), mbd.length("s"))
    reference = {"y": -1.0}

    def mass_matrix(self, q, mu):
        return [1.0, 1.0, 0.5]

    def force(self, t, q, v, u, mu):
        return [0.0, -9.81, 0.0]

    def constraint(self, t, q, mu):
        return [q[0] ** 2 + q[1] ** 2 - 1.0, q[2] - q[0] * q[1]]


@pytest.fixture(scope="module")
def fmus(tmp_path_factory):
    folder = export_in(
        tmp_path_factory.mktemp("fmus"),
        inspect.getsource(Follower)
        + '''
from mbdnode.exports.fmu.archive import write_fmu

models = {
    "pendulum": mbd.mechanisms.SinglePendulumCartesian(),
    "cart": mbd.mechanisms.CartPole(),
}
for name, model in models.items():
    program = trace_program(model, name=name, dt_s=0.01, entries=("init", "step"))
    for version in (2, 3):
        write_fmu(program, folder / f"{name}{version}.fmu", version)
program = trace_program(models["cart"], name="cart", dt_s=0.01, entries=("init", "step"))
write_fmu(program, folder / "again.fmu", 3)


class Rubbing(mbd.AbstractMechanism):
    """A mass on a spring, with dry friction."""

    coordinates = (mbd.length("x"),)

    def mass_matrix(self, q, mu):
        return [1.0]

    def force(self, t, q, v, u, mu):
        return [-4.0 * q[0]]

    def dry_friction(self, t, q, v, u, mu):
        return [[1.0]], [0.5]


program = trace_program(Rubbing(), name="rubbing", dt_s=0.01, entries=("init", "step"))
write_fmu(program, folder / "rubbing.fmu", 3)
program = trace_program(Follower(), name="follower", dt_s=0.01, entries=("init", "step"))
write_fmu(program, folder / "follower.fmu", 3)
''',
    )
    named = {(name, version): f"{name}{version}" for name in MODELS for version in (2, 3)}
    named |= {name: name for name in ("again", "rubbing", "follower")}
    return {key: str(folder / f"{name}.fmu") for key, name in named.items()}


def simulated(path, model, **how):
    names = [*model.coordinate_names, *model.rate_names]
    run = fmpy.simulate_fmu(
        path,
        stop_time=float(T[-1]),
        output_interval=0.01,
        output=[*names, "position_residual", "velocity_residual"],
        record_events=False,
        **how,
    )
    residual = max(np.max(run["position_residual"]), np.max(run["velocity_residual"]))
    return np.array([run[name] for name in names]).T, residual


def states(run):
    return np.concatenate([np.asarray(run.q), np.asarray(run.v)], axis=1)


@pytest.fixture(scope="module")
def truth():
    return {
        integrator: states(mbd.simulate(PENDULUM, T, SPIN, integrator=integrator))
        for integrator in ("rk4", "fe1", "dopri8")
    }


@pytest.mark.parametrize("version", [2, 3])
@pytest.mark.parametrize("name", MODELS)
def test_the_validator_of_fmpy_finds_nothing(fmus, name, version):
    from fmpy.validation import validate_fmu

    assert validate_fmu(fmus[name, version]) == []


@pytest.mark.parametrize("version", [2, 3])
def test_co_simulation_is_simulate(fmus, truth, version):
    found, residual = simulated(
        fmus["pendulum", version], PENDULUM, fmi_type="CoSimulation", start_values=SPIN
    )
    # The same arithmetic in another order, over 200 steps of a motion that is not chaotic.
    np.testing.assert_allclose(found, truth["rk4"], rtol=0, atol=1e-12)
    assert residual < 1e-14


@pytest.mark.parametrize("kind", ["CoSimulation", "ModelExchange"])
def test_explicit_coordinates_stay_explicit_while_others_are_exchanged(fmus, kind):
    how = {"solver": "Euler", "step_size": 0.01} if kind == "ModelExchange" else {}
    start = {"x": 0.6, "y": -0.8, "s": -0.48, "x_dot": 4.0, "y_dot": 3.0, "s_dot": -1.4}
    found, residual = simulated(
        fmus["follower"], Follower(), fmi_type=kind, start_values=start, **how
    )
    integrator = "fe1" if how else "rk4"
    expected = states(mbd.simulate(Follower(), T, start, integrator=integrator))
    # The mass turns over, so x and y take turns, and amplify what is lost where they do.
    np.testing.assert_allclose(found, expected, rtol=0, atol=1e-11)
    assert residual < 1e-14


@pytest.mark.parametrize("version", [2, 3])
def test_the_importers_euler_steps_are_those_of_simulate(fmus, truth, version):
    found, residual = simulated(
        fmus["pendulum", version],
        PENDULUM,
        fmi_type="ModelExchange",
        solver="Euler",
        step_size=0.01,
        start_values=SPIN,
    )
    # Euler depends on the choice of coordinates, so this says that they are exchanged alike.
    np.testing.assert_allclose(found, truth["fe1"], rtol=0, atol=1e-12)
    assert residual < 1e-14


@pytest.mark.parametrize("version", [2, 3])
def test_the_importers_cvode_follows_the_motion_and_keeps_the_constraints(fmus, truth, version):
    found, residual = simulated(
        fmus["pendulum", version],
        PENDULUM,
        fmi_type="ModelExchange",
        solver="CVode",
        relative_tolerance=1e-10,
        start_values=SPIN,
    )
    # CVODE's errors add up: some hundred steps at 1e-10 of values up to ten.
    np.testing.assert_allclose(found, truth["dopri8"], rtol=0, atol=3e-6)
    assert residual < 1e-14


@pytest.mark.parametrize("version", [2, 3])
def test_inputs_are_held_over_a_step_of_co_simulation(fmus, version):
    force = np.random.default_rng(0).uniform(-3, 3, len(T))
    table = np.array(list(zip(T, force, strict=True)), dtype=[("time", float), ("u", float)])
    found, _ = simulated(
        fmus["cart", version],
        CART,
        fmi_type="CoSimulation",
        start_values={"theta": 0.3},
        input=table,
    )
    expected = states(mbd.simulate(CART, T, {"theta": 0.3}, inputs=force))
    np.testing.assert_allclose(found, expected, rtol=0, atol=1e-11)


@pytest.mark.parametrize("version", [2, 3])
def test_initialization_completes_the_state_for_other_lengths(fmus, version):
    found, residual = simulated(
        fmus["pendulum", version],
        PENDULUM,
        fmi_type="CoSimulation",
        start_values={"x": 3.0, "x_dot": 1.0, "L": 5.0},
    )
    # On a circle of radius 5: y = -4, and x x' + y y' = 0.
    np.testing.assert_allclose(found[0], [3.0, -4.0, 1.0, 0.75], rtol=1e-14)
    assert residual < 1e-13


def test_the_description_names_everything_with_units_and_start_values(fmus):
    described = fmpy.read_model_description(fmus["cart", 3])
    by_name = {one.name: one for one in described.modelVariables}
    assert by_name["u"].causality == "input"
    assert by_name["u"].unit == "N"
    assert by_name["theta_dot"].unit == "rad/s"
    assert by_name["theta"].initial == "exact"
    for parameter in CART.parameters:
        one = by_name[parameter.name]
        assert one.causality == "parameter"
        assert float(one.start) == parameter.default
        assert (one.unit or "") == parameter.unit
    states = [one.variable.derivative.name for one in described.derivatives]
    assert states == ["theta", "x", "theta_dot", "x_dot"]
    newton = next(unit for unit in described.unitDefinitions if unit.name == "N")
    base = newton.baseUnit
    assert (base.kg, base.m, base.s, base.rad) == (1, 1, -2, 0)
    # Outputs do not depend on inputs directly, so an importer sees no algebraic loop.
    references = {
        one.valueReference for one in described.modelVariables if one.causality == "input"
    }
    for output in described.outputs:
        known = {one.valueReference for one in output.dependencies}
        assert not known & references


@pytest.fixture(params=[2, 3])
def instance(request, fmus, tmp_path):
    """A function that makes an instance of an FMU, ready for Model Exchange or Co-Simulation."""
    made = []

    def make(name, kind, **start):
        path, version = fmus[name, request.param], request.param
        described = fmpy.read_model_description(path)
        folder = fmpy.extract(path, str(tmp_path / f"{name}{len(made)}"))
        given = {
            "guid": described.guid,
            "unzipDirectory": folder,
            "modelIdentifier": name,
            "instanceName": "one",
        }
        module = fmpy.fmi2 if version == 2 else fmpy.fmi3
        kinds = {"me": ("FMU2Model", "FMU3Model"), "cs": ("FMU2Slave", "FMU3Slave")}
        one = getattr(module, kinds[kind][version - 2])(**given)
        one.instantiate()
        one.names = {v.name: v.valueReference for v in described.modelVariables}
        one.read = one.getReal if version == 2 else one.getFloat64
        one.write = one.setReal if version == 2 else one.setFloat64
        one.version = version
        if version == 2:
            one.setupExperiment(startTime=0.0)
        one.write([one.names[key] for key in start], list(start.values()))
        if version == 2:
            one.enterInitializationMode()
        else:
            one.enterInitializationMode(startTime=0.0)
        one.exitInitializationMode()
        if kind == "me":
            one.newDiscreteStates() if version == 2 else one.updateDiscreteStates()
            one.enterContinuousTimeMode()
        made.append(one)
        return one

    yield make
    for one in made:
        one.terminate()
        one.freeInstance()


def jacobian(one, unknown, known):
    along = np.zeros((len(unknown), len(known)))
    for k in range(len(known)):
        seed = np.eye(len(known))[k].tolist()
        along[:, k] = one.getDirectionalDerivative(unknown, known, seed)
    return along


def test_directional_derivatives_are_the_linearization(instance):
    one = instance("cart", "me", theta=0.4, theta_dot=0.5)
    names = ["theta", "x", "theta_dot", "x_dot"]
    rates = [one.names[f"der({name})"] for name in names]
    A, B, *_ = mbd.linearize(CART, [0.4, 0.0, 0.5, 0.0], [0.0])
    here = [one.names[name] for name in names]
    np.testing.assert_allclose(jacobian(one, rates, here), A, rtol=1e-12, atol=1e-12)
    np.testing.assert_allclose(jacobian(one, rates, [one.names["u"]]), B, rtol=1e-12)


def test_directional_derivatives_go_through_the_constraints(instance):
    one = instance("pendulum", "me", x=0.6, x_dot=0.8)
    chosen = [one.names["independent[1]"], one.names["independent[2]"]]
    outputs = [one.names[name] for name in ("x", "y", "x_dot", "y_dot")]
    found = jacobian(one, outputs, chosen)
    # x = 0.6, y = -0.8 on the unit circle: dy = -x/y dx = 0.75 dx; y' = -x x'/y, whose derivative
    # along x is -x'/y + x x'/y^2 dy/dx = 0.8/0.8 + 0.6 * 0.8 * 0.75 / 0.64.
    expected = [[1, 0], [0.75, 0], [0, 1], [1.5625, 0.75]]
    np.testing.assert_allclose(found, expected, rtol=1e-13, atol=1e-14)


def step(one, start, count):
    for k in range(count):
        one.doStep(start + 0.01 * k, 0.01)
    return np.array(one.read([one.names[n] for n in ("x", "y", "x_dot", "y_dot")]))


def test_a_saved_state_goes_on_to_the_same_bits(instance):
    one, other = instance("pendulum", "cs", **SPIN), instance("pendulum", "cs")
    step(one, 0.0, 30)
    three = one.version == 3
    saved = one.getFMUState() if three else one.getFMUstate()
    data = one.serializeFMUState(saved) if three else one.serializeFMUstate(saved)
    first = step(one, 0.3, 30)
    one.setFMUState(saved) if three else one.setFMUstate(saved)
    assert np.array_equal(step(one, 0.3, 30), first)
    moved = other.deserializeFMUState(data) if three else other.deSerializeFMUstate(data)
    other.setFMUState(moved) if three else other.setFMUstate(moved)
    assert np.array_equal(step(other, 0.3, 30), first)
    for owner, state in ((one, saved), (other, moved)):
        owner.freeFMUState(state) if three else owner.freeFMUstate(state)


@pytest.mark.filterwarnings("ignore")
def test_what_cannot_be_done_is_an_error_and_changes_nothing(instance):
    one = instance("pendulum", "cs", **SPIN)
    with pytest.raises(Exception, match="rror"):
        one.write([one.names["L"]], [2.0])
    with pytest.raises(Exception, match="rror"):
        one.write([one.names["F"]], [float("nan")])
    assert one.read([one.names["L"]])[0] == 1.0


def test_the_same_model_gives_the_same_file(fmus):
    assert Path(fmus["again"]).read_bytes() == Path(fmus["cart", 3]).read_bytes()


@pytest.mark.parametrize("version", [2, 3])
@pytest.mark.parametrize("compiler", ["gcc", "clang"])
def test_the_sources_compile_without_warnings(fmus, tmp_path, version, compiler):
    if shutil.which(compiler) is None:
        pytest.skip(f"{compiler} is not installed")
    with zipfile.ZipFile(fmus["pendulum", version]) as archive:
        archive.extractall(tmp_path)
    flags = [
        "-std=c99",
        "-Wall",
        "-Wextra",
        "-Wconversion",
        "-pedantic",
        "-Werror",
        "-fsyntax-only",
    ]
    sources = sorted(str(one) for one in (tmp_path / "sources").glob("*.c"))
    done = subprocess.run([compiler, *flags, *sources], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[:3000]


def test_without_a_compiler_nothing_is_written(monkeypatch, tmp_path):
    monkeypatch.setattr(shutil, "which", lambda name: None)
    with pytest.raises(mbd.UserError, match="no C compiler"):
        mbd.export(CART, tmp_path / "cart.fmu")
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("how", "words"),
    [({"fmi": 1}, "choose 3 or 2"), ({"precision": "float32"}, "are float64")],
)
def test_what_no_fmu_has_is_refused_and_nothing_is_written(how, words, tmp_path):
    with pytest.raises(mbd.UserError, match=words):
        mbd.export(CART, tmp_path / "cart.fmu", **how)
    assert not list(tmp_path.iterdir())


def test_dry_friction_is_for_co_simulation_alone(fmus):
    from fmpy.validation import validate_fmu

    assert validate_fmu(fmus["rubbing"]) == []
    assert fmpy.read_model_description(fmus["rubbing"]).modelExchange is None
    run = fmpy.simulate_fmu(
        fmus["rubbing"], stop_time=1.6, output_interval=0.01, start_values={"x": 1.0}
    )
    # Half a period about the place where spring and friction balance, 0.5 / 4, from 1: to -0.75.
    # The turning point is at most half a step from a row: 0.875 * (2 * 0.005)^2 / 2.
    assert abs(np.min(run["x"]) + 0.75) < 5e-5


@pytest.mark.parametrize("version", [2, 3])
def test_casadi_opens_the_same_file_and_differentiates_it(fmus, tmp_path, version):
    casadi = pytest.importorskip("casadi", reason="CasADi, of the extra `bench`, is not installed")
    folder = fmpy.extract(fmus["cart", version], str(tmp_path / "cart"))
    rate = casadi.DaeBuilder("cart", str(folder)).create("rate", ["x", "u"], ["ode"])
    jacobian = rate.factory("jacobian", ["x", "u"], ["jac:ode:x", "jac:ode:u"])
    found = [np.array(block) for block in jacobian([0.4, 0.0, 0.5, 0.0], [0.0])]
    linear = mbd.linearize(CART, [0.4, 0.0, 0.5, 0.0], [0.0])
    np.testing.assert_allclose(found[0], linear.A, rtol=1e-12, atol=1e-12)
    np.testing.assert_allclose(found[1], linear.B, rtol=1e-12)


def test_fmi_library_moves_the_file_as_simulate_does(fmus, truth):
    """The importer of Modelon's, which PyFMI and libcosim are built on; it knows FMI 2.0."""
    reason = "libcosimpy, of the extra `test`, is not installed"
    execution = pytest.importorskip("libcosimpy.CosimExecution", reason=reason).CosimExecution
    from libcosimpy.CosimLogging import CosimLogLevel, log_output_level
    from libcosimpy.CosimObserver import CosimObserver
    from libcosimpy.CosimSlave import CosimLocalSlave

    log_output_level(CosimLogLevel.ERROR)
    master = execution.from_step_size(step_size=10_000_000)  # nanoseconds
    slave = CosimLocalSlave(fmu_path=fmus["pendulum", 2], instance_name="pendulum")
    number = master.add_local_slave(local_slave=slave)
    observer = CosimObserver.create_last_value()
    master.add_observer(observer=observer)
    known = {v.name.decode(): v.reference for v in master.slave_variables(slave_index=number)}
    for name, value in SPIN.items():
        master.real_initial_value(slave_index=number, variable_reference=known[name], value=value)
    wanted = [known[name] for name in (*PENDULUM.coordinate_names, *PENDULUM.rate_names)]
    rows = []
    for _ in T[1:]:
        assert master.step(step_count=1)
        rows.append(observer.last_real_values(slave_index=number, variable_references=wanted))
    np.testing.assert_allclose(rows, truth["rk4"][1:], rtol=0, atol=1e-12)


@pytest.mark.parametrize("version", [2, 3])
def test_ecos_moves_the_file_as_simulate_does(fmus, truth, version):
    try:
        import ecospy
    except (ImportError, OSError) as error:
        pytest.skip(f"Ecos, of the extra `bench`, is not installed, or has no TBB: {error}")
    names = (*PENDULUM.coordinate_names, *PENDULUM.rate_names)
    with ecospy.EcosSimulationStructure() as structure:
        structure.add_model("pendulum", fmus["pendulum", version])
        given = {f"pendulum::{name}": value for name, value in SPIN.items()}
        structure.add_parameter_set("start", given)
        with ecospy.EcosSimulation(structure=structure, step_size=0.01) as simulation:
            simulation.init(parameter_set="start")
            rows = []
            for _ in T[1:]:
                simulation.step()
                rows.append([simulation.get_real(f"pendulum::{name}") for name in names])
    np.testing.assert_allclose(rows, truth["rk4"][1:], rtol=0, atol=1e-12)
