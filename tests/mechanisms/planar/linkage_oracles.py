"""Minimal equations of linkages in plain NumPy, for SciPy; nothing here comes from the package."""

import numpy as np


def chain(count, length, mass, inertia, gravity, torque, pull):
    """Of equal bars in a row, by their absolute angles: `y' = f(t, y)`, and all poses from `y`.

    Bar `k` has its center at the sum of `lever[k, i] e(angle_i)`, where the lever of a bar above is
    its whole length, and its own half of it.
    """
    lever = length * (np.tri(count, k=-1) + 0.5 * np.eye(count))
    weight = mass * lever.T @ lever

    def right(t, y):
        angle, rate = y[:count], y[count:]
        between = angle[:, None] - angle[None, :]
        matrix = weight * np.cos(between) + inertia * np.eye(count)
        load = -(weight * np.sin(between)) @ rate**2
        load -= mass * gravity * np.cos(angle) * lever.sum(axis=0)
        load -= pull * length * np.sin(angle)
        load[0] += torque
        return np.concatenate([rate, np.linalg.solve(matrix, load)])

    def poses(y):
        angle = y[:, :count]
        rows = np.stack([np.cos(angle) @ lever.T, np.sin(angle) @ lever.T, angle], axis=2)
        return rows.reshape(len(y), -1)

    return right, poses


class FourBar:
    """Uniform crank, coupler and rocker by the crank's angle; the coupler's end is on top."""

    def __init__(self, ground, lengths, masses, gravity):
        self.ground, self.lengths, self.gravity = ground, np.array(lengths), gravity
        self.masses = np.array(masses)
        self.inertias = self.masses * self.lengths**2 / 12

    def angles(self, crank):
        """Of all three bars: by the triangle of coupler and rocker over the diagonal."""
        first, coupler, rocker = self.lengths
        diagonal = self.ground - first * np.exp(1j * crank)
        apart = abs(diagonal)
        inside = np.arccos((apart**2 + coupler**2 - rocker**2) / (2 * apart * coupler))
        direction = np.angle(diagonal) + inside
        end = first * np.exp(1j * crank) + coupler * np.exp(1j * direction)
        return np.array([crank, direction, np.angle(end - self.ground)])

    def slopes(self, angle):
        """First and second derivatives of the angles by the crank's, from the closed loop."""
        signs = self.lengths * [1, 1, -1]
        c, s = signs * np.cos(angle), signs * np.sin(angle)
        matrix = np.array([[-s[1], -s[2]], [c[1], c[2]]])
        first = np.concatenate([[1.0], np.linalg.solve(matrix, [s[0], -c[0]])])
        bend = np.array([c @ first**2, s @ first**2])
        return first, np.concatenate([[0.0], np.linalg.solve(matrix, bend)])

    # What each bar's half length adds to each center.
    share = np.array([[1, 0, 0], [2, 1, 0], [0, 0, 1]])

    def pose(self, crank):
        """Every center and angle."""
        angle = self.angles(crank)
        center = self.share @ (np.exp(1j * angle) * self.lengths / 2) + [0, 0, self.ground]
        return np.stack([center.real, center.imag, angle], axis=1).reshape(-1)

    def pose_slope(self, crank):
        """Its derivative by the crank's angle."""
        angle = self.angles(crank)
        first, _ = self.slopes(angle)
        along = self.share @ (1j * np.exp(1j * angle) * self.lengths / 2 * first)
        return np.stack([along.real, along.imag, first], axis=1).reshape(-1)

    def right(self, t, y):
        """`y' = f(t, y)` of the crank's angle and its rate."""
        angle = self.angles(y[0])
        first, second = self.slopes(angle)
        half = np.exp(1j * angle) * self.lengths / 2
        along = self.share @ (1j * half * first)
        bend = self.share @ (1j * half * second - half * first**2)
        inertia = self.masses @ abs(along) ** 2 + self.inertias @ first**2
        growth = self.masses @ (along.conj() * bend).real + self.inertias @ (first * second)
        weight = -self.gravity * self.masses @ along.imag
        return np.array([y[1], (weight - growth * y[1] ** 2) / inertia])
