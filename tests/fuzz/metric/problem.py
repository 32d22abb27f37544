"""Metric learning for the judge, without library code: squared losses and an l1 norm over psd matrices."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from fuzz.general.matrix_sets import least_eigenvalue, symmetric_basis
from fuzz.general.sets import Array
from fuzz.judge.conic import Program
from fuzz.judge.contract import SLACK, eps_of, feasible_up_to
from fuzz.judge.wide import norm, power_of_two, wide

__all__ = ["MetricProblem"]

#: The rounding unit of double precision.
DOUBLE = float(np.finfo(np.float64).eps)


@dataclass(frozen=True)
class MetricProblem:
    """Differences of samples and the target squared distances."""

    Z: Any  # in long double, one row for each pair
    targets: Array
    l1: float

    @property
    def dim(self) -> int:
        """Number of features."""
        return int(self.Z.shape[1])

    def distances(self, A: Any) -> Any:
        """Return ``z_e'A z_e``."""
        return np.sum((self.Z @ wide(A)) * self.Z, axis=1)

    def value(self, A: Any) -> Any:
        """Return the objective in long double."""
        r = wide(self.targets) - self.distances(A)
        return 0.5 * np.mean(r**2) + self.l1 * self._off(A)

    def loss(self, A: Any) -> Any:
        """Return the objective without the norm."""
        return 0.5 * np.mean((wide(self.targets) - self.distances(A)) ** 2)

    @staticmethod
    def _off(A: Any) -> Any:
        # Not the whole sum less the trace: next to a large diagonal the rest would be lost.
        sizes = np.abs(wide(A))
        np.fill_diagonal(sizes, 0)
        return np.sum(sizes)

    def size(self, A: Any) -> float:
        """Return the size of the terms that were added up.

        Distances may be computed from the samples, so what cancels is as large as the largest difference.
        """
        r = np.abs(wide(self.targets) - self.distances(A))
        u = np.abs(self.Z).max(axis=0)
        terms = np.sum(u * (np.abs(wide(A)) @ u))
        return float(np.mean(r * (terms + np.abs(self.targets))) + self.l1 * self._off(A))

    # The cone, in the units of each feature: eigenvalues of a matrix with about ones on its diagonal.

    def violation(self, A: Any) -> float:
        """Return how far ``A`` is from the cone, whatever the units of the features are."""
        size = norm(A)
        if size == 0:
            return 0.0
        least = self._least(eps_of(np.asarray(A).dtype))
        A = wide(A)
        D = [
            power_of_two(float(np.sqrt(max(v, b))))
            for v, b in zip(np.diagonal(A), least, strict=True)
        ]
        scaled = A / wide(D)[:, None] / wide(D)[None, :]
        skew = float(norm(A - A.T) / size)
        return max(skew, float(max(-least_eigenvalue(scaled), np.longdouble(0))))

    def _least(self, eps: float) -> Array:
        """Return the diagonal entries below which a feature counts as unused.

        Where a feature alone explains the targets it has the entry ``max(targets) / scale^2``, known up to
        rounding. A fifth of that rounding must not look like more violation than a result may have.
        """
        eps = max(eps, DOUBLE)
        share = eps / (5.0 * SLACK * feasible_up_to(eps))
        return share * max(float(self.targets.max()), 1e-300) / self.scales**2

    def inside(self, A: Any) -> Any:
        """Return ``A``, symmetric, with its diagonal raised until it is psd beyond doubt."""
        A = wide(A)
        A = (A + A.T) / 2
        left = self.violation(A)
        least = self._least(DOUBLE)
        room = np.diag(np.maximum(np.diagonal(A), wide(least)))
        for grown in (1.0, 4.0, 64.0):
            raised = A + room * np.longdouble(4.0 * left * grown + 1e-18)
            if self.violation(raised) == 0.0:
                return raised
        return None

    @cached_property
    def scales(self) -> Array:
        """The size of each feature, a power of two."""
        sizes = np.sqrt(np.mean(self.Z**2, axis=0))
        return np.array([power_of_two(float(v)) for v in sizes])

    def reference(self) -> tuple[Array, float]:
        """Return Clarabel's matrix and lower bound, from features scaled to order one."""
        d, n = self.dim, len(self.targets)
        S = 1.0 / self.scales
        Z = np.asarray(self.Z * wide(S), dtype=np.float64)
        program = Program(symmetric_basis(d))
        r = program.lift(n)
        squares = np.einsum("ei,ej->eij", Z, Z).reshape(n, d * d)
        program.zero([(r, -np.eye(n)), (program.x, -squares)], self.targets.astype(np.float64))
        program.minimise_square(r, factor=1.0 / n)
        program.semidefinite(d, [(program.x, np.eye(d * d))], np.zeros(d * d))
        weights = self.l1 * S[:, None] * S[None, :] * (1.0 - np.eye(d))
        if weights.any():
            t, one = program.lift(d * d), np.eye(d * d)
            # Multipliers as large as the weights would dominate: the rows have the weights instead.
            w = np.where(weights.ravel() > 0.0, weights.ravel(), 1.0)
            program.minimise(t, (weights.ravel() > 0.0).astype(float))
            program.positive([(t, one), (program.x, -w[:, None] * one)], np.zeros(d * d))
            program.positive([(t, one), (program.x, w[:, None] * one)], np.zeros(d * d))
        found = program.solve()
        B = found.point.reshape(d, d)
        lower = found.lower if found.solved else -np.inf
        return B * S[:, None] * S[None, :], lower
