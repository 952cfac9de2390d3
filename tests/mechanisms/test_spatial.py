"""Trees and loops in space, against other derivations of the same motions."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import scipy.integrate
from spatial_machines import four_bar, heavy_top, spatial_slider_crank

import mbdnode as mbd
from mbdnode.mechanisms.spatial import SpatialMechanism
from mbdnode.mechanisms.spatial.description import (
    GROUND,
    Body,
    Coupling,
    Drive,
    Frame,
    Joint,
    Load,
    Motor,
    Output,
    SpatialDescription,
    Spring,
)
from mbdnode.multibody.lie import quaternion_from_matrix, rotation_from_rpy

Y = (0.0, 1.0, 0.0)


def rates_of(e, omega):
    """The derivatives of Euler parameters at an angular velocity in body axes."""
    e0, x, y, z = e
    matrix = np.array([[-x, -y, -z], [e0, -z, y], [z, e0, -x], [-y, x, e0]])
    return matrix @ np.asarray(omega) / 2


@pytest.mark.slow
def test_heavy_top_moves_as_eulers_equations_say():
    top = heavy_top()
    e = np.array([np.cos(0.25), np.sin(0.25), 0.0, 0.0])
    omega = np.array([0.4, -0.3, 12.0])
    start = mbd.State(jnp.array(e), jnp.array(rates_of(e, omega)))
    t = np.linspace(0.0, 2.0, 1_001)
    run = mbd.simulate(top, t, start, integrator="dopri8")
    arm, mass = np.array([0.0, 0.0, 0.5]), 1.5
    inertia = np.diag([0.3, 0.3, 0.05]) + mass * (arm @ arm * np.eye(3) - np.outer(arm, arm))

    def slope(_, y):
        e, omega = y[:4], y[4:]
        e0, v = e[0], e[1:]
        down = np.array([0.0, 0.0, -9.81 * mass])
        # R^T down, by the rotation of a vector with the conjugate.
        weight = down + 2 * np.cross(-v, np.cross(-v, down) + e0 * down)
        change = np.linalg.solve(inertia, np.cross(arm, weight) - np.cross(omega, inertia @ omega))
        return np.concatenate([rates_of(e, omega), change])

    truth = scipy.integrate.solve_ivp(
        slope, (0.0, 2.0), [*e, *omega], method="DOP853", t_eval=t, rtol=1e-12, atol=1e-13
    )
    np.testing.assert_allclose(run.q, truth.y[:4].T, atol=1e-8)
    seen = mbd.outputs(top, run)
    spin = np.stack([seen[f"spin_{axis}"] for axis in "xyz"], axis=1)
    np.testing.assert_allclose(spin, truth.y[4:].T, atol=2e-7)
    assert float(jnp.max(run.position_residual)) < 1e-13
    assert float(jnp.max(run.velocity_residual)) < 1e-12


@pytest.mark.slow
def test_a_planar_loop_in_space_moves_as_in_the_plane():
    """Against the four hinges as a planar file; in x and z of space, y is the axis."""
    bars = {"crank": (1.0, -0.5), "rod": (2.0, -0.2), "rocker": (1.5, -1.6)}
    text = "gravity = [0, -9.81]\n"
    for name, (size, angle) in bars.items():
        text += f"[bodies.{name}]\ncenter = [{size / 2}, 0.5]\nangle = {angle}\n"
        text += "mass = 1.0\ninertia = 0.1\n"
    hinges = {
        "a": ("ground", "crank", 0.0, -0.5),
        "b": ("crank", "rod", 0.5, -1.0),
        "c": ("ground", "rocker", 2.0, -0.75),
        "d": ("rod", "rocker", 1.0, 0.75),
    }
    for name, (first, second, x, x2) in hinges.items():
        text += f'[joints.{name}]\ntype = "revolute"\nbodies = ["{first}", "{second}"]\n'
        text += f"points = [[{x}, 0], [{x2}, 0]]\n"
    from mbdnode.mechanisms import from_text

    space, plane = four_bar(), from_text(text)
    t = np.linspace(0.0, 1.5, 301)
    start = mbd.consistent_state(space, {"a": 0.5})
    run = mbd.simulate(space, t, start, integrator="dopri8")
    # A turn about y takes x towards -z.
    a, b, c = (float(start.q[space.coordinate_names.index(n)]) for n in "abc")
    near = {"crank_angle": -a, "rod_angle": -(a + b), "rocker_angle": -c}
    place = {}
    for name, angle, at in (
        ("crank", -a, np.zeros(2)),
        ("rod", -(a + b), np.array([np.cos(-a), np.sin(-a)])),
        ("rocker", -c, np.array([2.0, 0.0])),
    ):
        center = at + bars[name][0] / 2 * np.array([np.cos(angle), np.sin(angle)])
        place |= {f"{name}_x": center[0], f"{name}_y": center[1], f"{name}_angle": angle}
    twin = mbd.simulate(
        plane,
        t,
        mbd.consistent_state(plane, {"crank_angle": -a}, guess={**near, **place}),
        integrator="dopri8",
    )
    np.testing.assert_allclose(run["a"], -np.asarray(twin["crank_angle"]), atol=1e-7)
    np.testing.assert_allclose(run["c"], -np.asarray(twin["rocker_angle"]), atol=1e-7)
    assert float(jnp.max(run.position_residual)) < 1e-12


def test_a_spatial_loop_keeps_its_energy_and_its_constraints():
    machine = spatial_slider_crank()
    t = np.linspace(0.0, 1.0, 501)
    run = mbd.simulate(machine, t, {"crank": 0.2, "crank_dot": 6.0}, integrator="dopri8")
    assert str(run.status).startswith("completed")
    assert float(jnp.max(run.position_residual)) < 1e-12
    assert float(jnp.max(run.velocity_residual)) < 1e-11
    energy = np.asarray(mbd.energy(machine, run))
    np.testing.assert_allclose(energy, energy[0], atol=1e-7)
    place, turn = mbd.poses(machine, run)["rod"]
    np.testing.assert_allclose(
        turn @ np.swapaxes(turn, 1, 2), np.tile(np.eye(3), (501, 1, 1)), atol=1e-12
    )
    tip = np.asarray(place) + 0.3 * np.asarray(turn)[:, :, 0]
    np.testing.assert_allclose(tip[:, 0], run["slide"], atol=1e-12)
    # The rod's length, from the crank pin to the slider, by the joints alone.
    pin = np.stack(
        [0 * t, 0.1 - 0.08 * np.sin(run["crank"]), 0.12 + 0.08 * np.cos(run["crank"])], axis=1
    )
    slider = np.stack([np.asarray(run["slide"]), 0 * t, 0 * t], axis=1)
    np.testing.assert_allclose(np.linalg.norm(slider - pin, axis=1), 0.3, atol=1e-12)


def chain(seed: int) -> SpatialMechanism:
    """A branched tree with a joint of every kind, bodies and frames at random."""
    rng = np.random.default_rng(seed)
    vector = lambda size=0.3: tuple(map(float, rng.uniform(-size, size, 3)))  # noqa: E731
    kinds = ["free", "cylindrical", "universal", "planar", "spherical", "screw", "prismatic"]
    parents = [GROUND, "b0", "b1", "b0", "b3", "b4", "b2"]
    bodies, joints = [], []
    for k, (kind, parent) in enumerate(zip(kinds, parents, strict=True)):
        root = rng.normal(size=(3, 3)) * 0.1
        full = root @ root.T
        full = np.trace(full) * np.eye(3) - full
        six = tuple(full[[0, 1, 2, 0, 0, 1], [0, 1, 2, 1, 2, 2]])
        bodies.append(Body(f"b{k}", float(rng.uniform(0.5, 2)), vector(), six))
        frames = (Frame(vector(), vector(1.0)), Frame(vector(), vector(1.0)))
        pair = (parent, f"b{k}") if k % 2 else (f"b{k}", parent)
        axis = tuple(map(float, rng.normal(size=3)))
        joints.append(Joint(f"j{k}", kind, pair, frames, axis, (0.2, 1.0, -0.4), pitch=0.07))
    return SpatialMechanism(
        SpatialDescription("tree", tuple(bodies), tuple(joints), gravity=(0.3, -0.2, -9.0))
    )


@pytest.mark.parametrize("seed", range(2))
def test_masses_and_forces_of_a_tree_are_those_of_its_kinetic_energy(seed):
    """Against Lagrange's equations of energies that are sums over bodies, by autodiff of poses."""
    tree = chain(seed)
    rng = np.random.default_rng(seed + 10)
    q, v = (jnp.asarray(rng.normal(size=len(tree.coordinates))) for _ in range(2))
    for places in tree.layout.balls:
        q = q.at[places].set(q[places] / jnp.linalg.norm(q[places]))
        v = v.at[places].add(-q[places] * (q[places] @ v[places]))
    mu = {p.name: jnp.asarray(p.default) for p in tree.parameters}
    given = tree.description.bodies
    mass = np.array([b.mass for b in given])
    center = np.array([b.center for b in given])
    inertia = np.array([np.array(b.inertia)[[[0, 3, 4], [3, 1, 5], [4, 5, 2]]] for b in given])

    def kinetic(q, v):
        at = lambda x: (  # noqa: E731
            lambda place, turn: (place + jnp.einsum("bij,bj->bi", turn, center), turn)
        )(*tree.body_poses(x))
        (_, turn), (speed, change) = jax.jvp(at, (q,), (v,))
        # R^T R' is the cross matrix of the angular velocity in body axes.
        spin = jnp.einsum("bji,bjk->bik", turn, change)
        omega = jnp.stack([spin[:, 2, 1], spin[:, 0, 2], spin[:, 1, 0]], axis=1)
        turning = jnp.einsum("bi,bij,bj", omega, inertia, omega)
        return 0.5 * jnp.sum(mass * jnp.sum(speed**2, axis=1)) + 0.5 * turning

    def potential(q):
        place, turn = tree.body_poses(q)
        at = place + jnp.einsum("bij,bj->bi", turn, center)
        return -jnp.sum(mass * (at @ jnp.array([0.3, -0.2, -9.0])))

    truth = jax.hessian(kinetic, argnums=1)(q, v)
    np.testing.assert_allclose(tree.mass_matrix(q, mu), truth, atol=1e-12)
    momentum = lambda x: jax.grad(kinetic, argnums=1)(x, v)  # noqa: E731
    change = jax.jvp(momentum, (q,), (v,))[1]
    force = jax.grad(kinetic)(q, v) - jax.grad(potential)(q) - change
    found = tree.force(jnp.zeros(()), q, v, jnp.zeros(0), mu)
    # Along |e| nothing moves: of a ball only what is across its parameters counts.
    across = np.eye(len(q))
    for places in tree.layout.balls:
        e = np.asarray(q[places])
        across[np.ix_(places, places)] -= np.outer(e, e)
    np.testing.assert_allclose(across @ found, across @ force, atol=1e-10)
    np.testing.assert_allclose(tree.potential_energy(q, mu), potential(q), rtol=1e-13)


def test_poses_are_products_of_the_joints_transformations():
    """Of a cylindrical joint between turned frames, in either direction."""
    near, far = Frame((0.1, 0.2, 0.3), (0.4, 0.5, 0.6)), Frame((-0.2, 0.1, 0.0), (1.0, -0.3, 0.2))
    for bodies in ((GROUND, "body"), ("body", GROUND)):
        joint = Joint("j", "cylindrical", bodies, (near, far))
        body = Body("body", 1.0, inertia=(1.0, 1.0, 1.0, 0.0, 0.0, 0.0))
        machine = SpatialMechanism(SpatialDescription("one", (body,), (joint,)))
        known = {"j_angle": 0.7, "j_slide": 0.3}
        state = mbd.consistent_state(machine, known)
        place, turn = mbd.poses(machine, state)["body"]

        def matrix(frame):
            full = np.eye(4)
            full[:3, :3], full[:3, 3] = rotation_from_rpy(*frame.rpy), frame.at
            return full

        motion = np.eye(4)
        motion[:3, :3] = rotation_from_rpy(0.0, 0.0, 0.7)
        motion[2, 3] = 0.3
        truth = matrix(near) @ motion @ np.linalg.inv(matrix(far))
        truth = truth if bodies[0] == GROUND else np.linalg.inv(truth)
        np.testing.assert_allclose(turn, truth[:3, :3], atol=1e-14)
        np.testing.assert_allclose(place, truth[:3, 3], atol=1e-14)


def test_inverse_dynamics_gives_back_the_torques_of_a_motion():
    tree = chain(3)
    state = mbd.consistent_state(tree, {"j1_angle_dot": 0.4, "j2_1_dot": -0.3})
    a = mbd.accelerations(tree, state)
    np.testing.assert_allclose(mbd.inverse_dynamics(tree, state, a), 0.0, atol=1e-9)
    machine = spatial_slider_crank()
    state = mbd.consistent_state(machine, {"crank": 0.2, "crank_dot": 6.0})
    a = mbd.accelerations(machine, state, inputs={"torque": 1.7})
    found = mbd.inverse_dynamics(machine, state, a, at="crank")
    np.testing.assert_allclose(found, [1.7], atol=1e-10)


def test_couplings_drives_springs_and_loads_act_as_they_say():
    """Two hinges geared one to two, one of them on a spring, against one equation."""
    inertia = (0.1, 0.1, 0.1, 0.0, 0.0, 0.0)
    bodies = (Body("one", 1.0, inertia=inertia), Body("two", 1.0, inertia=inertia))
    joints = (
        Joint("p", "revolute", (GROUND, "one")),
        Joint("q", "revolute", (GROUND, "two"), armature=0.05),
    )
    machine = SpatialMechanism(
        SpatialDescription(
            "gears",
            bodies,
            joints,
            couplings=(Coupling("gear", ("q", "p"), (0.0, -2.0)),),
            springs=(Spring("coil", coordinate="p", stiffness=3.0, damping=0.2, free=0.1),),
            loads=(Load("twist", "torque", "two", (0.0, 0.0, 1.0), value=0.3),),
            motors=(Motor("motor", "p", gear=5.0, rotor_inertia=1e-3),),
        )
    )
    state = mbd.consistent_state(machine, {"p": 0.6, "p_dot": 0.4})
    a = mbd.accelerations(machine, state, inputs={"motor": 0.7})
    # By virtual work along p, with q = -2 p.
    mass = 0.1 + 25e-3 + 4 * (0.1 + 0.05)
    force = 5 * 0.7 - 3.0 * (0.6 - 0.1) - 0.2 * 0.4 - 2 * 0.3
    np.testing.assert_allclose(a, [force / mass, -2 * force / mass], rtol=1e-13)
    driven = SpatialMechanism(
        SpatialDescription(
            "driven", bodies[:1], joints[:1], drives=(Drive("d", "p", "rate", rate=2.0),)
        )
    )
    run = mbd.simulate(driven, np.linspace(0.0, 1.0, 11), {})
    np.testing.assert_allclose(run["p"], 2.0 * np.asarray(run.t), atol=1e-14)


def test_a_spring_between_points_and_a_body_force_do_the_work_that_they_take():
    """The power of all forces is the rate of the kinetic energy, at a random state."""
    body = Body("body", 2.0, (0.1, 0.0, 0.05), (0.2, 0.3, 0.4, 0.01, 0.0, 0.02))
    ends = ((0.0, 1.0, 0.0), (0.3, 0.0, 0.1))
    machine = SpatialMechanism(
        SpatialDescription(
            "flying",
            (body,),
            springs=(Spring("pull", (GROUND, "body"), ends, stiffness=40.0, free=0.5),),
            loads=(Load("push", "force", "body", (0.0, 1.0, 0.0), (0.2, 0.0, 0.0), "body", 3.0),),
            outputs=(Output("tip", "velocity", "body", Frame((0.2, 0.0, 0.0))),),
            gravity=(0.0, 0.0, -9.81),
        )
    )
    e = quaternion_from_matrix(rotation_from_rpy(0.3, -0.5, 0.8))
    q = np.concatenate([[0.2, -0.1, 0.4], e])
    v = np.concatenate([[0.5, 0.3, -0.2], rates_of(e, [0.6, -0.9, 0.4])])
    state = mbd.State(jnp.asarray(q), jnp.asarray(v))
    a = np.asarray(mbd.accelerations(machine, state))
    mass = lambda x: np.asarray(mbd.mass_matrix(machine, mbd.State(x, state.v)))  # noqa: E731
    h = 1e-5
    changing = (mass(state.q + h * state.v) - mass(state.q - h * state.v)) / (2 * h)
    power = v @ mass(state.q) @ a + 0.5 * v @ changing @ v
    potential = lambda x: float(machine.potential_energy(x, resolve(machine)))  # noqa: E731
    falling = -(potential(state.q + h * state.v) - potential(state.q - h * state.v)) / (2 * h)
    _, turn = mbd.poses(machine, state)["body"]
    seen = mbd.outputs(machine, state)
    tip = np.array([seen[f"tip_{axis}"] for axis in "xyz"])
    pushed = 3.0 * np.asarray(turn)[:, 1] @ tip
    np.testing.assert_allclose(power, falling + pushed, rtol=1e-7)


def resolve(machine):
    return {p.name: jnp.asarray(p.default) for p in machine.parameters}


def test_a_rolling_ball_and_disk_do_not_slip_over_thousands_of_steps():
    """A disk that rolls and leans: contact at rest, energy kept, residuals at round-off."""
    body = Body("disk", 1.0, inertia=(0.02, 0.04, 0.02, 0.0, 0.0, 0.0))
    wheel = Joint("contact", "rolling", (GROUND, "disk"), axis=Y, radius=0.3)
    machine = SpatialMechanism(
        SpatialDescription("disk", (body,), (wheel,), gravity=(0.0, 0.0, -9.81))
    )
    e = quaternion_from_matrix(rotation_from_rpy(0.2, 0.0, 0.0))
    known = dict(zip(("disk_e0", "disk_e1", "disk_e2", "disk_e3"), map(float, e), strict=True))
    spin = rates_of(e, [0.0, 6.0, 0.5])
    known |= {f"disk_e{k}_dot": float(spin[k]) for k in range(4)}
    t = np.linspace(0.0, 2.0, 2_001)
    run = mbd.simulate(machine, t, {**known, "disk_x": 0.0, "disk_y": 0.0})
    assert str(run.status).startswith("completed")
    assert float(jnp.max(run.position_residual)) < 1e-12
    assert float(jnp.max(run.velocity_residual)) < 1e-12
    energy = np.asarray(mbd.energy(machine, run))
    np.testing.assert_allclose(energy, energy[0], rtol=1e-7)


def test_inputs_are_forces_then_torques_then_motors_however_they_are_given():
    body = Body("body", 1.0, inertia=(1.0, 1.0, 1.0, 0.0, 0.0, 0.0))
    x = (1.0, 0.0, 0.0)
    loads = (Load("twist", "torque", "body", x), Load("push", "force", "body", x))
    hinge = Joint("hinge", "revolute", (GROUND, "body"))
    given = SpatialDescription("one", (body,), (hinge,), loads=loads, motors=(Motor("m", "hinge"),))
    machine = SpatialMechanism(given)
    assert machine.input_names == ("push", "twist", "m")
    assert (
        mbd.mechanisms.from_dict(machine.to_dict(), name="one").input_names == machine.input_names
    )
