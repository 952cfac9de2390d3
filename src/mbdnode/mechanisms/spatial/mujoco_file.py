"""From MJCF to a mechanism in space, by MuJoCo's own compiler.

MuJoCo resolves defaults, frames, inertias of shapes and meshes; what is read is its compiled model.
With the pose `B` of a body in its parent at the reference configuration, a joint at `p` along `a`
with the reference `r` moves it by

    B . shift(p) . motion(a, q - r) . shift(-p),

so the joint's first frame is `B . shift(p) . motion(a, -r)`, its second `shift(p)`, and its
coordinate is MuJoCo's. Several joints on a body become a chain with bodies without mass between
them. Equalities are soft in MuJoCo; here they hold exactly: `connect` and `weld` are joints that
are cut, `joint` is a coupling.
"""

import os
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np

from mbdnode.errors import UserError
from mbdnode.mechanisms.spatial.description import (
    GROUND,
    Body,
    Coupling,
    Drive,
    Frame,
    Friction,
    Joint,
    Motor,
    Shape,
    SpatialDescription,
    Spring,
)
from mbdnode.mechanisms.spatial.imported import Imported, read_bytes
from mbdnode.mechanisms.spatial.inertia import inertia_entries
from mbdnode.mechanisms.spatial.rotations import (
    as_vector,
    is_physical,
    make_frame,
    quaternion_matrix,
)
from mbdnode.multibody.lie import rotation_about

# The groups of geoms that MuJoCo's viewer shows unless it is told otherwise.
_SHOWN_GROUPS = 3


def read_mujoco(path: str | os.PathLike[str]) -> SpatialDescription:
    """Read an MJCF file.

    **Arguments:**

    - `path`: of the file.

    **Returns:**

    A `SpatialDescription`, to be assembled near the first keyframe, or near the reference
    configuration where there is none. Raises `UserError` for what MuJoCo does not compile, and
    warns of what is not taken over, such as contacts, limits and tendons.
    """
    file = Path(path)
    read_bytes(file)
    mujoco = _mujoco()
    imported = Imported(file)
    try:
        spec = mujoco.MjSpec.from_file(os.fspath(file))
        _leave_out_pictures(mujoco, spec, imported)
        model = spec.compile()
    except (ValueError, mujoco.FatalError) as error:
        said = " ".join(str(error).split())
        raise UserError(f"{path}: MuJoCo does not compile it: {said}") from error
    description = _Reader(mujoco, spec, model, imported).description(file.stem)
    imported.warn()
    return description


def _mujoco() -> ModuleType:
    try:
        import mujoco
    except ImportError as error:
        raise UserError(
            "MJCF files are read by MuJoCo's compiler, which is not installed. Install it with "
            "`pip install 'mbdnode[robots]'`."
        ) from error
    return mujoco


def _leave_out_pictures(mujoco: Any, spec: Any, imported: Imported) -> None:
    """Textures, and meshes that are not there and give no mass, so that the rest is compiled."""
    for texture in spec.textures:
        texture.file, texture.cubefiles = "", []
        texture.builtin = mujoco.mjtBuiltin.mjBUILTIN_FLAT
        texture.width = texture.height = 1
        if texture.type != mujoco.mjtTexture.mjTEXTURE_2D:
            texture.height = 6
    for skin in list(spec.skins):
        spec.delete(skin)
    always = spec.compiler.inertiafromgeom == mujoco.mjtInertiaFromGeom.mjINERTIAFROMGEOM_TRUE
    for mesh in list(spec.meshes):
        if not mesh.file or _mesh_path(spec, mesh).is_file():
            continue
        users = [geom for geom in spec.geoms if geom.meshname == mesh.name]
        for geom in users:
            if geom.parent is not spec.worldbody and (always or not geom.parent.explicitinertial):
                raise UserError(
                    f"{imported.path}: the mesh '{mesh.file}' is not there, and the mass of body "
                    f"{geom.parent.name!r} follows from it. Bring the mesh, or write <inertial>."
                )
        for geom in users:
            spec.delete(geom)
        spec.delete(mesh)
        imported.omit("meshes that are not there")


def _mesh_path(spec: Any, mesh: Any) -> Path:
    """Where MuJoCo looks for a mesh."""
    name = Path(mesh.file).name if spec.strippath else mesh.file
    return Path(spec.modelfiledir, spec.meshdir, name)


class _Reader:
    """Reads one compiled model."""

    def __init__(self, mujoco: Any, spec: Any, model: Any, imported: Imported):
        self.mujoco, self.spec, self.model, self.imported = mujoco, spec, model, imported
        self.qpos = model.key_qpos[0] if model.nkey else model.qpos0
        self.kinds = [mujoco.mjtJoint(kind) for kind in model.jnt_type]
        # The joints with one coordinate.
        single = (mujoco.mjtJoint.mjJNT_HINGE, mujoco.mjtJoint.mjJNT_SLIDE)
        self.single = [k for k, kind in enumerate(self.kinds) if kind in single]
        # Columns have the names of joints; a body of the same name gives way.
        names = [model.joint(k).name for k in range(model.njnt)]
        named = {k: imported.name(name, "joint") for k, name in enumerate(names) if name}
        self.bodies = [GROUND]
        for k in range(1, model.nbody):
            name = model.body(k).name
            self.bodies.append(
                imported.name(name, "body") if name else imported.new_name(f"body{k}", "body")
            )
        imported.check_count(self.bodies[1:])
        self.joints = [named.get(k) or self._new_joint_name(k) for k in range(model.njnt)]

    def _new_joint_name(self, k: int) -> str:
        body = self.bodies[self.model.jnt_bodyid[k]]
        if self.kinds[k] == self.mujoco.mjtJoint.mjJNT_FREE:
            return body  # As of a body that nothing holds.
        return self.imported.new_name(f"{body}_joint", "joint")

    def is_enabled(self, what: str) -> bool:
        """Whether MuJoCo computes gravity, springs and the like."""
        return not self.model.opt.disableflags & getattr(
            self.mujoco.mjtDisableBit, f"mjDSBL_{what}"
        )

    def description(self, stem: str) -> SpatialDescription:
        bodies: list[Body] = []
        joints: list[Joint] = []
        for k in range(1, self.model.nbody):
            between, chain = self._chain(k)
            bodies += [*between, self._body(k)]
            joints += chain
        closures, couplings, drives = self._equalities()
        gravity = self.model.opt.gravity if self.is_enabled("GRAVITY") else np.zeros(3)
        description = SpatialDescription(
            self.spec.modelname if self.spec.modelname != "MuJoCo Model" else stem,
            tuple(bodies),
            (*joints, *closures),
            couplings=couplings,
            springs=self._springs(),
            motors=self._motors(),
            drives=drives,
            friction=self._friction(),
            gravity=as_vector(gravity),
        )
        self._note_omissions()
        return description

    def _body(self, k: int) -> Body:
        model = self.model
        turned = quaternion_matrix(model.body_iquat[k])
        inertia = turned @ np.diag(model.body_inertia[k]) @ turned.T
        if not is_physical(inertia):
            self.imported.note("inertias that no body has", self.bodies[k])
        return Body(
            self.bodies[k],
            float(model.body_mass[k]),
            as_vector(model.body_ipos[k]),
            inertia_entries(inertia),
            self._shapes(k),
        )

    def _chain(self, k: int) -> tuple[list[Body], list[Joint]]:
        """The joints that lead to a body, and the bodies without mass between them."""
        model, name = self.model, self.bodies[k]
        above = self.bodies[model.body_parentid[k]]
        at, turned = model.body_pos[k], quaternion_matrix(model.body_quat[k])
        numbers = range(model.body_jntadr[k], model.body_jntadr[k] + model.body_jntnum[k])
        if not numbers:
            label = self.imported.new_name(f"{name}_to_{above}", "joint")
            return [], [Joint(label, "fixed", (above, name), (make_frame(at, turned), Frame()))]
        between: list[Body] = []
        joints: list[Joint] = []
        for number in numbers:
            below = name
            if number != numbers[-1]:
                below = self.imported.new_name(f"{name}_{self.joints[number]}", "link")
                between.append(Body(below))
            joints.append(self._joint(number, (above, below), at, turned))
            above, at, turned = below, np.zeros(3), np.eye(3)
        return between, joints

    def _joint(self, k: int, bodies: tuple[str, str], at: Any, turned: Any) -> Joint:
        model, kinds = self.model, self.mujoco.mjtJoint
        kind, name, start = self.kinds[k], self.joints[k], model.jnt_qposadr[k]
        if kind == kinds.mjJNT_FREE:  # Its coordinates are the body's pose in the world.
            place = tuple(float(x) for x in self.qpos[start : start + 7])
            return Joint(name, "free", bodies, start=place)
        anchor, axis = model.jnt_pos[k], model.jnt_axis[k]
        second = make_frame(anchor)
        if kind == kinds.mjJNT_BALL:
            turn = tuple(float(x) for x in self.qpos[start : start + 4])
            first = make_frame(at + turned @ anchor, turned)
            return Joint(name, "spherical", bodies, (first, second), start=turn)
        reference = float(model.qpos0[start])
        slides = kind == kinds.mjJNT_SLIDE
        if slides:
            first = make_frame(at + turned @ (anchor - reference * axis), turned)
        else:
            first = make_frame(at + turned @ anchor, turned @ rotation_about(axis, -reference))
        return Joint(
            name,
            "prismatic" if slides else "revolute",
            bodies,
            (first, second),
            as_vector(axis),
            start=(float(self.qpos[start]),),
            armature=float(model.dof_armature[model.jnt_dofadr[k]]),
        )

    def _springs(self) -> tuple[Spring, ...]:
        model, found = self.model, []
        springs, dampers = self.is_enabled("SPRING"), self.is_enabled("DAMPER")
        for k in self.single:
            stiffness = float(model.jnt_stiffness[k]) if springs else 0.0
            damping = float(model.dof_damping[model.jnt_dofadr[k]]) if dampers else 0.0
            if stiffness or damping:
                found.append(
                    Spring(
                        self.imported.new_name(f"{self.joints[k]}_spring", "spring"),
                        coordinate=self.joints[k],
                        stiffness=stiffness,
                        damping=damping,
                        free=float(model.qpos_spring[model.jnt_qposadr[k]]) if stiffness else 0.0,
                    )
                )
        return tuple(found)

    def _friction(self) -> tuple[Friction, ...]:
        if not self.is_enabled("FRICTIONLOSS"):
            return ()
        return tuple(
            Friction(
                self.imported.new_name(f"{self.joints[k]}_friction", "friction"),
                self.joints[k],
                limit,
            )
            for k in self.single
            if (limit := float(self.model.dof_frictionloss[self.model.jnt_dofadr[k]]))
        )

    def _motors(self) -> tuple[Motor, ...]:
        """Actuators whose force on a coordinate is their control times a constant."""
        model, found = self.model, []
        if not self.is_enabled("ACTUATION"):
            self.imported.omit("actuators that are disabled", model.nactuator)
            return ()
        for k in range(model.nactuator):
            kind = self._actuator_kind(k)
            if kind:
                self.imported.omit(kind)
                continue
            number = model.actuator_trnid[k, 0]
            joint, given = self.joints[number], model.actuator(k).name
            slides = self.kinds[number] == self.mujoco.mjtJoint.mjJNT_SLIDE
            what = "force" if slides else "torque"
            name = (
                self.imported.name(given, what)
                if given
                else self.imported.new_name(f"{joint}_{what}", what)
            )
            gear = float(model.actuator_gear[k, 0])
            found.append(Motor(name, joint, float(model.actuator_gainprm[k, 0]) * gear))
        return tuple(found)

    def _actuator_kind(self, k: int) -> str:
        """What an actuator is called that is not taken over; empty for a motor."""
        model, mujoco = self.model, self.mujoco
        transmission = mujoco.mjtTrn(model.actuator_trntype[k]).name.removeprefix("mjTRN_")
        if transmission not in ("JOINT", "JOINTINPARENT"):
            kinds = {"TENDON": "tendons", "SITE": "sites", "SLIDERCRANK": "slider-cranks"}
            return f"actuators of {kinds.get(transmission, 'bodies')}"
        if model.actuator_trnid[k, 0] not in self.single:
            return "actuators of ball and free joints"
        if model.actuator_dyntype[k] != mujoco.mjtDyn.mjDYN_NONE:
            return "actuators with a state of their own"
        if model.actuator_gaintype[k] != mujoco.mjtGain.mjGAIN_FIXED:
            return "actuators whose gain varies"
        if model.actuator_biastype[k] == mujoco.mjtBias.mjBIAS_NONE:
            return ""
        if model.actuator_biastype[k] != mujoco.mjtBias.mjBIAS_AFFINE:
            return "actuators with a bias"
        return f"{'position' if model.actuator_biasprm[k, 1] else 'velocity'} actuators"

    def _equalities(self) -> tuple[tuple[Joint, ...], tuple[Coupling, ...], tuple[Drive, ...]]:
        model, kinds = self.model, self.mujoco.mjtEq
        closures: list[Joint] = []
        couplings: list[Coupling] = []
        drives: list[Drive] = []
        for k in range(model.neq):
            kind, given = kinds(model.eq_type[k]), model.equality(k).name
            word = kind.name.removeprefix("mjEQ_").lower()
            if not (model.eq_active0[k] and self.is_enabled("EQUALITY")):
                self.imported.omit("equalities that are not active")
            elif kind in (kinds.mjEQ_CONNECT, kinds.mjEQ_WELD):
                name = self._equality_name(given, f"{word}{k + 1}", "joint")
                closures.append(self._closure(k, name, kind == kinds.mjEQ_WELD))
            elif kind == kinds.mjEQ_JOINT:
                name = self._equality_name(given, f"coupling{k + 1}", "coupling")
                part = self._coupling(k, name)
                if isinstance(part, Coupling):
                    couplings.append(part)
                else:
                    drives.append(part)
            else:
                self.imported.omit(f"{word} equalities")
        return tuple(closures), tuple(couplings), tuple(drives)

    def _equality_name(self, given: str, otherwise_named: str, otherwise: str) -> str:
        if given:
            return self.imported.name(given, otherwise)
        return self.imported.new_name(otherwise_named, otherwise)

    def _closure(self, k: int, name: str, welds: bool) -> Joint:
        """Two points, or two frames, that coincide."""
        model, data = self.model, self.model.eq_data[k]
        ends = model.eq_obj1id[k], model.eq_obj2id[k]
        kind = "fixed" if welds else "spherical"
        if model.eq_objtype[k] == self.mujoco.mjtObj.mjOBJ_SITE:
            first, second = (
                make_frame(model.site_pos[end], quaternion_matrix(model.site_quat[end]))
                for end in ends
            )
            bodies = tuple(self.bodies[model.site_bodyid[end]] for end in ends)
        else:
            # Of a weld the point on the second body comes first.
            points = (data[3:6], data[:3]) if welds else (data[:3], data[3:6])
            first = make_frame(points[0], quaternion_matrix(data[6:10]) if welds else None)
            second = make_frame(points[1])
            bodies = tuple(self.bodies[end] for end in ends)
        return Joint(name, kind, (bodies[0], bodies[1]), (first, second), cut=True)

    def _coupling(self, k: int, name: str) -> Coupling | Drive:
        """`q1 - r1` as a polynomial of `q2 - r2`; the constant `q1` where there is no `q2`."""
        model = self.model
        follower, leader = (int(model.eq_obj1id[k]), int(model.eq_obj2id[k]))
        polynomial = np.polynomial.Polynomial(model.eq_data[k, :5])
        reference = model.qpos0[model.jnt_qposadr[follower]]
        if leader < 0:
            value = float(reference + polynomial(0.0))
            return Drive(name, self.joints[follower], "polynomial", coefficients=(value,))
        from_reference = np.polynomial.Polynomial([-model.qpos0[model.jnt_qposadr[leader]], 1.0])
        shifted = np.trim_zeros((polynomial(from_reference) + reference).coef, "b")
        coefficients = tuple(float(c) for c in shifted) or (0.0,)
        return Coupling(name, (self.joints[follower], self.joints[leader]), coefficients)

    def _shapes(self, k: int) -> tuple[Shape, ...]:
        model, kinds = self.model, self.mujoco.mjtGeom
        found: list[Shape] = []
        for g in range(model.body_geomadr[k], model.body_geomadr[k] + model.body_geomnum[k]):
            if model.geom_group[g] >= _SHOWN_GROUPS:
                continue
            kind = kinds(model.geom_type[g])
            a, b, c = (float(size) for size in model.geom_size[g])
            at, turned = model.geom_pos[g], quaternion_matrix(model.geom_quat[g])
            frame = make_frame(at, turned)
            if kind == kinds.mjGEOM_SPHERE:
                found.append(Shape("sphere", frame, (a,)))
            elif kind == kinds.mjGEOM_BOX:
                found.append(Shape("box", frame, (2 * a, 2 * b, 2 * c)))
            elif kind in (kinds.mjGEOM_CAPSULE, kinds.mjGEOM_CYLINDER):
                name = "capsule" if kind == kinds.mjGEOM_CAPSULE else "cylinder"
                found.append(Shape(name, frame, (a, 2 * b)))
            elif kind == kinds.mjGEOM_MESH:
                found += self._mesh(int(model.geom_dataid[g]), at, turned)
            else:
                word = kind.name.removeprefix("mjGEOM_").lower()
                self.imported.omit(f"shapes of type {word}")
        return tuple(found)

    def _mesh(self, k: int, at: Any, turned: Any) -> list[Shape]:
        """A mesh as its file has it: MuJoCo moves it to its mass center and principal axes."""
        model = self.model
        mesh = self.spec.mesh(model.mesh(k).name)
        if not mesh.file:
            self.imported.omit("meshes without a file")
            return []
        turned = turned @ quaternion_matrix(model.mesh_quat[k]).T
        frame = make_frame(at - turned @ model.mesh_pos[k], turned)
        scale = as_vector(model.mesh_scale[k])
        return [Shape("mesh", frame, scale, os.fspath(_mesh_path(self.spec, mesh)))]

    def _note_omissions(self) -> None:
        model, omit = self.model, self.imported.omit
        touching = (model.geom_contype != 0) | (model.geom_conaffinity != 0)
        if self.is_enabled("CONTACT"):
            omit("geoms that may touch", int(touching.sum()))
        if self.is_enabled("LIMIT"):
            omit("limits of joints", int(model.jnt_limited.sum()))
        omit("limits of controls", int(model.actuator_ctrllimited.sum()))
        limits = model.actuator_forcelimited.sum() + model.jnt_actfrclimited.sum()
        omit("limits of actuator forces", int(limits))
        self._note_joint_forces()
        omit("bodies with compensated gravity", int((model.body_gravcomp != 0).sum()))
        omit("bodies that are moved from outside", model.nmocap)
        omit("fluids", int(model.opt.density != 0 or model.opt.viscosity != 0))
        for kind in ("tendon", "flex", "sensor", "plugin"):
            omit(f"{kind}s" if kind != "flex" else "flexes", getattr(model, f"n{kind}"))
        omit("shapes of the ground", int(model.body_geomnum[0]))

    def _note_joint_forces(self) -> None:
        model, single = self.model, self.single
        for k in range(model.njnt):
            dof = model.jnt_dofadr[k]
            springs = {
                "springs": model.jnt_stiffness[k] or model.jnt_stiffnesspoly[k].any(),
                "dampers": model.dof_damping[dof] or model.dof_dampingpoly[dof].any(),
                "frictions": model.dof_frictionloss[dof],
                "armatures": model.dof_armature[dof],
            }
            bent = {
                "springs": model.jnt_stiffnesspoly[k].any() or model.jnt_springyield[k],
                "dampers": model.dof_dampingpoly[dof].any(),
            }
            for kind, present in (bent if k in single else springs).items():
                which = (
                    f"{kind} that are not linear"
                    if k in single
                    else f"{kind} of ball and free joints"
                )
                self.imported.omit(which, int(bool(present)))
