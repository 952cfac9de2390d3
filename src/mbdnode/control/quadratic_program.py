"""The quadratic program of a plan, with PIQP.

Over `z_1 ... z_N`, `u_0 ... u_(N-1)` and the violations `e >= 0` of the bounds on states,

    min  sum (z_k - r_k)' Q (z_k - r_k) + (u_k - s_k)' R (u_k - s_k) + (z_N - r_N)' P (z_N - r_N)
         + c (e + e^2)
    s.t. z_(k+1) = A_k z_k + B_k u_k + d_k
         z_low - e <= z_k <= z_high + e,   u_low <= u_k <= u_high,   |u_k - u_(k-1)| <= change.

Violations cost from the first on, so a bound is kept wherever it can be, and the program always
has a solution. The matrices are sparse and keep their pattern, so the order of elimination is
found once. PIQP is an interior point method: it takes about as many iterations from any start, so
there is nothing to warm-start in it; what is kept from step to step is the plan.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
import piqp
import scipy  # Its parts are slow to load, and do so when they are first used.

from mbdnode.control.problem import ControlProblem


@dataclass(frozen=True)
class Solution:
    """A plan: the states from the first after now, the inputs from now.

    `violation` is the largest of a bound on the states; `multiplier` the largest of the dynamics:
    what moving a state by one unit against the model would save, at most.
    """

    z: np.ndarray
    u: np.ndarray
    violation: float
    multiplier: float


class QuadraticProgram:
    """The program of a control problem; `terminal` is `P`."""

    def __init__(self, problem: ControlProblem, terminal: np.ndarray):
        self._problem, self._terminal = problem, terminal
        self._states, self._inputs = problem.Q.shape[0], problem.R.shape[0]
        self._soft = np.flatnonzero(np.isfinite(problem.z_low) | np.isfinite(problem.z_high))
        self._limited = np.flatnonzero(np.isfinite(problem.u_change))
        count = problem.horizon
        self._z_end = count * self._states
        self._u_end = self._z_end + count * self._inputs
        self._size = self._u_end + count * len(self._soft)
        self._cost = self._make_cost()
        self._dynamics, self._A_slots, self._B_slots = self._make_dynamics()
        self._sides, self._high, self._first_change = self._make_sides()
        self._solver: piqp.SparseSolver | None = None
        self._matrices: tuple[np.ndarray, np.ndarray] | None = None

    def forget(self) -> None:
        """Begin anew, so that the same questions get the same answers to the last bit."""
        self._solver = None
        self._matrices = None

    def solve(
        self,
        A: np.ndarray,
        B: np.ndarray,
        d: np.ndarray,
        z: np.ndarray,
        previous: np.ndarray,
        reference: np.ndarray,
        u_reference: np.ndarray,
    ) -> Solution | None:
        """The best plan; None if the solver fails.

        `A`, `B` and `d` are of every step; the same arrays as before are not handed over again. `z`
        is the state now, `previous` the input before. The references for the states go from the
        first after now to the end of the horizon, those for the inputs from now.
        """
        with np.errstate(over="ignore", invalid="ignore"):
            linear = self._linear(reference, u_reference)
            right = d.copy()
            right[0] += A[0] @ z
        same = self._matrices is not None and A is self._matrices[0] and B is self._matrices[1]
        if not same:
            self._dynamics.data[self._A_slots] = -A[1:].ravel()
            self._dynamics.data[self._B_slots] = -B.ravel()
            self._matrices = (A, B)
        high = self._high
        if high is not None and self._first_change is not None:
            allowed, signed = self._problem.u_change[self._limited], previous[self._limited]
            high[self._first_change] = np.concatenate([allowed + signed, allowed - signed])
        if not all(np.all(np.isfinite(x)) for x in (self._dynamics.data, right, linear)):
            return None
        self._hand_over(linear, right.ravel(), high, same)
        result = self._solved(linear, right.ravel(), high)
        if result is None:
            return None
        x = np.array(result.x)
        return Solution(
            x[: self._z_end].reshape(-1, self._states),
            x[self._z_end : self._u_end].reshape(-1, self._inputs),
            float(np.max(x[self._u_end :], initial=0.0)),
            # Of the cost itself, of which PIQP is given the half.
            2 * float(np.max(np.abs(result.y))),
        )

    def _solved(self, linear, right, high) -> Any:
        """The solver's result; None if there is none."""
        assert self._solver is not None
        if self._solver.solve() == piqp.PIQP_SOLVED:
            return self._solver.result
        # A solution there always is. With the cost scaled too, most of what failed is solved; but
        # not all that did not, so this is only the second try. What a failure leaves behind must
        # not reach the next step.
        self.forget()
        again = piqp.SparseSolver()
        again.settings.preconditioner_scale_cost = True
        self._give(again, linear, right, high)
        return again.result if again.solve() == piqp.PIQP_SOLVED else None

    def _give(self, solver: piqp.SparseSolver, linear, right, high) -> None:
        low, high_x = self._variable_bounds()
        sides = (self._sides, None, high) if self._sides is not None else (None, None, None)
        solver.setup(self._cost, linear, self._dynamics, right, *sides, low, high_x)

    def _hand_over(self, linear, right, high, same: bool) -> None:
        if self._solver is not None and same:
            self._solver.update(c=linear, b=right, h_u=high)
        elif self._solver is not None:
            self._solver.update(c=linear, A=self._dynamics, b=right, h_u=high)
        else:
            self._solver = piqp.SparseSolver()
            self._give(self._solver, linear, right, high)

    def _make_cost(self) -> Any:
        count = self._problem.horizon
        blocks = [self._problem.Q] * (count - 1) + [self._terminal] + [self._problem.R] * count
        blocks += [self._problem.violation_cost * np.eye(len(self._soft))] * count
        whole = scipy.sparse.block_diag([b for b in blocks if b.size], format="csc")
        return scipy.sparse.csc_matrix(whole)

    def _linear(self, reference, u_reference) -> np.ndarray:
        problem = self._problem
        states = -reference @ problem.Q
        states[-1] = -self._terminal @ reference[-1]
        inputs = -u_reference @ problem.R
        # PIQP halves the quadratic part, so the linear one is halved too.
        violations = np.full(self._size - self._u_end, problem.violation_cost / 2)
        return np.concatenate([states.ravel(), inputs.ravel(), violations])

    def _make_dynamics(self):
        """`z_(k+1) - A_k z_k - B_k u_k = d_k`, with the places of every `A_k` and `B_k`."""
        count, n, m = self._problem.horizon, self._states, self._inputs
        rows, columns = np.arange(count * n).reshape(count, n), np.arange(n)
        a_rows = np.repeat(rows[1:], n, axis=1)
        a_columns = (n * np.arange(count - 1))[:, None] + np.tile(columns, n)[None]
        b_rows = np.repeat(rows, m, axis=1)
        b_columns = self._z_end + (m * np.arange(count))[:, None] + np.tile(np.arange(m), n)[None]
        row = np.concatenate([rows.ravel(), a_rows.ravel(), b_rows.ravel()])
        column = np.concatenate([rows.ravel(), a_columns.ravel(), b_columns.ravel()])
        # Numbered from one, so that none is dropped as a zero and each can be found again.
        number = np.arange(1, row.size + 1, dtype=float)
        matrix = scipy.sparse.csc_matrix((number, (row, column)), shape=(count * n, self._size))
        place = np.empty(row.size, int)
        place[matrix.data.astype(int) - 1] = np.arange(row.size)
        matrix.data[:] = 1.0
        identity, of_a = count * n, a_rows.size
        return matrix, place[identity : identity + of_a], place[identity + of_a :]

    def _make_sides(self):
        """Soft bounds on states and limits on the inputs' change, as `G x <= h`."""
        problem, count = self._problem, self._problem.horizon
        soft, limited = self._soft, self._limited
        parts, right, first = [], [], None
        eye = scipy.sparse.csr_matrix(scipy.sparse.identity(self._size))
        violations = eye[self._u_end :]
        for bound, sign in ((problem.z_high, 1.0), (problem.z_low, -1.0)):
            wanted = np.tile(np.isfinite(bound[soft]), count)
            index = (self._states * np.arange(count)[:, None] + soft[None]).ravel()
            parts.append((sign * eye[index] - violations)[wanted])
            right.append(sign * np.tile(bound[soft], count)[wanted])
        if limited.size:
            index = self._z_end + self._inputs * np.arange(count)[:, None] + limited[None]
            now = eye[index.ravel()]
            # The first has no input of the plan before it: that part is in the right-hand side.
            keep = scipy.sparse.diags(np.repeat(np.arange(count) > 0, limited.size).astype(float))
            before = keep @ eye[np.concatenate([index[:1], index[:-1]]).ravel()]
            most = np.tile(problem.u_change[limited], count)
            start = sum(len(r) for r in right)
            first = start + np.concatenate(
                [np.arange(limited.size), count * limited.size + np.arange(limited.size)]
            )
            parts += [now - before, before - now]
            right += [most, most]
        if not sum(part.shape[0] for part in parts):
            return None, None, None
        stacked = scipy.sparse.vstack(parts, format="csc")
        return scipy.sparse.csc_matrix(stacked), np.concatenate(right), first

    def _variable_bounds(self) -> tuple[np.ndarray, np.ndarray]:
        problem, count = self._problem, self._problem.horizon
        free = np.full(self._z_end, np.inf)
        violations = self._size - self._u_end
        low = [-free, np.tile(problem.u_low, count), np.zeros(violations)]
        high = [free, np.tile(problem.u_high, count), np.full(violations, np.inf)]
        return np.concatenate(low), np.concatenate(high)
