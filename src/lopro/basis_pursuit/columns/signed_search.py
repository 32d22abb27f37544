"""The column set of a search whose coefficients have signs: solutions on it, additions and restarts."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from lopro.basis_pursuit.columns.column_set import column_set, columns_to_add
from lopro.basis_pursuit.columns.pieces import Vector, largest
from lopro.basis_pursuit.columns.support_newton import Solution, SupportNewton
from lopro.basis_pursuit.search import ResidualSearch
from lopro.core.arrays import Array, to_numpy
from lopro.core.threads import one_pool
from lopro.problem import Problem
from lopro.protocol import Target

__all__ = ["SETTINGS", "SignedSearch"]


@dataclass(frozen=True)
class Settings:
    """Settings of the column set; pairs of figures as those of `columns.search.Settings`."""

    #: The maximal number of Newton steps where no column is missing (a tenth loses a certificate, 0.99), and
    #: where the solution only serves to find missing columns (ten times as many: 1.08).
    thorough_steps: int = 30
    guiding_steps: int = 2
    #: The number of nonzeros for each column that is added. Where alpha is known more are added:
    #: `benchmarks.lasso` at a fiftieth, 1000 x 10000 and sparse, takes 11 and 9 products instead of 15 and
    #: 14.
    added_part: int = 3
    added_part_at_penalty: int = 1
    #: The share of columns without a sign from which on they are dropped (1.00, loses a certificate).
    unused: float = 0.1


SETTINGS = Settings()


class SignedSearch(ResidualSearch):
    """A search with a column set and the signs of its coefficients.

    Parameters
    ----------
    problem, target
        As for `ResidualSearch`.
    before : SignedSearch, optional
        A search for another alpha whose columns are used again.
    """

    def __init__(
        self, problem: Problem, target: Target, before: SignedSearch | None = None
    ) -> None:
        super().__init__(problem, target)
        self.level = self.sparse.level(self._margin)
        self.signs, self.floor = np.empty(0), 0.0
        #: Whether the search was restarted with the signs of another method.
        self._guided = False
        if before is None:
            self.columns = column_set(
                self.A, self._like, self.y, self.sparse.weights, self.level.equations
            )
            self.support_newton = SupportNewton(self.columns, self.level, self.sparse.nonneg)
        else:
            self.columns, self.signs = before.columns, before.signs
            self.support_newton = replace(before.support_newton, level=self.level)
        self.columns.ridge = self.sparse.ridge

    @property
    def _most(self) -> float:
        return self.columns.most

    def _solve(self, thorough: bool) -> Solution:
        """Solve on the set with alpha at or above the floor, and make that the present solution."""
        self._thorough = thorough
        steps = SETTINGS.thorough_steps if thorough else SETTINGS.guiding_steps
        with one_pool():
            solution = self.support_newton.solve(self.signs, self.floor, steps)
        if solution.reached:
            self.floor = 0.0
        self._accept_on_columns(solution)
        self.signs = solution.signs
        return solution

    def _accept_on_columns(self, solution: Solution) -> None:
        c = self.columns
        norm_of_x = float(c.weights @ np.abs(solution.x))
        self.accept(solution, c.indices, norm_of_x, c.forward)

    def _add(self, indices: Vector, excess: Vector, signs: Vector) -> None:
        """Add the columns that violate most, after dropping columns without a sign."""
        used = self.signs != 0.0
        if np.count_nonzero(used) < (1.0 - SETTINGS.unused) * len(self.columns):
            self.columns.keep(used)
            self.signs = self.signs[used]
        part = SETTINGS.added_part if self.level.least == 0.0 else SETTINGS.added_part_at_penalty
        kept = largest(excess, self._room(part))
        if kept.size:
            kept.sort()  # in the order of memory
            self.extend(indices[kept], signs[kept])

    def _room(self, part: int) -> int:
        """Return the number of columns that may be added: one for ``part`` nonzeros, fewer near the rows."""
        return columns_to_add(self.signs, len(self.y), part, self.columns.ridge > 0.0)

    def extend(self, indices: Vector, signs: Vector) -> None:
        """Add columns to the set, with the signs of their coefficients."""
        self.columns.extend(indices, self.read, self.correlations[indices])
        self.signs = np.concatenate([self.signs, signs])

    def resume_at(self, point: Array) -> bool:
        """Restart at a point with fewer nonzeros than rows; return False if it has more."""
        x = to_numpy(point)
        if not 0 < np.count_nonzero(x) < len(self.y):
            return False
        self._restart_with(np.sign(x))
        return True

    def resume_with(self, signs: Vector) -> None:
        """Restart with signs of all columns."""
        self._restart_with(signs.astype(self.y.dtype))

    def _restart_with(self, signs: Vector) -> None:
        new = np.setdiff1d(np.flatnonzero(signs), self.columns.indices)
        self.extend(new, np.zeros(new.size))
        self.signs, self.floor, self._guided = signs[self.columns.indices], 0.0, True
