"""The judge of all answers: a point is projected on the residual ball, and its value and gap computed."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from benchmarks.bpdn.problems import Instance
from lopro.constraints import ResidualBall

__all__ = ["Judge", "Verdict"]


@dataclass(frozen=True)
class Verdict:
    """Value, bound and relative gap of an answer after projection on the residual ball."""

    #: ``|x|_1`` of the projected point.
    value: float
    #: ``(|A x - y| - sigma)_+ / sigma`` of the point as returned, and after the projection.
    violation: float
    violation_projected: float
    #: A lower bound from the residual of the projected point, and the gap to it.
    lower_bound: float
    relative_gap: float
    nonzeros: int


class Judge:
    """Judges points of one instance; its factorisations are kept and not timed."""

    def __init__(self, instance: Instance) -> None:
        self.instance = instance
        self.ball = ResidualBall(
            instance.for_projections, instance.y, instance.sigma, tight_frame=instance.tight_frame
        )

    def __call__(self, x: Any) -> Verdict:
        x = np.asarray(x)
        violation = self._violation(x)
        point = self.ball.project(x) if violation > 0.0 else x
        value = float(np.abs(point).sum())
        bound = self.lower_bound(point)
        return Verdict(
            value=value,
            violation=violation,
            violation_projected=self._violation(point),
            lower_bound=bound,
            relative_gap=max(0.0, value - bound) / value,
            nonzeros=int(np.count_nonzero(point)),
        )

    def _violation(self, x: np.ndarray) -> float:
        residual = float(np.linalg.norm(self.ball.A.forward(x) - self.instance.y))
        return max(0.0, residual - self.instance.sigma) / self.instance.sigma

    def lower_bound(self, x: np.ndarray) -> float:
        """Return ``Re <y, nu> - sigma |nu|`` for ``nu = r / |A^H r|_inf``, a dual feasible point."""
        y, sigma = self.instance.y, self.instance.sigma
        r = y - self.ball.A.forward(x)
        nu = r / np.abs(self.ball.A.adjoint(r)).max()
        return float(np.vdot(nu, y).real) - sigma * float(np.linalg.norm(nu))
