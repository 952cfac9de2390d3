"""Machines in space beside EXUDYN, which keeps six coordinates and multipliers for every body.

Bricard's overconstrained mechanism, a flyball governor, a spatial slider-crank and a heavy top.
Each is described once; EXUDYN's bodies and joints are made from our description, placed by our
poses at the start. EXUDYN's step (generalized alpha, second order) is halved until its answer
settles: the last change, extrapolated, is how many digits it has. Ours is `dopri8`.

    make bench ONLY=exudyn_motion
"""

import exudyn
import numpy as np
from exudyn.utilities import RigidBodyInertia

import mbdnode as mbd
from benchmarks.spatial_learning import slider_crank
from mbdnode.mechanisms.spatial import SpatialMechanism
from mbdnode.mechanisms.spatial.description import (
    GROUND,
    Body,
    Frame,
    Joint,
    Output,
    SpatialDescription,
    Spring,
)
from mbdnode.mechanisms.spatial.graph import matrix_of, perpendicular, unit

# Which translations and rotations each joint holds, in a frame whose third axis is the joint's.
HELD = {
    "revolute": [1, 1, 1, 1, 1, 0],
    "prismatic": [1, 1, 0, 1, 1, 1],
    "spherical": [1, 1, 1, 0, 0, 0],
    "universal": [1, 1, 1, 0, 0, 1],
    "fixed": [1] * 6,
}


def bricard() -> tuple[SpatialMechanism, dict, float]:
    """Six hinges along the edges of a cube, one motion, five closure rows of rank four."""
    corners = np.array([(0, 0, 0), (1, 0, 0), (1, -1, 0), (1, -1, 1), (0, -1, 1), (0, 0, 1)], float)
    axes = [(0.0, 1.0, 0.0), (0.0, 0.0, 1.0), (1.0, 0.0, 0.0)] * 2
    bodies, names = [], [GROUND, *(f"rod{k}" for k in range(1, 6)), GROUND]
    for k in range(5):
        along = corners[k + 1] - corners[k]
        moments = (1.0 - along**2) / 12
        bodies.append(Body(names[k + 1], 1.0, tuple(along / 2), (*moments, 0.0, 0.0, 0.0)))
    joints = []
    for k in range(6):
        near = corners[k] - (corners[k - 1] if k else 0.0)
        far = corners[k] if k == 5 else np.zeros(3)
        frames = (Frame(tuple(near)), Frame(tuple(far)))
        joints.append(Joint(f"hinge{k}", "revolute", (names[k], names[k + 1]), frames, axes[k]))
    gravity = (0.0, -9.81, 0.0)
    return (
        SpatialMechanism(
            SpatialDescription("bricard", tuple(bodies), tuple(joints), gravity=gravity)
        ),
        {},
        1.0,
    )


def governor() -> tuple[SpatialMechanism, dict, float]:
    """A spindle that turns, two arms with balls, and a slider on springs to the arms."""
    bodies = (
        Body("spindle", 200.0, (0.0, 0.0, 0.0), (25.0, 25.0, 12.5, 0.0, 0.0, 0.0)),
        Body("right", 6.0, (0.45, 0.0, 0.0), (0.01, 0.3, 0.3, 0.0, 0.0, 0.0)),
        Body("left", 6.0, (-0.45, 0.0, 0.0), (0.01, 0.3, 0.3, 0.0, 0.0, 0.0)),
        Body("slider", 1.0, (0.0, 0.0, 0.0), (0.15, 0.15, 0.13, 0.0, 0.0, 0.0)),
    )
    top, y = Frame((0.0, 0.0, 1.0)), (0.0, 1.0, 0.0)
    joints = (
        Joint("spin", "revolute", (GROUND, "spindle")),
        Joint("right_arm", "revolute", ("spindle", "right"), (top, Frame()), y, start=(0.52,)),
        Joint("left_arm", "revolute", ("spindle", "left"), (top, Frame()), y, start=(-0.52,)),
        Joint("lift", "prismatic", ("spindle", "slider"), start=(0.5,)),
    )
    springs = tuple(
        Spring(
            f"rod_{name}", (name, "slider"), ((x, 0.0, 0.0), (0.0, 0.0, 0.0)), "", 8e3, 40.0, 0.5
        )
        for name, x in (("right", 0.5), ("left", -0.5))
    )
    outputs = (Output("height", "point", "slider"),)
    made = SpatialDescription(
        "governor", bodies, joints, springs=springs, outputs=outputs, gravity=(0.0, 0.0, -9.81)
    )
    start = {"right_arm": 0.52, "left_arm": -0.52, "lift": 0.5, "spin_dot": 6.0}
    return SpatialMechanism(made), start, 1.0


def heavy_top() -> tuple[SpatialMechanism, dict, float]:
    """On a ball joint, leaning."""
    body = Body("top", 1.5, (0.0, 0.0, 0.5), (0.3, 0.3, 0.05, 0.0, 0.0, 0.0))
    joint = Joint("pivot", "spherical", (GROUND, "top"))
    made = SpatialDescription("heavy top", (body,), (joint,), gravity=(0.0, 0.0, -9.81))
    half, spin = 0.25, 20.0
    start = {"pivot_e0": np.cos(half), "pivot_e1": np.sin(half), "pivot_e2": 0.0, "pivot_e3": 0.0}
    rates = {
        "pivot_e0_dot": 0.0,
        "pivot_e1_dot": 0.0,
        "pivot_e2_dot": -np.sin(half) * spin / 2,
        "pivot_e3_dot": np.cos(half) * spin / 2,
    }
    return SpatialMechanism(made), {**start, **rates}, 1.0


def crank() -> tuple[SpatialMechanism, dict, float]:
    """The slider-crank of `benchmarks.spatial_learning`."""
    return slider_crank(), {"crank": 0.2, "crank_dot": 6.0}, 1.0


def by_exudyn(machine: SpatialMechanism, state: mbd.State, end: float, steps: int) -> np.ndarray:
    """Where the last body's center is at the end."""
    container = exudyn.SystemContainer()
    system = container.AddSystem()
    given, layout = machine.description, machine.layout
    ground = system.CreateGround()
    items, poses = {GROUND: ground}, mbd.poses(machine, state)
    poses = {name: tuple(map(np.asarray, pose)) for name, pose in poses.items()}
    poses[GROUND] = (np.zeros(3), np.eye(3))
    tree = layout.tree
    found = tree.poses(state.q)
    origin = tree.origin(found)
    twists = tree.twists(tree.screws(state.q, found, origin), state.v)
    for body in given.bodies:
        place, turn = poses[body.name]
        node = layout.bodies[body.name].node
        spin = np.asarray(twists.angular[node])
        center = place + turn @ np.array(body.center)
        speed = np.asarray(twists.linear[node]) + np.cross(spin, center - np.asarray(origin))
        matrix = np.array(body.inertia)[np.array([[0, 3, 4], [3, 1, 5], [4, 5, 2]])]
        items[body.name] = system.CreateRigidBody(
            inertia=RigidBodyInertia(body.mass, matrix, com=[0, 0, 0], inertiaTensorAtCOM=True),
            referencePosition=center,
            referenceRotationMatrix=turn,
            initialVelocity=speed,
            initialAngularVelocity=spin,
            gravity=list(given.gravity),
            nodeType=exudyn.NodeType.RotationEulerParameters,
        )
    centers = {GROUND: np.zeros(3), **{b.name: np.array(b.center) for b in given.bodies}}
    for joint in given.joints:
        first, second = joint.bodies
        place, turn = poses[first]
        own, at = matrix_of(joint.frames[0])
        far, _ = matrix_of(joint.frames[1])
        axis = unit(joint.axis)
        axes = np.stack([*perpendicular(axis), axis], axis=1)
        world = turn @ own @ axes
        if joint.type == "universal":
            other = poses[second][1] @ far @ unit(joint.second_axis)
            along = turn @ own @ axis
            world = np.stack([along, other, np.cross(along, other)], axis=1)
        system.CreateGenericJoint(
            itemNumbers=[items[first], items[second]],
            position=place + turn @ at,
            rotationMatrixAxes=world,
            constrainedAxes=HELD[joint.type],
            useGlobalFrame=True,
            show=False,
        )
    for spring in given.springs:
        points = [
            list(np.array(point) - centers[body])
            for body, point in zip(spring.bodies, spring.points, strict=True)
        ]
        system.CreateSpringDamper(
            itemNumbers=[items[body] for body in spring.bodies],
            localPosition0=points[0],
            localPosition1=points[1],
            referenceLength=spring.free,
            stiffness=spring.stiffness,
            damping=spring.damping,
        )
    system.Assemble()
    settings = exudyn.SimulationSettings()
    settings.timeIntegration.endTime = end
    settings.timeIntegration.numberOfSteps = steps
    settings.timeIntegration.newton.relativeTolerance = 1e-12
    settings.timeIntegration.newton.absoluteTolerance = 1e-13
    settings.timeIntegration.generalizedAlpha.spectralRadius = 1.0
    settings.timeIntegration.generalizedAlpha.computeInitialAccelerations = True
    settings.timeIntegration.verboseMode = 0
    settings.solution.file.write = False
    settings.linearSolver.solverType = exudyn.LinearSolverType.EigenDense
    settings.linearSolver.ignoreSingularJacobian = True
    system.SolveDynamic(settings)
    last = given.bodies[-1].name
    return np.array(system.GetObjectOutputBody(items[last], exudyn.OutputVariableType.Position))


def main() -> None:
    """One row a machine."""
    print("machine | ours - EXUDYN [m] | EXUDYN's own digits [m] | residual | energy drift [J]")
    for make in (bricard, governor, crank, heavy_top):
        machine, known, end = make()
        state = mbd.consistent_state(machine, known)
        run = mbd.simulate(machine, np.linspace(0.0, end, 1_001), state, integrator="dopri8")
        last = machine.description.bodies[-1]
        place, turn = (np.asarray(x)[-1] for x in mbd.poses(machine, run)[last.name])
        ours = place + turn @ np.array(last.center)
        answers = [by_exudyn(machine, state, end, steps) for steps in (4_000, 8_000, 16_000)]
        # Of second order: a third of the last change is left, and what is beyond is its own error.
        best = answers[2] + (answers[2] - answers[1]) / 3
        before = answers[1] + (answers[1] - answers[0]) / 3
        energy = np.asarray(mbd.energy(machine, run))
        drift = f"{np.max(np.abs(energy - energy[0])):.0e}" if machine.conservative else "-"
        print(
            f"{machine.description.name} | {np.max(np.abs(ours - best)):.1e} | "
            f"{np.max(np.abs(best - before)):.1e} | "
            f"{float(np.max(run.position_residual)):.0e} | {drift}",
            flush=True,
        )


if __name__ == "__main__":
    main()
