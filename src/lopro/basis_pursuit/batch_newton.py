"""Newton's method for many right-hand sides at once, real or complex: what they share is computed once.

All searches step together: products with ``A`` and its adjoint are matrix products for all of them, and
``A^H A`` is formed once, in single precision. At a point ``z`` with correlations ``g = A^H (y - A z)`` and
directions ``u = z / |z|`` (signs of real numbers) a step to the multiplier ``alpha`` solves

    (A^H A + turning) move = g - alpha w u

where turning a short complex coefficient costs ``alpha w / |z|``. Residuals are exact, so that rounding of
the Gram matrix is corrected by the next step. What comes out is a proposal, which the driver certifies; where
a search does not end, the problem is solved alone.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from lopro.basis_pursuit.block_matrix import solve_in_single
from lopro.basis_pursuit.block_newton import aimed_residual
from lopro.basis_pursuit.columns import Vector
from lopro.basis_pursuit.problem import SparseProblem, stretch_at
from lopro.constraints.base import ValidInequality
from lopro.core.deadline import current_deadline
from lopro.core.threads import one_pool
from lopro.maps import LinearMap, NumPyMap
from lopro.problem import Problem

__all__ = ["SETTINGS", "BatchNewton", "Proposal"]


@dataclass(frozen=True)
class Settings:
    """What steers the searches of a batch."""

    #: Searches that share products: enough for the speed of matrix products, few enough to hold their points.
    products: int = 128
    #: Searches of about the same size whose systems are set up together.
    systems: int = 32
    #: Bytes of the Gram matrix for each byte of A.
    memory: float = 5.0
    #: Columns whose Gram matrix, ``m d^2`` operations, pays with each right-hand side: alone it takes a dozen
    #: products of ``2 m d``, at a tenth of the speed.
    columns_each: int = 200
    #: Steps after which a search is given up.
    steps: int = 30
    #: The first alpha, of the largest correlation, and what a step may leave of it.
    start: float = 0.1
    descent: float = 0.1
    #: alpha stays where it is beyond this error of the equations, in units of alpha, and beyond this share of
    #: missing columns.
    unsolved: float = 0.5
    missing: float = 0.2
    #: The length of a new coefficient in units of what it would grow to alone, and the least of any.
    growth: float = 0.3
    least: float = 1e-6
    #: Of the rows: a support beyond is left to a search of its own.
    support: float = 0.75


SETTINGS = Settings()


@dataclass(frozen=True)
class Proposal:
    """A point that should be a solution, with what proves it, and the steps that it took."""

    x: Vector
    image: Vector  # A x
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
    >>> from lopro.maps import linear_map
    >>> A = linear_map(np.random.default_rng(0).standard_normal((60, 90)))
    >>> problems = [bpdn_problem(A, A.columns([j])[:, 0], 0.1) for j in (3, 70)]
    >>> [np.flatnonzero(p.x).tolist() for p in BatchNewton(A, 1e-8).search(problems)]
    [[3], [70]]
    """

    def __init__(self, A: LinearMap, tol: float) -> None:
        self.tol = tol
        self._matrix: Vector = np.asarray(A.toarray())
        rows, columns = A.shape
        iscomplex = np.iscomplexobj(self._matrix)
        current_deadline().need((4.0 if iscomplex else 1.0) * rows * columns**2)
        with _beyond_the_range():
            rough = self._matrix.astype(np.complex64 if iscomplex else np.float32)
            self._gram: Vector = rough.conj().T @ rough

    @staticmethod
    def pays(A: LinearMap, count: int) -> bool:
        """Whether sharing is possible, cheaper than ``count`` calls, and affordable in memory."""
        if not isinstance(A, NumPyMap) or A.like.dtype not in (np.float64, np.complex128):
            return False
        rows, columns = A.shape
        return columns <= SETTINGS.columns_each * count and columns <= 2.0 * SETTINGS.memory * rows

    def search(self, problems: Sequence[Problem]) -> list[Proposal | None]:
        """Return a proposal for each problem; None where a search does not end."""
        found: list[Proposal | None] = []
        for start in range(0, len(problems), SETTINGS.products):
            some = problems[start : start + SETTINGS.products]
            sparse = [SparseProblem.of(p, np.zeros(self._gram.shape[0])) for p in some]
            with one_pool(), _beyond_the_range():
                found += _Searches(self._matrix, self._gram, sparse, self.tol).proposals()
        return found


def _beyond_the_range() -> np.errstate:
    """Ignore overflow: searches whose numbers leave the range of single precision are given up."""
    return np.errstate(over="ignore", invalid="ignore", divide="ignore")


class _Searches:
    """Some searches side by side: a row of each array is one of them."""

    def __init__(
        self, matrix: Vector, gram: Vector, problems: list[SparseProblem], tol: float
    ) -> None:
        self.matrix, self.gram, self.problems, self.tol = matrix, gram, problems, tol
        self.weights, self.nonneg = problems[0].weights, problems[0].nonneg
        self.stiff = np.maximum(gram.diagonal().real.astype(np.float64), np.finfo(np.float64).tiny)
        self.y = np.stack([np.asarray(p.ball.y) for p in problems]).astype(matrix.dtype)
        self.sigma = np.array([p.ball.sigma for p in problems])
        self.z = np.zeros((len(problems), matrix.shape[1]), dtype=matrix.dtype)
        self.found: list[Proposal | None] = [None] * len(problems)
        # Zero is the solution of some, and others are equations: both are solved alone.
        length = np.linalg.norm(self.y, axis=1)
        self.active = np.flatnonzero((self.sigma > 0.0) & (self.sigma < 0.9 * length))
        self.alpha = np.zeros(len(problems))

    def proposals(self) -> list[Proposal | None]:
        """Step until all have ended or are given up."""
        for steps in range(SETTINGS.steps):
            self._price(steps)
            if self.active.size == 0:
                break
            current_deadline().check()
            by_size = np.argsort(self.taking_part.sum(axis=1), kind="stable")
            for start in range(0, len(by_size), SETTINGS.systems):
                self._step(by_size[start : start + SETTINGS.systems])
        return self.found

    def _price(self, steps: int) -> None:
        """Compute residuals and correlations of all; end those that prove to be done."""
        at = self.active
        images = self.z[at] @ self.matrix.T
        residuals = self.y[at] - images
        pulled = (residuals.conj() @ self.matrix).conj()
        kept = [
            row
            for row, j in enumerate(at.tolist())
            if not self._proves(j, residuals[row], pulled[row], images[row], steps)
        ]
        self.active, self.pulled = at[kept], pulled[kept]
        self.length = np.linalg.norm(residuals[kept], axis=1)
        self._choose(steps)

    def _proves(self, j: int, r: Vector, g: Vector, image: Vector, steps: int) -> bool:
        """Whether a point and its residual leave less than half of the gap allowed."""
        if not steps or not 0.0 < float(np.linalg.norm(r)) <= self.sigma[j]:
            return False
        fun = float(self.weights @ np.abs(self.z[j]))
        enough = fun * (1.0 - 0.5 * self.tol)
        found = self.problems[j].proved(r, g, stretch_at(self.z[j], image), above=enough)
        if found is not None:
            self.found[j] = Proposal(self.z[j].copy(), image.copy(), found, steps)
        return found is not None

    def _choose(self, steps: int) -> None:
        """Choose the columns of the next step, and how far alpha may come down."""
        at, rows = self.active, self.y.shape[1]
        size = (self.pulled if self.nonneg else np.abs(self.pulled)) / self.weights
        if not steps:
            self.alpha[at] = SETTINGS.start * size.max(axis=1, initial=0.0)
        alpha, z = self.alpha[at][:, None], self.z[at]
        support = z != 0.0
        excess = np.where(support | (size <= (1.0 + 1e-10) * alpha), 0.0, size)
        missing, nonzeros = np.count_nonzero(excess, axis=1), support.sum(axis=1)
        solved = (nonzeros > 0) & self._solved_well(support, missing, nonzeros)
        self.lowest = np.where(solved, SETTINGS.descent, 1.0) * self.alpha[at]
        # At most a third as many columns join as there are, and fewer as equations run out.
        left = (2 if np.iscomplexobj(z) else 1) * rows - nonzeros
        room = np.minimum(np.maximum(max(10, rows // 16), nonzeros // 3), np.maximum(1, left // 2))
        for i in np.flatnonzero(missing > room):
            excess[i, np.argpartition(-excess[i], room[i])[room[i] :]] = 0.0
        self.taking_part = support | (excess > 0.0)
        few = np.count_nonzero(self.taking_part, axis=1) <= max(20.0, SETTINGS.support * rows)
        for name in ("active", "pulled", "length", "taking_part", "lowest"):
            setattr(self, name, getattr(self, name)[few])

    def _solved_well(self, support: Vector, missing: Vector, nonzeros: Vector) -> Vector:
        """Whether alpha may come down: with signs at once, with directions where the equations are met."""
        z, alpha = self.z[self.active], self.alpha[self.active][:, None]
        if not np.iscomplexobj(z):
            return np.ones(len(z), dtype=bool)
        along = z / np.where(support, np.abs(z), 1.0)
        rest = np.abs(self.pulled - alpha * self.weights * along) / (alpha * self.weights)
        unsolved = np.where(support, rest, 0.0).max(axis=1, initial=0.0)
        return np.asarray(
            (unsolved <= SETTINGS.unsolved) & (missing <= SETTINGS.missing * nonzeros)
        )

    def _step(self, some: Vector) -> None:
        """Make a Newton step of some searches, in coordinates along and across the coefficients."""
        at, mask = self.active[some], self.taking_part[some]
        n = int(mask.sum(axis=1).max())
        if n == 0:
            return
        places = np.argsort(~mask, axis=1, kind="stable")[:, :n]
        there = np.take_along_axis(mask, places, axis=1)
        z = np.take_along_axis(self.z[at], places, axis=1)
        slope = np.take_along_axis(self.pulled[some], places, axis=1)
        alpha, weights = self.alpha[at][:, None], np.where(there, self.weights[places], 0.0)
        lengths, pulls = np.abs(z), np.abs(slope)
        along = np.where(lengths > 0.0, z, slope)
        u = np.where(there, along / np.where(lengths > 0.0, lengths, pulls), 0.0)
        # Turning costs as much as a coefficient is short; new ones have no length yet.
        stiff = self.stiff[places]
        new = SETTINGS.growth * (pulls - alpha * weights)
        grown = np.where(lengths > 0.0, lengths * stiff, new) / (alpha * weights)
        turning = np.where(there, stiff / np.maximum(grown, SETTINGS.least), 0.0)
        forces = np.where(there, u.conj() * slope, 0.0)
        H, felt = self._system(places, there, u, turning, forces)
        ahead = np.zeros_like(felt)
        ahead[:, :n] = weights
        right = np.stack([felt - alpha * ahead, ahead], axis=2)
        p, q = np.moveaxis(solve_in_single(H, right), 2, 0)
        after = self._alphas(some, p, q, right, felt, turning)
        move = p - (after - self.alpha[at])[:, None] * q
        z = z + u * (move[:, :n] + 1j * move[:, n:] if np.iscomplexobj(z) else move)
        z[((u.conj() * z).real <= 0.0) | ~there | ~np.isfinite(z)] = 0.0
        self.alpha[at] = after
        self.z[at] = 0.0
        for j, where, values in zip(at, places, z, strict=True):
            self.z[j, where] = values

    def _system(
        self, places: Vector, there: Vector, u: Vector, turning: Vector, forces: Vector
    ) -> tuple[Vector, Vector]:
        """Return matrices, filled up with ones on the diagonal, and correlations: along, and across."""
        n = places.shape[1]
        G = np.stack([self.gram.take(row, axis=0).take(row, axis=1) for row in places])
        u = u.astype(G.dtype)
        G *= u.conj()[:, :, None]  # u is zero where there is no column
        G *= u[:, None, :]
        filled, diagonal = np.where(there, 0.0, 1.0), np.arange(n)
        H, felt = G.real, forces.real
        if np.iscomplexobj(G):
            H = np.block([[G.real, -G.imag], [G.imag, G.real]])
            H[:, n + diagonal, n + diagonal] += turning + filled
            felt = np.concatenate([forces.real, forces.imag], axis=1)
        H[:, diagonal, diagonal] += filled
        return H, felt

    def _alphas(
        self, some: Vector, p: Vector, q: Vector, right: Vector, felt: Vector, turning: Vector
    ) -> Vector:
        """Return the next alphas: those at which residuals become as long as sigma, or the lowest allowed.

        As ``H p`` is known, ``p' A^H A p`` is ``p' H p`` less what turning costs.
        """
        at, n = self.active[some], turning.shape[1]

        def products(v: Vector, of: int, w: Vector) -> Vector:
            known: Vector = (right[:, :, of] * w).sum(axis=1)
            if w.shape[1] > n:
                known = known - (turning * v[:, n:] * w[:, n:]).sum(axis=1)
            return known

        a, pq, pp = products(q, 1, q), products(q, 1, p), products(p, 0, p)
        b = (felt * q).sum(axis=1) - pq
        left = self.length[some] ** 2 - 2.0 * (felt * p).sum(axis=1) + pp
        # With signs a step is exact, and needs none of the tolerance.
        allowed = self.tol * float(np.iscomplexobj(self.z)) * (np.abs(self.z[at]) @ self.weights)
        size = np.linalg.norm(self.y[at], axis=1)
        c = left - aimed_residual(self.sigma[at], allowed, self.alpha[at], size) ** 2
        depth = b * b - a * c
        root = self.alpha[at] + (np.sqrt(np.maximum(depth, 0.0)) - b) / a
        root = np.where((depth >= 0.0) & np.isfinite(root), root, 0.0)
        return np.maximum(np.minimum(root, 2.0 * self.alpha[at]), self.lowest[some])
