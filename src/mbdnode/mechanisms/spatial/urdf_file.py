"""From a URDF file to a mechanism in space: its links, joints, inertias and mimic joints.

The frame of a link is that of the joint that leads to it, so a joint's second frame is its body's.
Every number is the file's: nothing is bounded, balanced or computed from meshes, which need not be
there. A link without an inertia has no mass. Every joint that turns or slides has a motor, except
those that mimic another; without inputs they give no force.
"""

import math
import os
import xml.parsers.expat
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from mbdnode.errors import UserError
from mbdnode.mechanisms.spatial.description import (
    GROUND,
    Body,
    Coupling,
    Frame,
    Friction,
    Joint,
    Motor,
    Shape,
    SpatialDescription,
    Spring,
    Vector,
)
from mbdnode.mechanisms.spatial.imported import Imported, read_bytes
from mbdnode.mechanisms.spatial.inertia import inertia_entries
from mbdnode.mechanisms.spatial.rotations import (
    as_vector,
    is_physical,
    make_frame,
)
from mbdnode.multibody.lie import rotation_from_rpy
from mbdnode.naming import unknown_name

GRAVITY: Vector = (0.0, 0.0, -9.81)
_TYPES = {
    "revolute": "revolute",
    "continuous": "revolute",
    "prismatic": "prismatic",
    "planar": "planar",
    "floating": "free",
    "fixed": "fixed",
}
# What has no mechanics, or is told of where it stands.
_KNOWN = ("link", "joint", "material")
_MOMENTS = ("ixx", "iyy", "izz", "ixy", "ixz", "iyz")


@dataclass
class Element:
    """An element of an XML file, and the line on which it begins."""

    tag: str
    values: dict[str, str]
    line: int
    children: "list[Element]" = field(default_factory=list)

    def find(self, tag: str) -> "Element | None":
        """The first child with a tag."""
        return next((child for child in self.children if child.tag == tag), None)

    def find_all(self, tag: str) -> "list[Element]":
        """The children with a tag."""
        return [child for child in self.children if child.tag == tag]


def parse_xml(content: bytes, label: str) -> Element:
    """The root of an XML document; raises `UserError` with the line of what is none."""
    document = Element("", {}, 0)
    open_elements = [document]
    parser = xml.parsers.expat.ParserCreate()

    def begin(tag: str, values: dict[str, str]) -> None:
        element = Element(tag, values, parser.CurrentLineNumber)
        open_elements[-1].children.append(element)
        open_elements.append(element)

    parser.StartElementHandler = begin
    parser.EndElementHandler = lambda tag: open_elements.pop()
    try:
        parser.Parse(content, True)
    except xml.parsers.expat.ExpatError as error:
        raise UserError(
            f"{label} is not XML: {error}. A URDF file is XML; run xacro on a .xacro file first."
        ) from error
    return document.children[0]


def read_urdf(path: str | os.PathLike[str], *, floating: bool = False) -> SpatialDescription:
    """Read a URDF file.

    **Arguments:**

    - `path`: of the file.
    - `floating`: whether the base moves freely; it is fixed to the ground by default.

    **Returns:**

    A `SpatialDescription`. Raises `UserError` with the line of what is wrong, and warns of what is
    not taken over, such as limits and contacts.
    """
    file = Path(path)
    root = parse_xml(read_bytes(file), os.fspath(path))
    if root.tag != "robot":
        raise UserError(f"{path}, line {root.line}: <{root.tag}> is no robot. Name a URDF file.")
    return _Reader(file, root).description(floating)


class _Reader:
    """Reads one file; `imported` keeps account of names and of what is not taken over."""

    def __init__(self, path: Path, root: Element):
        self.path, self.root = path, root
        self.imported = Imported(path)
        self.links = self._named("link")
        self.joints = self._named("joint")
        self.imported.check_count(self.links)
        # Columns have the names of joints; a link of the same name gives way.
        self.joint_names = {name: self.imported.name(name, "joint") for name in self.joints}
        self.body_names = {name: self.imported.name(name, "link") for name in self.links}

    def error(self, element: Element, sentence: str) -> UserError:
        return UserError(f"{self.path}, line {element.line}: {sentence}")

    def description(self, floating: bool) -> SpatialDescription:
        base = self._base()
        bodies = tuple(self._body(name, link) for name, link in self.links.items())
        joints = tuple(self._joint(name, joint) for name, joint in self.joints.items())
        root = self.body_names[base]
        to_ground = (
            Joint(root, "free", (GROUND, root))
            if floating
            else Joint(
                self.imported.new_name(f"{base}_to_ground", "joint"), "fixed", (GROUND, root)
            )
        )
        moving = {
            name: joint
            for name, joint in self.joints.items()
            if _TYPES[joint.values["type"]] in ("revolute", "prismatic")
        }
        description = SpatialDescription(
            self.root.values.get("name") or self.path.stem,
            bodies,
            (to_ground, *joints),
            couplings=self._couplings(moving),
            springs=self._dampers(moving),
            motors=self._motors(moving),
            friction=self._friction(moving),
            gravity=GRAVITY,
        )
        self._note_omissions()
        self.imported.warn()
        return description

    def _named(self, tag: str) -> dict[str, Element]:
        found: dict[str, Element] = {}
        for element in self.root.find_all(tag):
            name = self._text(element, "name")
            if name in found:
                line = found[name].line
                raise self.error(
                    element, f"there is a {tag} {name!r} on line {line} already. Rename one."
                )
            found[name] = element
        return found

    def _base(self) -> str:
        """The link to which no joint leads."""
        parents: dict[str, str] = {}
        for name, joint in self.joints.items():
            kind = self._text(joint, "type")
            if kind not in _TYPES:
                raise self.error(joint, str(unknown_name("type of a joint", kind, _TYPES)))
            above, below = (self._link(joint, end) for end in ("parent", "child"))
            if below in parents:
                raise self.error(
                    joint, f"joint {name!r} leads to link {below!r}, which has a parent already."
                )
            parents[below] = above
        bases = [name for name in self.links if name not in parents]
        if not self.links:
            raise self.error(self.root, "it has no links. Write <link name='arm'>.")
        if len(bases) > 1:
            second = self.links[bases[1]]
            raise self.error(
                second,
                f"no joint leads to {bases[1]!r}, nor to {bases[0]!r}. Only a base has none.",
            )
        reached = set(bases)
        for name in self.links:
            way = []
            while name not in reached and name not in way:
                way.append(name)
                name = parents[name]
            if name not in reached:
                raise self.error(
                    self.links[name], f"the parents of link {name!r} lead back to it. Cut a joint."
                )
            reached.update(way)
        return bases[0]

    def _link(self, joint: Element, end: str) -> str:
        element = self._child(joint, end)
        name = self._text(element, "link")
        if name not in self.links:
            raise self.error(element, str(unknown_name("link", name, self.links)))
        return name

    def _body(self, name: str, link: Element) -> Body:
        body, shapes = self.body_names[name], self._shapes(link)
        inertial = link.find("inertial")
        if inertial is None:
            return Body(body, shapes=shapes)
        mass_element = self._child(inertial, "mass")
        mass = self._numbers(mass_element, "value", 1)[0]
        if mass < 0:
            raise self.error(mass_element, f"the mass of {name!r} is {mass:g}; it is at least 0.")
        at, turned = self._origin(inertial)
        moments = self._child(inertial, "inertia")
        xx, yy, zz, xy, xz, yz = (self._numbers(moments, key, 1)[0] for key in _MOMENTS)
        inertia = np.array([[xx, xy, xz], [xy, yy, yz], [xz, yz, zz]])
        if not is_physical(inertia):
            self.imported.note("inertias that no body has", body)
        return Body(body, mass, as_vector(at), inertia_entries(turned @ inertia @ turned.T), shapes)

    def _joint(self, name: str, joint: Element) -> Joint:
        at, turned = self._origin(joint)
        ends = tuple(self.body_names[self._link(joint, end)] for end in ("parent", "child"))
        return Joint(
            self.joint_names[name],
            _TYPES[joint.values["type"]],
            (ends[0], ends[1]),
            (make_frame(at, turned), Frame()),
            self._axis(name, joint),
        )

    def _axis(self, name: str, joint: Element) -> Vector:
        element = joint.find("axis")
        given = np.array((1.0, 0.0, 0.0) if element is None else self._numbers(element, "xyz", 3))
        size = np.linalg.norm(given)
        if size > 0:
            return as_vector(given / size)
        if _TYPES[joint.values["type"]] in ("fixed", "free"):
            return 1.0, 0.0, 0.0
        raise self.error(element or joint, f"the axis of joint {name!r} is zero. Give a direction.")

    def _couplings(self, moving: dict[str, Element]) -> tuple[Coupling, ...]:
        found: list[Coupling] = []
        for name, joint in moving.items():
            mimic = joint.find("mimic")
            if mimic is None:
                continue
            other = self._text(mimic, "joint")
            if other not in moving or other == name:
                self.imported.omit("mimics of what is no moving joint")
                continue
            slope = self._numbers(mimic, "multiplier", 1, "1")[0]
            offset = self._numbers(mimic, "offset", 1, "0")[0]
            follower, leader = self.joint_names[name], self.joint_names[other]
            label = self.imported.new_name(f"{follower}_mimic", "coupling")
            found.append(Coupling(label, (follower, leader), (offset, slope)))
        return tuple(found)

    def _dampers(self, moving: dict[str, Element]) -> tuple[Spring, ...]:
        return tuple(
            Spring(
                self.imported.new_name(f"{self.joint_names[name]}_damper", "spring"),
                coordinate=self.joint_names[name],
                damping=damping,
            )
            for name, joint in moving.items()
            if (damping := self._dynamics(joint, "damping"))
        )

    def _friction(self, moving: dict[str, Element]) -> tuple[Friction, ...]:
        return tuple(
            Friction(
                self.imported.new_name(f"{self.joint_names[name]}_friction", "friction"),
                self.joint_names[name],
                limit,
            )
            for name, joint in moving.items()
            if (limit := self._dynamics(joint, "friction"))
        )

    def _dynamics(self, joint: Element, key: str) -> float:
        element = joint.find("dynamics")
        value = 0.0 if element is None else self._numbers(element, key, 1, "0")[0]
        if element is not None and value < 0:
            raise self.error(element, f"{key} is {value:g}; it is at least 0.")
        return value

    def _motors(self, moving: dict[str, Element]) -> tuple[Motor, ...]:
        return tuple(
            Motor(self.imported.new_name(f"{self.joint_names[name]}_{what}", "motor"), coordinate)
            for name, joint in moving.items()
            if joint.find("mimic") is None
            for coordinate in (self.joint_names[name],)
            for what in ("force" if joint.values["type"] == "prismatic" else "torque",)
        )

    def _shapes(self, link: Element) -> tuple[Shape, ...]:
        """What is seen of a link; its collision shapes where it has no others."""
        found: list[Shape] = []
        for visual in link.find_all("visual") or link.find_all("collision"):
            geometry = visual.find("geometry")
            at, turned = self._origin(visual)
            for shape in geometry.children if geometry else ():
                size = self._size(shape)
                if size is None:
                    self.imported.omit(f"shapes of type {shape.tag}")
                    continue
                file = self._mesh(self._text(shape, "filename")) if shape.tag == "mesh" else ""
                found.append(Shape(shape.tag, make_frame(at, turned), size, file))
        return tuple(found)

    def _size(self, shape: Element) -> tuple[float, ...] | None:
        if shape.tag == "box":
            return self._numbers(shape, "size", 3)
        if shape.tag == "sphere":
            return self._numbers(shape, "radius", 1)
        if shape.tag in ("cylinder", "capsule"):
            return (*self._numbers(shape, "radius", 1), *self._numbers(shape, "length", 1))
        return self._numbers(shape, "scale", 3, "1 1 1") if shape.tag == "mesh" else None

    def _mesh(self, given: str) -> str:
        """The path of a mesh; as given where there is no such file."""
        scheme, _, rest = given.rpartition("://")
        above = self.path.absolute().parents
        places = [parent / rest for parent in (above if scheme == "package" else above[:1])]
        if scheme in ("package", "model"):  # The folder of a package may have another name.
            places += [parent / rest.partition("/")[2] for parent in above]
        found = next((place for place in places if place.is_file()), None)
        if found is None:
            self.imported.omit("meshes that are not there")
        return given if found is None else os.fspath(found)

    def _origin(self, element: Element) -> tuple[tuple[float, ...], Any]:
        origin = element.find("origin")
        if origin is None:
            return (0.0, 0.0, 0.0), np.eye(3)
        at = self._numbers(origin, "xyz", 3, "0 0 0")
        return at, rotation_from_rpy(*self._numbers(origin, "rpy", 3, "0 0 0"))

    def _child(self, element: Element, tag: str) -> Element:
        child = element.find(tag)
        if child is None:
            raise self.error(element, f"<{element.tag}> has no <{tag}>. Add one.")
        return child

    def _text(self, element: Element, key: str) -> str:
        value = element.values.get(key, "")
        if not value:
            raise self.error(element, f"<{element.tag}> has no {key}. Write {key}='...'.")
        return value

    def _numbers(
        self, element: Element, key: str, count: int, otherwise: str = ""
    ) -> tuple[float, ...]:
        text = element.values.get(key) or otherwise
        try:
            values = tuple(float(word) for word in text.split())
        except ValueError:
            values = ()
        if len(values) != count or not all(map(math.isfinite, values)):
            rule = "a finite number" if count == 1 else f"{count} finite numbers"
            raise self.error(element, f"{key} of <{element.tag}> is {text!r}; it must be {rule}.")
        return values

    def _note_omissions(self) -> None:
        omit = self.imported.omit
        omit(
            "limits of joints",
            sum(joint.find("limit") is not None for joint in self.joints.values()),
        )
        omit(
            "safety controllers",
            sum(joint.find("safety_controller") is not None for joint in self.joints.values()),
        )
        omit(
            "collision shapes", sum(len(link.find_all("collision")) for link in self.links.values())
        )
        for element in self.root.children:
            if element.tag not in _KNOWN:
                omit(f"<{element.tag}>")
