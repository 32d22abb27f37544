"""The state of a working-set search: columns, signs, the present solution and the best dual value."""

from __future__ import annotations

import math

import numpy as np
import scipy  # parts of it load when first used

from lopro._util.arrays import Array, norm
from lopro._util.threads import one_pool
from lopro.basis_pursuit.problem import SparseProblem
from lopro.basis_pursuit.signed_support import (
    ColumnSet,
    Restricted,
    Solution,
    Vector,
    largest,
    room_for,
)
from lopro.errors import InfeasibleError
from lopro.protocol import Candidate, Multiplier, Workbench

__all__ = ["ColumnSearch"]

_NEWTON_STEPS, _HASTY_STEPS = 30, 2
_HASTY_DESCENT = 0.1  # of alpha, while sigma is out of reach


class ColumnSearch:
    """The state of one run: columns, signs, the present solution and the best dual value."""

    def __init__(self, bench: Workbench, x0: Array, first: int | None) -> None:
        self.bench = bench
        self.sparse = SparseProblem.of(bench.problem, np.asarray(x0))
        self.ball, self.A = self.sparse.ball, self.sparse.ball.A
        self.y = np.asarray(self.ball.y)
        self.correlations = self.A.adjoint(self.y)
        self.sparse.check_units(self.correlations, self.y)
        self._stretch = norm(self.correlations) / (norm(self.y) or 1.0)
        self.columns = ColumnSet(self.y, self.sparse.weights)
        self.restricted = Restricted(self.columns, self.ball.sigma, self.sparse.nonneg)
        self.signs = np.empty(0, dtype=self.y.dtype)
        self.done = False
        self.patient, self._descent = (
            False,
            _HASTY_DESCENT,
        )  # whether to follow the path in small steps
        self.solution: Solution | None = None
        self.bound, self.inequality = -math.inf, self.sparse.at_zero(self.sparse.weights)
        self._start(np.asarray(x0), max(10, self.A.shape[0] // 10) if first is None else first)

    def _start(self, x0: Vector, count: int) -> None:
        """Begin with the support of the start and the columns that correlate most with ``y``."""
        if self.sparse.nonneg:
            x0 = np.maximum(x0, 0.0)  # a sign that is not allowed would never be questioned
        given = np.flatnonzero(x0)
        size = self.sparse.excess(self.correlations)
        self.floor = 0.0 if given.size else 0.1 * float(size.max(initial=0.0))
        likely = largest(size, count)
        chosen = np.union1d(given, likely[size[likely] > 0.0])
        self._extend(chosen, np.sign(x0[chosen]))
        if not given.size:
            self.signs = np.where(
                size[chosen] > self.floor, np.sign(self.correlations[chosen]), 0.0
            )

    def start_over(self, descent: float) -> None:
        """Follow the path from its beginning in small steps, with signs that are right at each of them."""
        self.patient, self._descent = True, descent
        self.floor = 0.5 * float(self.sparse.excess(self.correlations).max(initial=0.0))
        self.signs = 0.0 * self.signs

    @property
    def zero_is_feasible(self) -> bool:
        """Whether ``x = 0`` satisfies the constraint, and so is the solution."""
        return float(np.linalg.norm(self.y)) <= self.ball.sigma

    def resume(self, x: Vector) -> bool:
        """Start again at a point with fewer nonzeros than rows; False if it has more."""
        support = np.flatnonzero(x)
        if not 0 < support.size < len(self.y):
            return False
        new = np.setdiff1d(support, self.columns.indices)
        self._extend(new, np.zeros(new.size))
        self.signs, self.floor = np.sign(np.asarray(x)[self.columns.indices]), 0.0
        return True

    def resume_with(self, signs: Vector) -> None:
        """Start again with signs of all columns."""
        new = np.setdiff1d(np.flatnonzero(signs), self.columns.indices)
        self._extend(new, np.zeros(new.size))
        self.signs, self.floor = signs[self.columns.indices].astype(self.y.dtype), 0.0
        self.patient = False

    def _extend(self, indices: Vector, signs: Vector) -> None:
        self.columns.extend(indices, self._read, self.correlations[indices])
        self.signs = np.concatenate([self.signs, signs])

    def _read(self, indices: Vector) -> Vector:
        """Return columns as an array: here products of columns are dense."""
        if not self.A.has_columns:
            units = np.zeros((self.A.shape[1], len(indices)), dtype=self.y.dtype)
            units[indices, np.arange(len(indices))] = 1.0
            return np.asarray(self.A.forward(units))
        block = self.A.columns(indices)
        return np.asarray(block.toarray() if scipy.sparse.issparse(block) else block)

    def round(self) -> None:
        """Solve on the present columns, then look at all of them."""
        self.bench.tick()
        with one_pool():
            solution = self._solve_restricted()
        self.solution, self.signs = solution, solution.signs
        self._places = self.columns.indices
        self._fun = float(self.columns.weights @ np.abs(solution.x))
        everywhere = self.A.adjoint(solution.dual)
        excess = self.sparse.excess(everywhere)
        gauge = float(excess.max())
        self._improve_bound(solution, everywhere)
        self._check_feasible(solution, gauge)
        excess[self.columns.indices] = 0.0
        self.missing = np.flatnonzero(excess > 1.0 + 1e-9)
        self._missing_size, self._missing_sign = (
            excess[self.missing],
            np.sign(everywhere[self.missing]),
        )
        if not solution.reached:
            self._lower_floor(solution)

    def _lower_floor(self, solution: Solution) -> None:
        """Go down the path: in a hurry at once; patiently where signs are (almost) right."""
        few = self.missing.size <= 0.2 * np.count_nonzero(solution.signs)
        if not self.patient or (solution.settled and few):
            self.floor *= self._descent

    def _solve_restricted(self) -> Solution:
        """Solve on the present columns with alpha at or above the floor."""
        # While columns are missing a solution is only a guide to more of them: two steps will do.
        self._thorough = self.patient or (self.solution is not None and self.missing.size == 0)
        steps = _NEWTON_STEPS if self._thorough else _HASTY_STEPS
        solution = self.restricted.solve(self.signs, self.floor, steps)
        if solution.reached:
            self.floor = 0.0
        return solution

    def _improve_bound(self, solution: Solution, everywhere: Vector) -> None:
        """Scale the dual point to feasibility; it bounds the optimum from below."""
        found = self.sparse.proved(solution.dual, everywhere, self._stretch)
        if found is not None and -found.support > self.bound:
            self.bound, self.inequality = -found.support, found

    def _check_feasible(self, solution: Solution, gauge: float) -> None:
        """Raise if the residual is orthogonal to every column and still too long.

        The angle decides, not the size of ``A'r``: a short residual has small correlations anyway. And an
        ill-conditioned matrix makes small angles, so the suspicion is checked by a factorisation.
        """
        length = float(np.linalg.norm(solution.residual))
        if solution.reached or not solution.settled or length <= self.ball.sigma:
            return
        cosine = solution.alpha * gauge / length
        largest_cosine = self.restricted.most / float(np.linalg.norm(self.y))
        if cosine <= 1e-8 * largest_cosine and self.ball.is_empty:
            raise InfeasibleError(
                f"no x has |A x - y| <= sigma: the least-squares residual is {self.ball.misfit:.6g}, "
                f"sigma is {self.ball.sigma:.6g}"
            )

    @property
    def complete(self) -> bool:
        """Whether the solution is good enough to be projected and looked at."""
        solution = self.solution
        if solution is None or not solution.reached:
            return False
        good = self._fun - self.bound <= 0.5 * self.bench.target.gap(self._fun)
        return good or (solution.settled and self.missing.size == 0)

    @property
    def exact(self) -> bool:
        """Whether value and bound differ by rounding only."""
        rounding = max(1e-10, 1e3 * float(np.finfo(self.y.dtype).eps))
        return self._fun - self.bound <= rounding * self._fun

    @property
    def stuck(self) -> bool:
        """Whether Newton's method has nothing more to offer.

        Either the columns at hand were not solved for and no other one would help, or sigma is out of
        reach although the support fills half of the rows: the path to such a solution is long, and
        Newton's method goes astray on it.
        """
        solution = self.solution
        assert solution is not None
        if solution.reached:
            return self._thorough and self.missing.size == 0
        if self.patient:
            return not solution.settled and self.missing.size == 0
        return bool(np.count_nonzero(solution.signs) > 0.5 * len(self.y))

    def take_in_missing(self) -> None:
        """Add the columns that violate most, at most a third as many as there are nonzeros.

        Those that were taken in for nothing leave first, before they cost time and memory.
        """
        used = self.signs != 0.0
        if np.count_nonzero(used) < 0.9 * len(self.columns):
            self.columns.keep(used)
            self.signs = self.signs[used]
        keep = largest(self._missing_size, room_for(self.signs, len(self.y), 3))
        if keep.size:
            self._extend(self.missing[keep], self._missing_sign[keep])

    def point(self) -> Vector:
        """Return the present solution among all columns."""
        x = np.zeros(self.A.shape[1], dtype=self.y.dtype)
        if self.solution is not None:
            x[self._places] = self.solution.x
        return x

    def candidate(self) -> Candidate:
        """Project the present solution: a check, as it is feasible already."""
        x = self.point()
        if self.solution is not None and self.solution.alpha == 0.0:
            # Equations are met up to rounding, and a correction of that would fill in the zeros.
            return Candidate(x, Multiplier(self.inequality))
        return Candidate(self.bench.project(x), Multiplier(self.inequality), before=x)
