"""What MuJoCo says of a model's file at a state, in the coordinates that ours has.

MuJoCo's velocities of a free body are those of its origin in the world and of its rotation in its
own axes; ours are derivatives of coordinates. `N` in `q' = N v` takes one to the other.
"""

from dataclasses import dataclass

import mujoco
import numpy as np

from mbdnode.mechanisms.spatial import SpatialMechanism


def half_rates(e):
    """`e' = half_rates(e) omega` of Euler parameters, with `omega` in the body's axes."""
    w, x, y, z = e
    return np.array([[-x, -y, -z], [w, -z, y], [z, w, -x], [-y, x, w]]) / 2


@dataclass
class Oracle:
    """A compiled model beside ours.

    **Arguments:**

    - `names`: of our joints, by MuJoCo's number.
    """

    model: mujoco.MjModel
    ours: SpatialMechanism
    names: list[str]

    def __post_init__(self):
        self.data = mujoco.MjData(self.model)
        flags = mujoco.mjtDisableBit
        self.model.opt.disableflags |= flags.mjDSBL_CONTACT | flags.mjDSBL_LIMIT

    def _places(self, *names):
        return [self.ours.coordinate_names.index(name) for name in names]

    def _joints(self):
        for k, name in enumerate(self.names):
            kind = int(self.model.jnt_type[k])  # Free 0, ball 1, slide 2, hinge 3.
            ball = self._places(*(f"{name}_e{i}" for i in range(4))) if kind < 2 else []
            slides = self._places(*(f"{name}_{axis}" for axis in "xyz")) if kind == 0 else []
            one = self._places(name) if kind > 1 else []
            yield self.model.jnt_qposadr[k], self.model.jnt_dofadr[k], slides, ball, one

    def coordinates(self):
        """Ours, of MuJoCo's `qpos`."""
        q = np.zeros(len(self.ours.coordinates))
        for start, _, slides, ball, one in self._joints():
            places = [*slides, *ball, *one]
            q[places] = self.data.qpos[start : start + len(places)]
        return q

    def matrix(self):
        """`N`."""
        found = np.zeros((len(self.ours.coordinates), self.model.nv))
        for start, dof, slides, ball, one in self._joints():
            linear = [*slides, *one]
            found[linear, dof : dof + len(linear)] = np.eye(len(linear))
            if ball:
                e = self.data.qpos[start + len(slides) : start + len(slides) + 4]
                found[np.ix_(ball, range(dof + len(slides), dof + len(slides) + 3))] = half_rates(e)
        return found

    def changing(self):
        """`N' v`: with `omega` constant, `e'' = half_rates(e') omega`."""
        found = np.zeros(len(self.ours.coordinates))
        rates = self.matrix() @ self.data.qvel
        for _, dof, slides, ball, _ in self._joints():
            if ball:
                spin = self.data.qvel[dof + len(slides) : dof + len(slides) + 3]
                found[ball] = half_rates(rates[ball]) @ spin
        return found

    def move(self, seed):
        """To a random state under random controls; MuJoCo's accelerations are then in `data`."""
        rng = np.random.default_rng(seed)
        self.data.qpos[:] = rng.normal(size=self.model.nq)
        mujoco.mj_normalizeQuat(self.model, self.data.qpos)
        self.data.qvel[:] = rng.normal(size=self.model.nv)
        self.data.ctrl[:] = rng.normal(size=self.model.nu)
        mujoco.mj_forward(self.model, self.data)

    def mass_matrix(self):
        """MuJoCo's, column by column."""
        columns = np.zeros((self.model.nv, self.model.nv))
        for row, unit in zip(columns, np.eye(self.model.nv), strict=True):
            mujoco.mj_mulM(self.model, self.data, row, unit)
        return columns
