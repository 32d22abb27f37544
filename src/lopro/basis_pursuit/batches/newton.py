"""Newton's method for many right-hand sides at once, real or complex, with shared matrix products.

All searches step together: products with ``A^H`` are matrix products for all of them. ``A^H A`` is formed in
single precision: on a device once, on the host for the columns that each search uses. At a point ``z`` with
correlations ``g = A^H (y - A z)`` and directions ``u = z / |z|`` (signs of real numbers) a step to the
multiplier ``alpha`` solves

    (A^H A + turning) move = g - alpha w u

where ``turning``, the curvature across a complex coefficient, is ``alpha w / |z|``. Residuals are computed in
double precision, so that the next step corrects the rounding of the Gram matrix. All arrays are where the
matrix is; only sizes are copied to the host. Problems whose search does not end are solved alone.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from lopro.basis_pursuit.batches.padded_rows import (
    HostColumns,
    WholeGram,
    conj,
    count_true,
    entries_at,
    gathered,
    largest_in_rows,
    lengths,
    real,
    real_systems,
    solve_each,
    spread,
)
from lopro.basis_pursuit.blocks.newton import GROWTH
from lopro.basis_pursuit.columns import search as column_search
from lopro.basis_pursuit.columns import support_newton
from lopro.basis_pursuit.levels import target_residual
from lopro.basis_pursuit.problem import SparseProblem
from lopro.constraints.base import ValidInequality
from lopro.core.arrays import (
    Array,
    asarray_like,
    copy,
    eps,
    is_complex,
    namespace,
    take,
    to_numpy,
    zeros,
)
from lopro.core.deadline import current_deadline

__all__ = ["Proposal", "Searches"]


@dataclass(frozen=True)
class Settings:
    """Settings of the searches of a batch."""

    #: Searches that share products: many enough for the speed of matrix products, few enough to hold the
    #: points and the correlations of all, two arrays with a row for each.
    products: int = 128
    device_products: int = 512
    #: Searches of similar size with common systems; on a device, entries of these (1 GiB in float32).
    systems: int = 32
    entries: int = 2**28
    #: On a device: the largest Gram matrix, in units of the size of A. As documented in `lopro.bpdn`.
    memory: float = 5.0
    #: On a device: columns for each right-hand side from which on the Gram matrix, ``m d^2`` operations,
    #: costs more than it saves. 10,000 columns of 2,000 rows take an H200 10 to 20 ms, where each right-hand
    #: side alone takes 30.
    columns_each: int = 2000
    #: The maximal number of steps; ten times as many change no count of `benchmarks.constants`.
    steps: int = 30
    #: The largest support as a share of the rows; others are solved alone.
    support: float = 0.75


SETTINGS = Settings()


@dataclass(frozen=True, eq=False)
class Proposal:
    """A feasible point with its proved gap, and the number of steps."""

    x: Array
    fun: float
    inequality: ValidInequality
    steps: int


class Searches:
    """Several searches at once: each array has one row for each search that is not finished."""

    def __init__(
        self,
        matrix: Array,
        columns: HostColumns | WholeGram,
        form: SparseProblem,
        y: Array,
        radii: Any,
        tol: float,
    ) -> None:
        xp = self.xp = namespace(matrix)
        self.matrix, self.columns, self.form, self.tol = matrix, columns, form, tol
        self.weights, self.nonneg = form.weights, form.nonneg
        tiny = float(np.finfo(np.float64).tiny)
        self.stiff = xp.maximum(columns.squares, tiny + 0.0 * self.weights)
        self.y = xp.astype(y, matrix.dtype)
        self.sigma = asarray_like(np.asarray(radii, dtype=np.float64), self.stiff)
        self.z = zeros((y.shape[0], matrix.shape[1]), matrix)
        self.alpha, self.size = 0.0 * self.sigma, lengths(self.y)
        self.found: list[Proposal | None] = [None] * y.shape[0]
        #: The index of the right-hand side of each row.
        self.places = np.arange(y.shape[0])
        # Problems with the solution zero, and equations, are solved alone.
        self._keep((self.sigma > 0.0) & (self.sigma < 0.9 * self.size))

    def _keep(self, these: Array, *names: str) -> None:
        """Keep some of the rows of the state, and of the arrays ``names``."""
        on_host = to_numpy(these)
        if not on_host.all():
            kept = np.flatnonzero(on_host)
            self.places = self.places[kept]
            index = asarray_like(kept, self.xp.astype(self.sigma[:0], self.xp.int64))
            for name in ("y", "sigma", "z", "alpha", "size", *names):
                setattr(self, name, self.xp.take(getattr(self, name), index, axis=0))

    def proposals(self) -> list[Proposal | None]:
        """Step until all searches are finished or the limit of steps is reached."""
        for steps in range(SETTINGS.steps):
            self._price(steps)
            if self.places.size == 0:
                break
            current_deadline().check()
            self._step_all()
        return self.found

    def _price(self, steps: int) -> None:
        """Compute residuals and correlations of all searches; remove those whose gap is closed."""
        images = self.columns.images(self.z) if steps else 0.0 * self.y
        residuals = self.y - images
        self.pulled = conj(conj(residuals) @ self.matrix)
        self.length = lengths(residuals)
        if steps and self.places.size:
            done = self._proved(residuals, images, steps)
            self._keep(~done, "pulled", "length")
        if self.places.size:
            self._choose(steps)

    def _proved(self, residuals: Array, images: Array, steps: int) -> Array:
        """Record the points whose gap is below half of the tolerance.

        The formulas are those of `SparseProblem.proved`, for all rows at once.
        """
        xp, length, tiny = self.xp, self.length, eps(self.stiff)
        one = xp.ones_like(length)
        moved, across = lengths(images), lengths(self.z)
        stretch = xp.where(across > 0.0, moved / xp.where(across > 0.0, across, one), 0.0 * one)
        safe = xp.where(length > 0.0, length, one)
        stretch = xp.maximum(stretch, lengths(self.pulled) / safe)
        sizes = self.pulled if self.nonneg else abs(self.pulled)
        gauge = xp.max((sizes + (8.0 * tiny * stretch * length)[:, None]) / self.weights, axis=1)
        shrink = 1.0 / xp.where(gauge > 0.0, gauge, one)
        of_y = -shrink * real(xp.sum(conj(self.y) * residuals, axis=1))
        of_ball = self.sigma * shrink * length
        blur = 8.0 * tiny * (self.size * shrink * length + of_ball)
        support = of_y + of_ball + blur
        fun = xp.sum(self.weights * abs(self.z), axis=1)
        feasible = (length > 0.0) & (length <= self.sigma) & (gauge > 0.0) & xp.isfinite(gauge)
        # Where rounding errors matter, exact sums are needed: these problems are solved alone.
        exact = blur <= 1e-10 * abs(support)
        done = feasible & exact & (-support > fun * (1.0 - 0.5 * self.tol))
        numbers = to_numpy(xp.stack([xp.astype(done, fun.dtype), fun, support, shrink]))
        for row in np.flatnonzero(numbers[0]).tolist():
            own_fun, own_support, factor = numbers[1:, row].tolist()
            proof = self._inequality(row, residuals, factor, own_support)
            self.found[self.places[row]] = Proposal(copy(self.z[row, :]), own_fun, proof, steps)
        return done

    def _inequality(
        self, row: int, residuals: Array, shrink: float, support: float
    ) -> ValidInequality:
        of_ball, correlations = -shrink * residuals[row, :], shrink * self.pulled[row, :]
        if not self.nonneg:
            return ValidInequality(-correlations, support, (of_ball,))
        of_signs = correlations - self.weights
        dual = (of_ball, of_signs) if self.form.ball_first else (of_signs, of_ball)
        return ValidInequality(-self.weights, support, dual)

    def _choose(self, steps: int) -> None:
        """Choose the columns and the least alpha of the next step."""
        xp, rows = self.xp, self.y.shape[1]
        size = (self.pulled if self.nonneg else abs(self.pulled)) / self.weights
        if not steps:
            self.alpha = column_search.SETTINGS.start * xp.max(xp.maximum(size, 0.0 * size), axis=1)
        alpha, support = self.alpha[:, None], self.z != 0.0
        excess = xp.where(
            support | (size <= (1.0 + support_newton.SETTINGS.close) * alpha), 0.0 * size, size
        )
        missing, nonzeros = count_true(excess != 0.0), count_true(support)
        lowest = column_search.SETTINGS.descent * self.alpha
        self.lowest = xp.where(nonzeros > 0, lowest, self.alpha)
        # At most a third of the nonzeros are added, and at most half of the remaining rows.
        missing, nonzeros = to_numpy(xp.stack([missing, nonzeros]))
        left = (2 if is_complex(self.z) else 1) * rows - nonzeros
        room = np.minimum(np.maximum(max(10, rows // 16), nonzeros // 3), np.maximum(1, left // 2))
        excess = largest_in_rows(excess, missing, room)
        self.included = support | (excess > 0.0)
        few = count_true(self.included) <= int(max(20.0, SETTINGS.support * rows))
        self._keep(few, "pulled", "length", "lowest", "included")

    def _step_all(self) -> None:
        """Make a Newton step of all searches, in groups of about the same size."""
        sizes = to_numpy(count_true(self.included))
        order = np.argsort(sizes, kind="stable")
        largest = max(1, int(sizes.max()))
        systems_at_once = SETTINGS.systems
        if not isinstance(self.z, np.ndarray):
            systems_at_once = max(1, SETTINGS.entries // largest**2)
        groups = [order[i : i + systems_at_once] for i in range(0, len(order), systems_at_once)]
        moved = [self._step(some, int(sizes[some].max())) for some in groups]
        back = np.argsort(order)
        self.z, self.alpha = (
            take(self.xp.concat([parts[k] for parts in moved]), back) for k in range(2)
        )

    def _step(self, some: Any, n: int) -> tuple[Array, Array]:
        """Return points and multipliers of some searches after a Newton step with at most ``n`` columns.

        The unknowns are the parts of the moves along and across the coefficients.
        """
        xp = self.xp
        mask, alpha, slope, z = (
            take(v, some) for v in (self.included, self.alpha, self.pulled, self.z)
        )
        if n == 0:
            return z, alpha
        places = xp.argsort(xp.astype(~mask, xp.int8), axis=1, stable=True)[:, :n]
        there = gathered(mask, places)
        start, weights = alpha[:, None], entries_at(self.weights, places)
        z, slope = gathered(z, places), gathered(slope, places)
        none = 0.0 * weights
        weights = xp.where(there, weights, none)
        lengths, pulls = abs(z), abs(slope)
        along, safe = xp.where(lengths > 0.0, z, slope), xp.where(lengths > 0.0, lengths, pulls)
        u = xp.where(there & (safe > 0.0), along / xp.where(safe > 0.0, safe, 1.0 + none), 0.0 * z)
        # The curvature across a coefficient is inverse to its modulus, which is estimated for new ones.
        stiff = entries_at(self.stiff, places)
        new = GROWTH * (pulls - start * weights)
        units = xp.where(there, start * weights, 1.0 + none)
        grown = xp.where(lengths > 0.0, lengths * stiff, new) / units
        turning = stiff / xp.maximum(grown, math.sqrt(eps(grown)) + none)
        turning = xp.where(there, turning, none)
        forces = xp.where(there, conj(u) * slope, 0.0 * z)
        G = self.columns.gram_matrices(places, self.places[some])
        H, correlations = real_systems(G, there, u, turning, forces)
        ahead = weights if correlations.shape[1] == n else xp.concat([weights, none], axis=1)
        right = xp.stack([correlations - start * ahead, ahead], axis=2)
        solved = solve_each(H, right)
        p, q = solved[:, :, 0], solved[:, :, 1]
        after = self._alphas(some, p, q, right, correlations, turning)
        move = p - (after - alpha)[:, None] * q
        z = z + u * (move[:, :n] + 1j * move[:, n:] if is_complex(z) else move)
        gone = (real(conj(u) * z) <= 0.0) | ~there | ~xp.isfinite(z)
        return spread(xp.where(gone, 0.0 * u, z), mask, places), after

    def _alphas(
        self, some: Any, p: Array, q: Array, right: Array, correlations: Array, turning: Array
    ) -> Array:
        """Return the next alphas: those for which residuals have the length sigma, or the lowest allowed.

        As ``H p`` is known, ``p' A^H A p`` is ``p' H p`` less the curvature of the norm.
        """
        xp, n = self.xp, turning.shape[1]
        alpha, sigma, size, length, lowest, z = (
            take(v, some)
            for v in (self.alpha, self.sigma, self.size, self.length, self.lowest, self.z)
        )

        def products(v: Array, of: int, w: Array) -> Array:
            known = xp.sum(right[:, :, of] * w, axis=1)
            if w.shape[1] > n:
                known = known - xp.sum(turning * v[:, n:] * w[:, n:], axis=1)
            return known

        a, pq, pp = products(q, 1, q), products(q, 1, p), products(p, 0, p)
        b = xp.sum(correlations * q, axis=1) - pq
        left = length**2 - 2.0 * xp.sum(correlations * p, axis=1) + pp
        # For real data a step is exact, and the target is sigma itself.
        allowed = self.tol * float(is_complex(z)) * xp.sum(self.weights * abs(z), axis=1)
        rounding = 1e-12 * sigma + 4.0 * eps(sigma) * size
        aimed = target_residual(*to_numpy(xp.stack([sigma, allowed, alpha, rounding])))
        c = left - asarray_like(aimed, left) ** 2
        depth = b * b - a * c
        root = alpha + (xp.sqrt(xp.maximum(depth, 0.0 * depth)) - b) / a
        root = xp.where((depth >= 0.0) & xp.isfinite(root), root, 0.0 * alpha)
        return xp.maximum(xp.minimum(root, 2.0 * alpha), lowest)
