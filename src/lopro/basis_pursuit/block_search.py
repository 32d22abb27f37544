"""A working-set search over blocks: complex coefficients, rows of several right-hand sides, groups.

As with signs, systems have only the blocks in use, and a product ``A^H r`` with all columns shows which
are missing and how far the solution can be from the optimum. But the directions of blocks change, so that
Newton's method converges fast instead of ending after finitely many steps. ``alpha`` comes down in steps as
long as the equations allow.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from lopro.basis_pursuit import column_search
from lopro.basis_pursuit.block_newton import BlockNewton, aimed_residual
from lopro.basis_pursuit.columns import ColumnSet
from lopro.basis_pursuit.penalised import PenalisedProblem, SquareRootProblem
from lopro.basis_pursuit.pieces import Vector, largest
from lopro.basis_pursuit.problem import BlockNorm, Repeated
from lopro.basis_pursuit.search import Search, thinned
from lopro.basis_pursuit.support_newton import Level, Penalty, Radius, Ratio, Solution
from lopro.core.arrays import Array, is_single, to_numpy
from lopro.core.deadline import current_deadline
from lopro.core.real_vectors import power_of_two
from lopro.core.threads import one_pool
from lopro.maps import LinearMap
from lopro.maps.algebra import widened
from lopro.problem import Problem
from lopro.projections.empty_ball import residual_exceeds
from lopro.protocol import Workbench

__all__ = ["BlockSearch"]


@dataclass(frozen=True)
class Settings:
    """Settings of searches over blocks.

    Products of 12 instances (complex, groups, joint), geometric mean 16.1: with ``start = 0.5`` 17.0, with
    ``descent = 0.5`` 16.7, with ``unsolved = 0.1`` 17.6, with any `near` 20.3.
    """

    #: The first alpha as a share of the largest; the share that a step keeps, and that it keeps where half of
    #: the equations are in use.
    start: float = 0.2
    descent: float = 0.2
    full_descent: float = 0.5
    #: alpha is reduced only below this error of the equations, in units of alpha, and this share of missing
    #: blocks.
    unsolved: float = 0.5
    missing: float = 0.2
    #: Largest error of a solution, and of a point from which equations are met in one step.
    settled: float = 1e-6
    near: float = 0.1
    end: float = 1e-2  # of the largest alpha: from here on equations are met in one step
    #: Operations of a factor for each byte of A: beyond, products are cheaper (2500 x 8000: 9 s, not 42). A
    #: factor of fewer operations than `quick` takes less time than a hundred steps without one take beside
    #: their products (groups of a 100 x 400 matrix with a penalty: 22 products, not 870).
    expensive: float = 60.0
    quick: float = 5e8


SETTINGS = Settings()

#: Multipliers that differ by less, relatively, are the same, and below this share of the largest, sigma is
#: out of reach: the rounding of a sum of 5000 terms.
_ROUNDING = 1e-12


class BlockSearch(Search):
    """The state of one run on a matrix in memory, NumPy's or a sparse one, with complex points or blocks."""

    def __init__(self, bench: Workbench, problem: Problem, x0: Array) -> None:
        super().__init__(problem, bench.target)
        self.bench, self.stuck = bench, False
        self._set_up()
        self.correlations = self.pulled(self.y)
        self.learn_units(self.correlations)
        # Newton's method works in units in which columns and y are about 1 long: powers of two.
        self._unit_a, self._unit_y = power_of_two(self._stretch), power_of_two(_norm(self.y))
        columns = ColumnSet(self._rows(self.y / self._unit_y), self._weights)
        level = self.sparse.level(0.0)
        self.newton = BlockNewton(columns, level, self.sparse.nonneg)
        self._least = level.least / (self._unit_a * self._unit_y)  # in Newton's units
        self._largest = float(self._excess(self.correlations).max(initial=0.0))
        self._top = self._largest / (self._unit_a * self._unit_y)  # in Newton's units
        self.missing = np.empty(0, dtype=np.intp)
        self._start(to_numpy(x0))

    def _set_up(self) -> None:
        """Sort columns by blocks: those of a block are read and held together."""
        objective, d = self.sparse.objective, self.A.shape[1]
        # Entries of a row may be zero alone where signs count: then each of them has a column of its own.
        self.base: LinearMap = self.A
        if isinstance(self.A, Repeated) and not self.sparse.nonneg:
            self.base = self.A.base
        self.copies = d // self.base.shape[1]
        labels = np.arange(self.base.shape[1])
        if isinstance(objective, BlockNorm):
            labels = objective.labels[:: self.copies]
        self._block_of, self._order = labels, np.argsort(labels, kind="stable")
        self._sizes = np.bincount(labels)
        self._firsts = np.cumsum(self._sizes) - self._sizes
        self._weights = np.asarray(self.sparse.weights[:: self.copies], dtype=np.float64)

    def _rows(self, v: Vector) -> Vector:
        """Return a long vector as the rows of an array."""
        return v.reshape(-1, self.copies)

    def _columns_of(self, blocks: Vector) -> Vector:
        """Return the columns of blocks, those of each side by side."""
        parts = [
            self._order[self._firsts[b] : self._firsts[b] + self._sizes[b]] for b in blocks.tolist()
        ]
        return np.concatenate(parts) if parts else np.empty(0, dtype=np.intp)

    def _excess(self, everywhere: Vector) -> Vector:
        """Return the correlations of blocks in units of their weights."""
        excess = np.asarray(self.sparse.excess(everywhere))
        of_blocks: Vector = excess[self._order[self._firsts] * self.copies]
        return of_blocks

    def read(self, indices: Vector) -> Array:
        return widened(thinned(self.base.columns(indices))) / self._unit_a

    def _start(self, x0: Vector) -> None:
        """Begin with the blocks of the start and those that correlate most with ``y``."""
        size = self._excess(self.correlations)
        rows = self._rows(x0.astype(self.y.dtype, copy=False))
        if self.sparse.nonneg:
            rows = np.maximum(rows, 0.0)
        given = np.flatnonzero(np.add.reduceat(np.abs(rows).sum(axis=1)[self._order], self._firsts))
        likely = largest(size, max(10, self.base.shape[0] // 10))
        chosen = np.union1d(given, likely[size[likely] > 0.0])
        self._extend(chosen)
        self.newton.alpha = max(SETTINGS.start * self._top, self._least)
        if given.size and self._top > 0.0:  # where nothing correlates, zero is the answer
            z = rows[self.newton.columns.indices] * (self._unit_a / self._unit_y)
            self.newton.move_to(z, self._fitted_alpha(z))

    def _fitted_alpha(self, z: Vector) -> float:
        """Return the alpha that a start fits best."""
        newton = self.newton
        newton.move_to(z, self._top)
        weights = newton.weights[newton.active]
        pull = float(np.vdot(newton.slope, z / _lengths_of_rows(newton)).real)
        alpha = pull / float(weights @ weights)
        return min(max(alpha, 1e-6 * self._top), self._top)

    def _extend(self, blocks: Vector) -> None:
        columns = self._columns_of(blocks)
        correlations = self._rows(self.correlations)[columns]
        self.newton.extend(columns, self._sizes[blocks], self.read, correlations)

    def add_missing(self) -> None:
        """Add the blocks that violate most; those that stayed zero leave first."""
        active = self.newton.active
        if np.count_nonzero(active) < 0.8 * len(active):
            self.newton.keep(active)
        if self.missing.size:
            self._extend(self.missing[largest(self._missing_size, self.newton.room)])

    def round(self) -> None:
        """Make a Newton step on the present blocks, then price all of them."""
        self.bench.tick()
        newton = self.newton
        newton.level = self._level()
        with one_pool():
            newton.step(self._lowest_alpha())
        self._accept()
        self._price_all()
        if self._near_the_end and self._solved:
            self._try_to_end()

    def _level(self) -> Level:
        """Return the condition that determines alpha, in Newton's units: a penalty, or a target residual."""
        newton, sparse = self.newton, self.sparse
        if isinstance(sparse, SquareRootProblem):
            return Ratio(sparse.lam / self._unit_a)
        if isinstance(sparse, PenalisedProblem):
            return Penalty(self._least)
        sigma = (self.sigma - self._margin) / self._unit_y
        if sigma <= 0.0:
            return Radius(0.0)
        allowed = self.target.tol * newton.value
        return Radius(float(aimed_residual(sigma, allowed, newton.alpha, _norm(newton.columns.y))))

    @property
    def _near_the_end(self) -> bool:
        """Whether equations may be met in one step from here."""
        return self.sigma == 0.0 and self.newton.alpha <= SETTINGS.end * self._top

    @property
    def _solved(self) -> bool:
        """Whether the point is close to the solution for its alpha, on all blocks."""
        few = self.missing.size <= SETTINGS.missing * np.count_nonzero(self.newton.active)
        error = SETTINGS.near if self._near_the_end else SETTINGS.unsolved
        return bool(few and self.newton.error <= error)

    def _lowest_alpha(self) -> float:
        newton = self.newton
        active = np.count_nonzero(newton.active)
        if not active or not self._solved:
            return newton.alpha
        few = active * self.copies < 0.5 * newton.columns.y.size
        share = SETTINGS.descent if few else SETTINGS.full_descent
        return max(share * newton.alpha, _ROUNDING * self._top, self._least)

    def _accept(self) -> None:
        """Make the point of Newton's method the present solution."""
        newton = self.newton
        x = newton.z.ravel() * (self._unit_y / self._unit_a)
        residual = newton.residual.ravel() * self._unit_y
        alpha = newton.alpha * (self._unit_a * self._unit_y)
        if self.constrained:
            reached = newton.length * self._unit_y <= self.sigma - self._margin
        else:
            target = self._level().alpha(0.0, 0.0, newton.length, 0.0, at=newton.alpha)
            reached = target is not None and abs(target - newton.alpha) <= _ROUNDING * newton.alpha
        places = newton.columns.indices[:, None] * self.copies + np.arange(self.copies)
        self._keep(x, places.ravel(), residual, alpha, reached)

    def _keep(
        self, x: Vector, places: Vector, residual: Vector, alpha: float, reached: bool
    ) -> None:
        dual = residual / alpha if alpha > 0.0 else residual
        settled = self.newton.error <= SETTINGS.settled and not self.newton.excess.any()
        solution = Solution(x, np.empty(0), alpha, residual, dual, reached, settled)
        ratio = self._unit_y / self._unit_a

        def forward(x: Vector) -> Vector:
            return self.newton.columns.forward(self._rows(x) / ratio).ravel() * self._unit_y

        self.accept(solution, places, float(self.newton.value * ratio), forward)

    def _price_all(self) -> None:
        """Price all blocks: a bound, and those that are missing."""
        solution = self.solution
        assert solution is not None
        everywhere = self.pulled(solution.dual)
        self.missing = np.empty(0, dtype=np.intp)
        self.price(solution, everywhere)
        excess = self._excess(everywhere)
        excess[self._block_of[self.newton.columns.indices]] = 0.0
        self.missing = np.flatnonzero(excess > 1.0 + column_search.SETTINGS.missing)
        self._missing_size = excess[self.missing]
        out_of_reach = self.newton.alpha <= _ROUNDING * self._top and not solution.reached
        self.stuck = out_of_reach or self._expensive

    @property
    def _expensive(self) -> bool:
        """Whether steps without factors, of two products each, are much cheaper by now.

        Equations need factors, and in single precision products alone do not prove enough.
        """
        if self.sigma == 0.0 or is_single(self._like):
            return False
        active = int(self.newton.sizes[self.newton.active].sum())
        limit = max(SETTINGS.expensive * self.base.nbytes, SETTINGS.quick)
        return 8.0 / 3.0 * active**3 > limit

    @property
    def _most(self) -> float:
        return self._largest

    def _proved_misfit(self, solution: Solution) -> float | None:
        if not isinstance(self.A, Repeated):
            return super()._proved_misfit(solution)
        if not self.A.base.explicit:
            return None
        rest = self.A.least_squares_rest(self.y)
        too_long = residual_exceeds(self.A, self.ball.y, self.sigma, rest)
        return _norm(rest) if too_long else None

    def _try_to_end(self) -> None:
        """Meet equations by moving the present blocks as little as possible."""
        newton = self.newton
        found = self._corrected(newton.spread(newton.active))
        if found is not None:
            value = newton.value_of(found) * (self._unit_y / self._unit_a)
            if value - self.bound <= 0.5 * self.target.gap(value):
                self._end_with(found, value)

    def _corrected(self, rows: Vector) -> Vector | None:
        """Return coefficients of these rows alone that meet the equations; None if there are none."""
        newton, c = self.newton, self.newton.columns
        if newton.nonneg:
            rows = rows & (newton.z > 0.0).any(axis=1)
        sizes = _lengths_of_rows(newton)[rows]
        z = np.where(rows[:, None], newton.z, 0.0)
        matrix = c.toarray()[:, rows] * sizes.ravel()
        m, n = matrix.shape
        current_deadline().need(20.0 * m * n * min(m, n))
        for _ in range(2):
            rest = c.y - c.forward(z)
            z[rows] += sizes * np.linalg.lstsq(matrix, rest, rcond=None)[0]
        if newton.nonneg and float(z.min(initial=0.0)) < 0.0:
            return None
        return z if _norm(c.y - c.forward(z)) <= 1e-12 * _norm(c.y) else None

    def _end_with(self, z: Vector, value: float) -> None:
        """Make a point that meets the equations the present solution; the dual point stays."""
        newton, solution = self.newton, self.solution
        assert solution is not None
        residual = (newton.columns.y - newton.columns.forward(z)).ravel() * self._unit_y
        x = z.ravel() * (self._unit_y / self._unit_a)
        self._keep(x, self._places, residual, 0.0, reached=True)
        self.fun = value


def _norm(v: Vector) -> float:
    return float(np.linalg.norm(v))


def _lengths_of_rows(newton: BlockNewton) -> Vector:
    """Return the length of its block for each row, 1 where it is zero."""
    return newton.spread(np.where(newton.active, newton.lengths, 1.0))[:, None]
