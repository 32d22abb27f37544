"""Newton's method for many right-hand sides at once, real or complex: what they share is computed once.

All searches step together: products with ``A^H`` are matrix products for all of them. ``A^H A`` is formed in
single precision: on a device once, on the host for the columns that each search uses. At a point ``z`` with
correlations ``g = A^H (y - A z)`` and directions ``u = z / |z|`` (signs of real numbers) a step to the
multiplier ``alpha`` solves

    (A^H A + turning) move = g - alpha w u

where turning a short complex coefficient costs ``alpha w / |z|``. Residuals are exact, so that rounding of
the Gram matrix is corrected by the next step. All arrays are where the matrix is, on the host or on a device;
of a step only sizes are copied to the host. What comes out is proved; where a search does not end, the
problem is solved alone.
"""

from __future__ import annotations

import math
import time
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

import numpy as np

from lopro.basis_pursuit import column_search, support_newton
from lopro.basis_pursuit.application import BPDNResult, ProblemData
from lopro.basis_pursuit.block_newton import aimed_residual
from lopro.basis_pursuit.padded_rows import (
    HostColumns,
    WholeGram,
    conj,
    count_true,
    entries_at,
    gathered,
    largest_in_rows,
    lengths,
    real,
    solve_each,
    spread,
)
from lopro.basis_pursuit.problem import NORMS, SparseProblem
from lopro.certificates import Certificate
from lopro.constraints.base import ValidInequality
from lopro.core.arrays import (
    Array,
    asarray_like,
    copy,
    eps,
    is_complex,
    is_single,
    isfinite,
    namespace,
    take,
    to_numpy,
    zeros,
)
from lopro.core.counting import Counts
from lopro.core.deadline import OutOfTime, current_deadline
from lopro.core.threads import one_pool
from lopro.driver.minorants import FENCHEL
from lopro.driver.result import History, Iterate, Status
from lopro.driver.workbench import Options
from lopro.maps import ArrayMap, LinearMap, NumPyMap
from lopro.problem import Problem
from lopro.protocol import Target

__all__ = ["BatchNewton", "Proposal", "Searches", "solve_dense"]


@dataclass(frozen=True)
class Settings:
    """Settings of the searches of a batch."""

    #: Searches that share products: enough for the speed of matrix products, few enough to hold their points.
    products: int = 128
    device_products: int = 512
    #: Searches of about the same size whose systems are set up together, and entries of these on a device.
    systems: int = 32
    entries: int = 2**28
    #: On a device: bytes of the Gram matrix for each byte of A.
    memory: float = 5.0
    #: On a device: columns whose Gram matrix, ``m d^2`` operations, pays with each right-hand side. 10,000
    #: columns of 2,000 rows take an H200 10 to 20 ms, where each right-hand side alone takes 30.
    columns_each: int = 2000
    #: Most steps of a search.
    steps: int = 30
    #: The length of a new coefficient in units of what it would grow to alone.
    growth: float = 0.3
    #: Share of the rows: larger supports are left to a separate search.
    support: float = 0.75


SETTINGS = Settings()


@dataclass(frozen=True, eq=False)
class Proposal:
    """A feasible point with a proof of optimality, and the number of steps."""

    x: Array
    fun: float
    inequality: ValidInequality
    steps: int


class BatchNewton:
    """Searches for many right-hand sides that share one dense matrix in double precision.

    Parameters
    ----------
    A : LinearMap
        The matrix. Its Gram matrix is formed.
    tol : float
        Relative gap a proposal has to prove.

    Examples
    --------
    >>> import numpy as np
    >>> from lopro.basis_pursuit.batch_newton import BatchNewton
    >>> from lopro.basis_pursuit.application import bpdn_problem
    >>> from lopro.basis_pursuit.problem import SparseProblem
    >>> from lopro.maps import linear_map
    >>> A = linear_map(np.random.default_rng(0).standard_normal((60, 90)))
    >>> Y = A.columns([3, 70])
    >>> form = SparseProblem.of(bpdn_problem(A, Y[:, 0], 0.1), np.zeros(90))
    >>> found = BatchNewton(A, 1e-8).search(form, Y, np.full(2, 0.1))
    >>> [np.flatnonzero(p.x).tolist() for p in found]
    [[3], [70]]
    """

    def __init__(self, A: LinearMap, tol: float) -> None:
        self.tol = tol
        self._matrix = A.matrix
        rows, columns = A.shape
        on_host = isinstance(self._matrix, np.ndarray)
        current_deadline().need(rows * columns * (1.0 if on_host else columns))
        with _beyond_the_range():
            self._columns = HostColumns(self._matrix) if on_host else WholeGram(self._matrix)

    @staticmethod
    def pays(A: LinearMap, count: int) -> bool:
        """Whether sharing is possible, cheaper than ``count`` calls, and affordable in memory.

        On the host the columns are copied, which takes as long as a product, and each call takes several.
        """
        if isinstance(A, NumPyMap):
            return count > 1 and not is_single(A.like)
        if not isinstance(A, ArrayMap) or is_single(A.like) or is_complex(A.like):
            return False
        rows, columns = A.shape
        return columns <= SETTINGS.columns_each * count and columns <= 2.0 * SETTINGS.memory * rows

    def search(self, form: SparseProblem, Y: Array, radii: Any) -> list[Proposal | None]:
        """Return a proposal for each right-hand side; None where a search does not end.

        Parameters
        ----------
        form : SparseProblem
            The problem of one of them: weights and signs are those of all.
        Y : array of shape (m, k)
            The right-hand sides.
        radii : array of k numbers
            Their radii, on the host.
        """
        found: list[Proposal | None] = []
        on_host = isinstance(self._matrix, np.ndarray)
        step = SETTINGS.products if on_host else SETTINGS.device_products
        for start in range(0, Y.shape[1], step):
            at = slice(start, min(start + step, Y.shape[1]))
            with one_pool(), _beyond_the_range():
                searches = Searches(
                    self._matrix, self._columns, form, Y[:, at].T, radii[at], self.tol
                )
                found += searches.proposals()
        return found


def _beyond_the_range() -> np.errstate:
    """Ignore overflow: searches whose numbers leave the range of single precision are given up."""
    return np.errstate(over="ignore", invalid="ignore", divide="ignore")


def solve_dense(
    data: ProblemData, Y: Array, radii: Any, options: Options
) -> list[BPDNResult | None]:
    """Solve problems with one dense matrix in double precision; None for those that are left."""
    nothing: list[BPDNResult | None] = [None] * len(radii)
    if data.groups is not None or not BatchNewton.pays(data.A, len(radii)):
        return nothing
    started = time.perf_counter()
    first = data.problem(Y[:, 0], float(radii[0]))
    alike = first.constraint.like.dtype == data.A.like.dtype and isfinite(Y)  # type: ignore[union-attr]
    if not alike or not isinstance(first.objective, NORMS):
        return nothing
    form = SparseProblem.of(first, first.start(None))
    there = asarray_like(Y, data.A.like)
    with suppress(OutOfTime):
        proposals = BatchNewton(data.A, options.tol).search(form, there, radii)
        seconds = (time.perf_counter() - started) / len(radii)
        target = Target(options.tol, first.gap_scale or 0.0)
        return [
            None if p is None else _from_batch(p, first, form, target, seconds) for p in proposals
        ]
    return nothing


def _from_batch(
    found: Proposal, first: Problem, form: SparseProblem, target: Target, seconds: float
) -> BPDNResult:
    """Return a proved point as a result; its residual is no longer than its radius, as it was computed."""
    proof, status = found.inequality, Status.CONVERGED
    assert proof.dual is not None
    certificate = Certificate.of(found.fun, -proof.support, 0.0, FENCHEL, target, absolute=0.0)
    # The first correlations are those of y, and the Gram matrix counts for everyone.
    counts = Counts(matvecs=found.steps, rmatvecs=found.steps + 1, factorizations=1)
    history = History()
    history.append(
        Iterate(
            x=found.x, epoch=1, iterations=found.steps, projections=0,
            products=counts.matvecs + counts.rmatvecs, fun=found.fun, violation=0.0,
            lower_bound=certificate.lower_bound, gap=certificate.gap,
            relative_gap=certificate.relative_gap, penalty_weight=math.nan, exact=None,
            regularity=math.nan, seconds=seconds,
        )
    )  # fmt: skip
    return BPDNResult(
        x=found.x, fun=found.fun, status=status, message=status.value, certificate=certificate,
        counts=counts, certificate_counts=Counts(), iterations=found.steps, seconds=seconds,
        method="BatchNewton", history=history, multiplier=proof,
        multipliers=proof.dual,
        dual=-proof.dual[0 if form.ball_first else 1],
    )  # fmt: skip


class Searches:
    """Several searches at once: each array has one row per search that is not finished."""

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
        # Problems with the solution zero, and equations, are solved separately.
        self._go_on((self.sigma > 0.0) & (self.sigma < 0.9 * self.size))

    def _go_on(self, these: Array, *names: str) -> None:
        """Keep some of the rows, also of the arrays ``names``."""
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
            self._go_on(~done, "pulled", "length")
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
        # Where rounding matters exact sums are needed: these are solved separately.
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
        """Choose the columns of the next step, and the least alpha of the step."""
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
        # At most a third as many columns enter as there are, and at most half of the remaining rows.
        missing, nonzeros = to_numpy(xp.stack([missing, nonzeros]))
        left = (2 if is_complex(self.z) else 1) * rows - nonzeros
        room = np.minimum(np.maximum(max(10, rows // 16), nonzeros // 3), np.maximum(1, left // 2))
        excess = largest_in_rows(excess, missing, room)
        self.taking_part = support | (excess > 0.0)
        few = count_true(self.taking_part) <= int(max(20.0, SETTINGS.support * rows))
        self._go_on(few, "pulled", "length", "lowest", "taking_part")

    def _step_all(self) -> None:
        """Make a Newton step of all searches, in groups of about the same size."""
        sizes = to_numpy(count_true(self.taking_part))
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
        """Return points and multipliers of some searches after a Newton step with ``n`` columns at most.

        Unknowns are the parts of the moves along and across the coefficients.
        """
        xp = self.xp
        mask, alpha, slope, z = (
            take(v, some) for v in (self.taking_part, self.alpha, self.pulled, self.z)
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
        # The curvature across a coefficient is inverse to its modulus; new ones have an estimated modulus.
        stiff = entries_at(self.stiff, places)
        new = SETTINGS.growth * (pulls - start * weights)
        units = xp.where(there, start * weights, 1.0 + none)
        grown = xp.where(lengths > 0.0, lengths * stiff, new) / units
        turning = stiff / xp.maximum(grown, math.sqrt(eps(grown)) + none)
        turning = xp.where(there, turning, none)
        forces = xp.where(there, conj(u) * slope, 0.0 * z)
        H, felt = self._system(self.places[some], places, there, u, turning, forces)
        ahead = weights if felt.shape[1] == n else xp.concat([weights, none], axis=1)
        right = xp.stack([felt - start * ahead, ahead], axis=2)
        solved = solve_each(H, right)
        p, q = solved[:, :, 0], solved[:, :, 1]
        after = self._alphas(some, p, q, right, felt, turning)
        move = p - (after - alpha)[:, None] * q
        z = z + u * (move[:, :n] + 1j * move[:, n:] if is_complex(z) else move)
        gone = (real(conj(u) * z) <= 0.0) | ~there | ~xp.isfinite(z)
        return spread(xp.where(gone, 0.0 * u, z), mask, places), after

    def _system(
        self, owners: Any, places: Array, there: Array, u: Array, turning: Array, forces: Array
    ) -> tuple[Array, Array]:
        """Return matrices, padded with ones on the diagonal, and correlations: along, and across."""
        xp = self.xp
        G = self.columns.gram_matrices(places, owners)
        u = xp.astype(u, G.dtype)
        G *= conj(u)[:, :, None]  # u is zero where there is no column
        G *= u[:, None, :]
        filled = xp.astype(~there, turning.dtype)
        H, felt, added = real(G), real(forces), filled
        if is_complex(G):
            imag = xp.imag(G)
            upper, lower = xp.concat([H, -imag], axis=2), xp.concat([imag, H], axis=2)
            H = xp.concat([upper, lower], axis=1)
            felt = xp.concat([felt, xp.imag(forces)], axis=1)
            added = xp.concat([filled, turning + filled], axis=1)
        eye = asarray_like(np.eye(added.shape[1], dtype=np.float32), H)
        return H + xp.astype(added, H.dtype)[:, :, None] * eye, felt

    def _alphas(
        self, some: Any, p: Array, q: Array, right: Array, felt: Array, turning: Array
    ) -> Array:
        """Return the next alphas: those at which residuals become as long as sigma, or the lowest allowed.

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
        b = xp.sum(felt * q, axis=1) - pq
        left = length**2 - 2.0 * xp.sum(felt * p, axis=1) + pp
        # For real data a step is exact: the target is sigma itself.
        allowed = self.tol * float(is_complex(z)) * xp.sum(self.weights * abs(z), axis=1)
        aimed = aimed_residual(*to_numpy(xp.stack([sigma, allowed, alpha, size])))
        c = left - asarray_like(aimed, left) ** 2
        depth = b * b - a * c
        root = alpha + (xp.sqrt(xp.maximum(depth, 0.0 * depth)) - b) / a
        root = xp.where((depth >= 0.0) & xp.isfinite(root), root, 0.0 * alpha)
        return xp.maximum(xp.minimum(root, 2.0 * alpha), lowest)
