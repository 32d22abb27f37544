"""Basis pursuit denoising for many complex right-hand sides at once: what they share is computed once.

Searches walk in step: products with ``A`` and its adjoint are matrix products for all of them, ``A^H A`` is
formed once, and Newton's equations, in radial and tangential parts of the coefficients, are solved in one
call for searches with about as many nonzeros. What comes out is a proposal, which the driver certifies; where
a search does not come to an end, the problem is solved alone.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeAlias

import numpy as np

from lopro.basis_pursuit.block_newton import aimed_residual
from lopro.basis_pursuit.lockstep import Proposal
from lopro.basis_pursuit.problem import SparseProblem, stretch_at
from lopro.core.deadline import current_deadline
from lopro.maps import LinearMap, NumPyMap
from lopro.problem import Problem

__all__ = ["BlockLockstep"]

Vector: TypeAlias = "np.ndarray[Any, Any]"

_AT_A_TIME = 128  # searches that share products
_TOGETHER = 32  # of these, searches that share a call of the linear solver
_GRAM_LIMIT = 5.0  # how much larger than A its Gram matrix may be
_COLUMNS_EACH = 200  # the Gram matrix of so many columns pays with each right-hand side
_ROUNDS = 30
_START, _DESCENT = 0.2, 0.3  # of alpha
_CALM, _FEW = 0.5, 0.2  # unrest and missing columns, beyond which alpha stays where it is
_GROWTH, _LEAST = 0.3, 1e-6  # lengths of newcomers, in units of what they would grow to alone


class BlockLockstep:
    """Searches for many right-hand sides that share one dense complex matrix in double precision.

    Parameters
    ----------
    A : LinearMap
        The matrix. Its Gram matrix is formed.
    tol : float
        Relative gap a proposal has to prove.

    Examples
    --------
    >>> import numpy as np
    >>> from lopro.basis_pursuit.block_lockstep import BlockLockstep
    >>> from lopro.basis_pursuit.pose import bpdn_problem
    >>> from lopro.maps import linear_map
    >>> rng = np.random.default_rng(0)
    >>> A = linear_map(rng.standard_normal((60, 90)) + 1j * rng.standard_normal((60, 90)))
    >>> problems = [bpdn_problem(A, A.columns([j])[:, 0], 0.1) for j in (3, 70)]
    >>> [np.flatnonzero(p.x).tolist() for p in BlockLockstep(A, 1e-8).search(problems)]
    [[3], [70]]
    """

    def __init__(self, A: LinearMap, tol: float) -> None:
        self.tol = tol
        self._matrix: Vector = np.asarray(A.toarray())
        rows, columns = A.shape
        current_deadline().need(4.0 * rows * columns**2)
        with np.errstate(over="ignore", invalid="ignore"):
            self._gram: Vector = self._matrix.conj().T @ self._matrix

    @staticmethod
    def pays(A: LinearMap, count: int) -> bool:
        """Whether sharing is possible, cheaper than ``count`` calls, and affordable in memory."""
        if not isinstance(A, NumPyMap) or A.like.dtype != np.complex128 or count < 2:
            return False
        rows, columns = A.shape
        return columns <= _COLUMNS_EACH * count and columns <= _GRAM_LIMIT * rows

    def search(self, problems: Sequence[Problem]) -> list[Proposal | None]:
        """Return a proposal for each problem; None where a search does not come to an end."""
        found: list[Proposal | None] = []
        for start in range(0, len(problems), _AT_A_TIME):
            some = problems[start : start + _AT_A_TIME]
            sparse = [SparseProblem.of(p, np.zeros(self._gram.shape[0])) for p in some]
            with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
                found += _Walks(self._matrix, self._gram, sparse, self.tol).proposals()
        return found


class _Walks:
    """Some searches side by side: a row of each array is one of them."""

    def __init__(
        self, matrix: Vector, gram: Vector, problems: list[SparseProblem], tol: float
    ) -> None:
        self.matrix, self.gram, self.problems, self.tol = matrix, gram, problems, tol
        self.weights = problems[0].weights
        self.stiff = np.maximum(gram.diagonal().real, np.finfo(np.float64).tiny)
        self.y = np.stack([np.asarray(p.ball.y) for p in problems]).astype(np.complex128)
        self.sigma = np.array([p.ball.sigma for p in problems])
        self.z = np.zeros((len(problems), matrix.shape[1]), dtype=np.complex128)
        self.found: list[Proposal | None] = [None] * len(problems)
        # Zero is the solution of some, and equations are met by others: both are solved alone.
        length = np.linalg.norm(self.y, axis=1)
        self.walking = np.flatnonzero((self.sigma > 0.0) & (self.sigma < 0.9 * length))
        self.alpha = np.zeros(len(problems))

    def proposals(self) -> list[Proposal | None]:
        """Walk until all have ended or are lost."""
        for steps in range(_ROUNDS):
            if self.walking.size == 0:
                break
            current_deadline().check()
            self._look(steps)
            by_size = np.argsort(self.taking_part.sum(axis=1), kind="stable")
            for start in range(0, len(by_size), _TOGETHER):
                self._step(by_size[start : start + _TOGETHER])
        return self.found

    def _look(self, steps: int) -> None:
        """Compute residuals and correlations of all; let those go that prove to be done."""
        at = self.walking
        images = self.z[at] @ self.matrix.T
        residuals = self.y[at] - images
        pulled = (residuals.conj() @ self.matrix).conj()
        kept = [
            row
            for row, j in enumerate(at.tolist())
            if not self._proves(j, residuals[row], pulled[row], images[row], steps)
        ]
        self.walking = self.walking[kept]
        self.pulled, self.length = pulled[kept], np.linalg.norm(residuals[kept], axis=1)
        self._choose(steps)

    def _proves(self, j: int, r: Vector, g: Vector, image: Vector, steps: int) -> bool:
        """Whether a point and its residual leave less than half of the gap allowed."""
        sparse, sigma = self.problems[j], self.sigma[j]
        length = float(np.linalg.norm(r))
        if not steps or not 0.0 < length <= sigma:
            return False
        fun = float(self.weights @ np.abs(self.z[j]))
        bound = (float(np.vdot(self.y[j], r).real) - sigma * length) / sparse.gauge(g)
        if not fun - bound <= 0.5 * self.tol * fun:
            return False
        found = sparse.proved(r, g, stretch_at(self.z[j], image))
        if found is None or fun + found.support > 0.5 * self.tol * fun:
            return False
        self.found[j] = Proposal(self.z[j].copy(), image.copy(), found, steps)
        return True

    def _choose(self, steps: int) -> None:
        """Say which columns take part in the next step, and how far alpha may come down."""
        at = self.walking
        size = np.abs(self.pulled) / self.weights
        if not steps:
            self.alpha[at] = _START * size.max(axis=1)
        alpha, z = self.alpha[at][:, None], self.z[at]
        active = z != 0.0
        lengths = np.where(active, np.abs(z), 1.0)
        rest = np.abs(self.pulled - alpha * self.weights * z / lengths) / self.weights
        unrest = np.where(active, rest, 0.0).max(axis=1) / self.alpha[at]
        excess = np.where(active | (size <= (1.0 + 1e-10) * alpha), 0.0, size)
        missing, nonzeros = np.count_nonzero(excess, axis=1), active.sum(axis=1)
        calm = (unrest <= _CALM) & (missing <= _FEW * nonzeros) & (nonzeros > 0)
        self.lowest = np.where(calm, _DESCENT, 1.0) * self.alpha[at]
        rows = self.y.shape[1]
        for i in np.flatnonzero(missing):
            many = max(10, rows // 4, int(nonzeros[i]) // 2)
            room = min(many, max(1, (2 * rows - int(nonzeros[i])) // 8))
            if missing[i] > room:
                excess[i, np.argpartition(-excess[i], room)[room:]] = 0.0
        self.taking_part = active | (excess > 0.0)

    def _step(self, some: Vector) -> None:
        """Make a Newton step of some searches, in coordinates along and across the coefficients."""
        at, mask = self.walking[some], self.taking_part[some]
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
        # Turning costs as much as a block is short; newcomers have no length yet.
        stiff = self.stiff[places]
        grown = np.where(lengths > 0.0, lengths * stiff, _GROWTH * (pulls - alpha * weights))
        turning = np.where(there, stiff / np.maximum(grown / (alpha * weights), _LEAST), 0.0)
        H = self._matrices(places, there, u, turning)
        forces = np.where(there, u.conj() * slope, 0.0)
        right = np.zeros((len(at), 2 * n, 2))
        right[:, :n, 0], right[:, n:, 0] = forces.real - alpha * weights, forces.imag
        right[:, :n, 1] = weights
        try:
            p, q = np.moveaxis(np.linalg.solve(H, right), 2, 0)
        except np.linalg.LinAlgError:
            return  # it will be lost
        after = self._alphas(some, p, q, right, forces, turning)
        move = p - (after - self.alpha[at])[:, None] * q
        z = z + u * (move[:, :n] + 1j * move[:, n:])
        z[((u.conj() * z).real <= 0.0) | ~there | ~np.isfinite(z)] = 0.0
        self.alpha[at] = after
        self.z[at] = 0.0
        for j, where, values in zip(at, places, z, strict=True):
            self.z[j, where] = values

    def _matrices(self, places: Vector, there: Vector, u: Vector, turning: Vector) -> Vector:
        """Return Newton's matrices; those of fewer columns are filled up with ones on the diagonal."""
        count, n = places.shape
        G = self.gram[places[:, :, None], places[:, None, :]]
        G *= u.conj()[:, :, None]  # u is zero where there is no column
        G *= u[:, None, :]
        H = np.empty((count, 2 * n, 2 * n))
        H[:, :n, :n] = H[:, n:, n:] = G.real
        H[:, n:, :n] = G.imag
        H[:, :n, n:] = -G.imag
        diagonal = np.arange(n)
        filled = np.where(there, 1e-13 * self.stiff[places], 1.0)
        H[:, diagonal, diagonal] += filled
        H[:, n + diagonal, n + diagonal] += turning + filled
        return H

    def _alphas(
        self, some: Vector, p: Vector, q: Vector, right: Vector, forces: Vector, turning: Vector
    ) -> Vector:
        """Return the next alphas: those at which residuals become as long as sigma, or the lowest allowed.

        As ``H p`` is known, ``p' A^H A p`` is ``p' H p`` less what turning costs.
        """
        at, n = self.walking[some], turning.shape[1]

        def products(v: Vector, of: int, w: Vector) -> Vector:
            turned = (turning * v[:, n:] * w[:, n:]).sum(axis=1)
            known: Vector = (right[:, :, of] * w).sum(axis=1) - turned
            return known

        felt = np.concatenate([forces.real, forces.imag], axis=1)
        a, pq, pp = products(q, 1, q), products(q, 1, p), products(p, 0, p)
        b = (felt * q).sum(axis=1) - pq
        left = self.length[some] ** 2 - 2.0 * (felt * p).sum(axis=1) + pp
        c = left - self._aims(at) ** 2
        depth = b * b - a * c
        root = self.alpha[at] + (np.sqrt(np.maximum(depth, 0.0)) - b) / a
        root = np.where((depth >= 0.0) & np.isfinite(root), root, 0.0)
        return np.maximum(np.minimum(root, 2.0 * self.alpha[at]), self.lowest[some])

    def _aims(self, at: Vector) -> Vector:
        """Return the residuals to aim at."""
        allowed = self.tol * (np.abs(self.z[at]) @ self.weights)
        sizes = np.linalg.norm(self.y[at], axis=1)
        return np.asarray(aimed_residual(self.sigma[at], allowed, self.alpha[at], sizes))
