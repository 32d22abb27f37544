"""A working-set search over blocks: complex coefficients, rows of several right-hand sides, groups.

As with signs, systems have only the blocks of the set, and a product ``A^H r`` with all columns shows the
missing ones and proves a lower bound. But the directions of blocks change continuously: Newton's method
converges fast but not after finitely many steps. ``alpha`` is reduced whenever the equations nearly hold.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from lopro.basis_pursuit.block_norm import Repeated
from lopro.basis_pursuit.blocks.layout import BlockLayout
from lopro.basis_pursuit.blocks.newton import BlockNewton
from lopro.basis_pursuit.columns import column_set as columns
from lopro.basis_pursuit.columns import support_newton
from lopro.basis_pursuit.columns.column_set import ColumnSet
from lopro.basis_pursuit.columns.pieces import Vector, largest, thinned
from lopro.basis_pursuit.columns.support_newton import Solution
from lopro.basis_pursuit.levels import Level, Penalty, Radius, Ratio, target_residual
from lopro.basis_pursuit.penalised import PenalisedProblem, SquareRootProblem
from lopro.basis_pursuit.search import ResidualSearch
from lopro.core.arrays import Array, is_single, to_numpy
from lopro.core.deadline import current_deadline
from lopro.core.real_vectors import power_of_two
from lopro.core.threads import one_pool
from lopro.maps.algebra import widened
from lopro.problem import Problem
from lopro.projections.empty_ball import residual_exceeds
from lopro.protocol import Workbench

__all__ = ["BlockSearch"]


@dataclass(frozen=True)
class Settings:
    """Settings of searches over blocks.

    Products of 12 instances (complex, groups, joint), geometric mean 16.1: with ``start = 0.5`` 17.0, with
    ``descent = 0.5`` 16.7, with ``unsolved = 0.1`` 17.6, without the limit `near` 20.3. Pairs of figures: the
    products of the 14 block instances of `python -m benchmarks.constants basis_pursuit` with a tenth and with
    ten times the value.
    """

    #: The first alpha as a share of the largest, the factor of alpha in a step, and the factor where half as
    #: many coefficients are active as there are equations (192 and 132 times the products).
    start: float = 0.2
    descent: float = 0.2
    full_descent: float = 0.5
    #: alpha is reduced only below this error of the equations, in units of alpha (1.17, 0.99), and this
    #: number of missing blocks, as a share of the active ones (1.04, 1.05).
    unsolved: float = 0.5
    missing: float = 0.2
    #: The largest error of a settled solution (1.00, 1.00), and of a point from which a correction is tried
    #: that satisfies the equations (1.04, 1.92).
    settled: float = 1e-6
    near: float = 0.1
    #: The largest alpha for this correction, as a share of the largest (1.00, 1.02).
    end: float = 1e-2
    #: Operations of a factorisation for each byte of A beyond which matrix-free steps are cheaper (2500 x
    #: 8000: 9 s instead of 42), and operations that take less time than the overhead of a hundred such steps
    #: (groups of a 100 x 400 matrix with a penalty: 22 products instead of 870).
    expensive: float = 60.0
    quick: float = 5e8


SETTINGS = Settings()

#: The rounding of a sum of 5000 terms: multipliers that differ by less, relatively, count as equal, and
#: below this share of the largest alpha, sigma is out of reach.
_ROUNDING = 1e-12
_EPS = float(np.finfo(np.float64).eps)


class BlockSearch(ResidualSearch):
    """The state of one run on a matrix in memory, NumPy's or a sparse one, with complex points or blocks."""

    def __init__(self, bench: Workbench, problem: Problem, x0: Array) -> None:
        super().__init__(problem, bench.target)
        self.bench, self.stuck = bench, False
        self.layout = BlockLayout(self.sparse)
        self.correlations = self.pulled(self.y)
        self.learn_units(self.correlations)
        # Newton's method works in units (powers of two) in which columns and y have lengths of about 1.
        self._unit_a, self._unit_y = power_of_two(self._stretch), power_of_two(_norm(self.y))
        held = ColumnSet(self.layout.rows_of(self.y / self._unit_y), self.layout.weights)
        level = self.sparse.level(0.0)
        self.newton = BlockNewton(held, level, self.sparse.nonneg)
        self._least = level.least / (self._unit_a * self._unit_y)  # in Newton's units
        self._largest = float(
            self.layout.of_blocks(self.sparse.excess(self.correlations)).max(initial=0.0)
        )
        self._top = self._largest / (self._unit_a * self._unit_y)  # in Newton's units
        self.missing = np.empty(0, dtype=np.intp)
        self._start(to_numpy(x0))

    def read(self, indices: Vector) -> Array:
        return widened(thinned(self.layout.base.columns(indices))) / self._unit_a

    def _start(self, x0: Vector) -> None:
        """Begin with the blocks of the start and those that correlate most with ``y``."""
        size = self.layout.of_blocks(self.sparse.excess(self.correlations))
        rows = self.layout.rows_of(x0.astype(self.y.dtype, copy=False))
        if self.sparse.nonneg:
            rows = np.maximum(rows, 0.0)
        sums = np.abs(rows).sum(axis=1)[self.layout.order]
        given = np.flatnonzero(np.add.reduceat(sums, self.layout.firsts))
        count = max(columns.SETTINGS.fewest, self.layout.base.shape[0] // 10)
        likely = largest(size, count)
        chosen = np.union1d(given, likely[size[likely] > 0.0])
        self._extend(chosen)
        self.newton.alpha = max(SETTINGS.start * self._top, self._least)
        if given.size and self._top > 0.0:  # without correlations, zero is optimal
            z = rows[self.newton.columns.indices] * (self._unit_a / self._unit_y)
            self.newton.move_to(z, self._fitted_alpha(z))

    def _fitted_alpha(self, z: Vector) -> float:
        """Return the alpha that fits the start best."""
        newton = self.newton
        newton.move_to(z, self._top)
        weights = newton.weights[newton.active]
        pull = float(np.vdot(newton.slope, z / _lengths_of_rows(newton)).real)
        alpha = pull / float(weights @ weights)
        return min(max(alpha, 1e-6 * self._top), self._top)

    def _extend(self, blocks: Vector) -> None:
        indices = self.layout.columns_of(blocks)
        correlations = self.layout.rows_of(self.correlations)[indices]
        self.newton.extend(indices, self.layout.sizes[blocks], self.read, correlations)

    def add_missing(self) -> None:
        """Add the blocks that violate most, after dropping those that are zero."""
        active = self.newton.active
        if np.count_nonzero(active) < 0.8 * len(active):
            self.newton.keep(active)
        if self.missing.size:
            self._extend(self.missing[largest(self._missing_size, self.newton.room)])

    def round(self) -> None:
        """Make a Newton step on the blocks of the set, then price all blocks."""
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
        rounding = 1e-12 * sigma + 4.0 * _EPS * _norm(newton.columns.y)
        return Radius(float(target_residual(sigma, allowed, newton.alpha, rounding)))

    @property
    def _near_the_end(self) -> bool:
        """Whether alpha is small enough for a correction that satisfies equations."""
        return self.sigma == 0.0 and self.newton.alpha <= SETTINGS.end * self._top

    @property
    def _solved(self) -> bool:
        """Whether the point is close to the solution for its alpha among all blocks."""
        few = self.missing.size <= SETTINGS.missing * np.count_nonzero(self.newton.active)
        error = SETTINGS.near if self._near_the_end else SETTINGS.unsolved
        return bool(few and self.newton.error <= error)

    def _lowest_alpha(self) -> float:
        newton = self.newton
        active = np.count_nonzero(newton.active)
        if not active or not self._solved:
            return newton.alpha
        few = active * self.layout.copies < 0.5 * newton.columns.y.size
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
        places = newton.columns.indices[:, None] * self.layout.copies + np.arange(
            self.layout.copies
        )
        self._keep(x, places.ravel(), residual, alpha, reached)

    def _keep(
        self, x: Vector, places: Vector, residual: Vector, alpha: float, reached: bool
    ) -> None:
        dual = residual / alpha if alpha > 0.0 else residual
        settled = self.newton.error <= SETTINGS.settled and not self.newton.excess.any()
        solution = Solution(x, np.empty(0), alpha, residual, dual, reached, settled)
        ratio = self._unit_y / self._unit_a

        def forward(x: Vector) -> Vector:
            return (
                self.newton.columns.forward(self.layout.rows_of(x) / ratio).ravel() * self._unit_y
            )

        self.accept(solution, places, float(self.newton.value * ratio), forward)

    def _price_all(self) -> None:
        """Price all blocks: improve the bound and find the missing ones."""
        solution = self.solution
        assert solution is not None
        everywhere = self.pulled(solution.dual)
        self.missing = np.empty(0, dtype=np.intp)
        self.price(solution, everywhere)
        excess = self.layout.of_blocks(self.sparse.excess(everywhere))
        excess[self.layout.labels[self.newton.columns.indices]] = 0.0
        self.missing = np.flatnonzero(excess > 1.0 + support_newton.SETTINGS.close)
        self._missing_size = excess[self.missing]
        out_of_reach = self.newton.alpha <= _ROUNDING * self._top and not solution.reached
        self.stuck = out_of_reach or self._expensive

    @property
    def _expensive(self) -> bool:
        """Whether matrix-free steps, of two products each, are much cheaper than factorisations.

        Equations need factors, and in single precision matrix-free bounds are not accurate enough.
        """
        if self.sigma == 0.0 or is_single(self._like):
            return False
        active = int(self.newton.sizes[self.newton.active].sum())
        limit = max(SETTINGS.expensive * self.layout.base.nbytes, SETTINGS.quick)
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
        """Satisfy equations by the least change of the present blocks."""
        newton = self.newton
        found = self._corrected(newton.spread(newton.active))
        if found is not None:
            value = newton.value_of(found) * (self._unit_y / self._unit_a)
            if value - self.bound <= 0.5 * self.target.gap(value):
                self._end_with(found, value)

    def _corrected(self, rows: Vector) -> Vector | None:
        """Return coefficients of these rows that satisfy the equations; None if there are none."""
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
        met = support_newton.SETTINGS.met * _norm(c.y)
        return z if _norm(c.y - c.forward(z)) <= met else None

    def _end_with(self, z: Vector, value: float) -> None:
        """Make a point that satisfies the equations the present solution, with the same bound."""
        newton, solution = self.newton, self.solution
        assert solution is not None
        residual = (newton.columns.y - newton.columns.forward(z)).ravel() * self._unit_y
        x = z.ravel() * (self._unit_y / self._unit_a)
        self._keep(x, self._places, residual, 0.0, reached=True)
        self.fun = value


def _norm(v: Vector) -> float:
    return float(np.linalg.norm(v))


def _lengths_of_rows(newton: BlockNewton) -> Vector:
    """Return for each row the length of its block, 1 where it is zero."""
    return newton.spread(np.where(newton.active, newton.lengths, 1.0))[:, None]
