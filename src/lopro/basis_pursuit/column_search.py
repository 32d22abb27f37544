"""A working-set search: solve on the columns at hand, look at all of them, take in those that are missing."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from lopro.basis_pursuit.columns import Vector, columns_to_add, largest
from lopro.basis_pursuit.exact_path import FEW_COLUMNS, FEW_ROWS
from lopro.basis_pursuit.search import Search
from lopro.basis_pursuit.support_newton import Solution
from lopro.core.arrays import Array, is_single, to_numpy
from lopro.core.threads import one_pool
from lopro.maps import NumPyMap
from lopro.problem import Problem
from lopro.protocol import Workbench

__all__ = ["ColumnSearch", "Crowd"]

_NEWTON_STEPS, _HASTY_STEPS = 30, 2
_HASTY_DESCENT = 0.1  # of alpha, while sigma is out of reach
_ASTRAY = 2  # rounds in a row after which more columns are missing than before
_ROUGHLY = 1e-5  # how far correlations in single precision may be off


@dataclass
class Crowd:
    """When to give up because the support fills many of the rows and sigma is still out of reach.

    More than a share of them for more than so many rounds.
    """

    share: float
    rounds: int = 0
    seen: int = 0

    def count(self, share: float) -> None:
        """Take note of a round."""
        self.seen += share > self.share

    @property
    def is_enough(self) -> bool:
        """Whether to give up."""
        return self.seen > self.rounds


class ColumnSearch(Search):
    """The state of one run on a matrix in memory, where columns are cheap: few of them are held."""

    def __init__(self, bench: Workbench, problem: Problem) -> None:
        super().__init__(problem, bench.target)
        self.bench = bench
        self._single = is_single(self._like) and not isinstance(self._like, np.ndarray)
        self.correlations = self.pulled(self.y, rough=self._single)
        self.learn_units(self.correlations)
        self.done = False
        # Whether to follow the path in small steps.
        self.patient, self._descent, self._crowd = False, _HASTY_DESCENT, Crowd(0.5)
        # Of the solutions that reach sigma: how many columns the last one lacks, and how often in a row there
        # were more of them than before. From signs that others have found it may go up and down.
        self._lacking, self._astray, self._guided = math.inf, 0, False

    @property
    def is_small(self) -> bool:
        """Whether the path of solutions may be followed from breakpoint to breakpoint."""
        rows, columns = self.A.shape
        few = rows <= FEW_ROWS and columns <= FEW_COLUMNS
        return few and self.plain and isinstance(self.A, NumPyMap) and self.ball.sigma > 0.0

    def begin(self, x0: Array, first: int | None) -> None:
        """Begin with the support of the start and the columns that correlate most with ``y``."""
        x0 = to_numpy(x0).astype(np.float64, copy=False)
        count = max(10, min(self.A.shape) // 10) if first is None else first
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

    def start_over(self, descent: float, crowd: Crowd | None = None) -> None:
        """Follow the path from its beginning in small steps, with signs that are right at each of them."""
        self.patient, self._descent, self._crowd = True, descent, crowd or Crowd(math.inf)
        self.floor = 0.5 * float(self.sparse.excess(self.correlations).max(initial=0.0))
        self.signs = 0.0 * self.signs

    def resume(self, point: Array) -> bool:
        """Start again at a point with fewer nonzeros than rows; False if it has more."""
        x = to_numpy(point)
        support = np.flatnonzero(x)
        if not 0 < support.size < len(self.y):
            return False
        new = np.setdiff1d(support, self.columns.indices)
        self._extend(new, np.zeros(new.size))
        self.signs, self.floor = np.sign(x[self.columns.indices]), 0.0
        self._guided = True
        return True

    def resume_with(self, signs: Vector) -> None:
        """Start again with signs of all columns."""
        new = np.setdiff1d(np.flatnonzero(signs), self.columns.indices)
        self._extend(new, np.zeros(new.size))
        self.signs, self.floor = signs[self.columns.indices].astype(self.y.dtype), 0.0
        self.patient, self._crowd, self._guided = False, Crowd(0.5), True

    def _extend(self, indices: Vector, signs: Vector) -> None:
        self.columns.extend(indices, self.read, self.correlations[indices])
        self.signs = np.concatenate([self.signs, signs])

    def round(self) -> None:
        """Solve on the present columns, then look at all of them."""
        self.bench.tick()
        with one_pool():
            solution = self._solve_restricted()
        self.accept(solution)
        everywhere, excess = self._look(solution)
        self._missing_size, self._missing_sign = (
            excess[self.missing],
            np.sign(everywhere[self.missing]),
        )
        if solution.reached:
            self._astray = self._astray + 1 if self.missing.size > self._lacking else 0
            self._lacking = self.missing.size
        else:
            self._crowd.count(np.count_nonzero(solution.signs) / len(self.y))
            self._lower_floor(solution)

    def _look(self, solution: Solution) -> tuple[Vector, Vector]:
        """Return the correlations of all columns, and those that are missing in units of the weights.

        As long as columns are missing, numbers in single precision tell well enough which: on a device a sum
        of them in double precision takes several times as long. Then there is no bound yet.
        """
        self._roughly = rough = self._single and not self._thorough
        everywhere = self.pulled(solution.dual, rough=rough)
        excess = self.sparse.excess(everywhere) if rough else self.price(solution, everywhere)
        excess[self.columns.indices] = 0.0
        self.missing = np.flatnonzero(excess > 1.0 + (_ROUGHLY if rough else 1e-9))
        return everywhere, excess

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
        solution = self.support_newton.solve(self.signs, self.floor, steps)
        if solution.reached:
            self.floor = 0.0
        return solution

    @property
    def complete(self) -> bool:
        """Whether the solution is good enough to be projected and looked at."""
        solution = self.solution
        if solution is None or not solution.reached or self._roughly:
            return False
        return self.good or (solution.settled and self.missing.size == 0)

    @property
    def stuck(self) -> bool:
        """Whether Newton's method has nothing more to offer.

        Either the columns at hand were not solved for and no other one would help, or it goes astray: more
        and more columns are missing, or sigma is out of reach although the support fills many of the rows.
        """
        solution = self.solution
        assert solution is not None
        if solution.reached:
            lost = self._astray >= _ASTRAY and not (self.patient or self._guided)
            return lost or (self._thorough and self.missing.size == 0)
        if self.patient and not solution.settled and self.missing.size == 0:
            return True
        return self._crowd.is_enough

    def take_in_missing(self) -> None:
        """Add the columns that violate most, at most a third as many as there are nonzeros.

        Those that were taken in for nothing leave first, before they cost time and memory.
        """
        used = self.signs != 0.0
        if np.count_nonzero(used) < 0.9 * len(self.columns):
            self.columns.keep(used)
            self.signs = self.signs[used]
        keep = largest(self._missing_size, columns_to_add(self.signs, len(self.y), 3))
        if keep.size:
            keep.sort()  # memory is read in its order
            self._extend(self.missing[keep], self._missing_sign[keep])
