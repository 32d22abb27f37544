"""The judge of all answers: a matrix is projected on the cone, and its value and dual bound computed."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from benchmarks.metric_learning.problems import Instance
from lopro.constraints.base import ValidInequality

__all__ = ["Judge", "Verdict"]


@dataclass(frozen=True)
class Verdict:
    """Value and gap of a matrix after projection on the cone."""

    #: The objective at the projected point.
    objective: float
    #: ``(-lambda_min)_+ / (1 + |A|)`` as it was returned, and after the projection.
    violation: float
    violation_projected: float
    #: From the projected point and the multiplier of the answer (zero without one).
    lower_bound: float
    #: Features with a nonzero diagonal, nonzeros off the diagonal, eigenvalues above rounding.
    features: int
    nonzeros: int
    rank: int


class Judge:
    """Judges matrices of one instance; not timed."""

    def __init__(self, instance: Instance) -> None:
        self.objective = instance.objective
        self.cone = instance.problem.constraint

    def __call__(self, A: Any, multiplier: Any = None) -> Verdict:
        A = np.asarray(A, dtype=np.float64)
        if not np.isfinite(A).all():
            raise ValueError("the matrix has entries that are not finite")
        A = 0.5 * (A + A.T)
        violation = self.cone.violation(A)
        point = self.cone.project(A) if violation > 0.0 else A
        value = float(self.objective.value(point))
        eigenvalues = np.linalg.eigvalsh(point)
        diagonal = np.diagonal(point)
        return Verdict(
            objective=value,
            violation=violation,
            violation_projected=self.cone.violation(point),
            lower_bound=self.lower_bound(point, multiplier, value),
            features=int(np.count_nonzero(diagonal)),
            nonzeros=int(np.count_nonzero(point) - np.count_nonzero(diagonal)),
            rank=int((eigenvalues > 1e-9 * max(eigenvalues[-1], 0.0)).sum()),
        )

    def lower_bound(self, point: np.ndarray, multiplier: Any, value: float) -> float:
        """Return lopro's dual bound with the weights of the pairs from the residuals at the point."""
        S = np.zeros_like(point) if multiplier is None else np.asarray(multiplier, dtype=np.float64)
        normal = ValidInequality(-0.5 * (S + S.T), 0.0)
        bound = self.objective.dual_bound(self.cone, point, normal, value)
        assert bound is not None
        return bound[0]
