"""What basis pursuit denoising gives back: a result with the dual solution that proves its bound."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass

from lopro.basis_pursuit.problem import SparseProblem
from lopro.core.arrays import Array, eps, namespace, norm
from lopro.driver.result import Result
from lopro.problem import Problem

__all__ = ["BPDNResult"]


@dataclass(frozen=True, repr=False)
class BPDNResult(Result):
    """A `Result` with the dual solution.

    ``dual`` is the multiplier ``nu`` of ``A x = y - r`` scaled to ``|A^H nu|_i <= w_i``; its value
    ``Re <y, nu> - sigma |nu|`` is a lower bound of the optimum, the certificate's own up to rounding. None
    where the certificate rests on something else. ``certificate.relative_gap`` is ``gap / fun``.
    """

    dual: Array | None = None

    @property
    def support(self) -> Array:
        """Indices of the nonzeros of ``x``; of its rows that are not zero, where it has several columns."""
        xp = namespace(self.x)
        return xp.nonzero(self.x if self.x.ndim == 1 else xp.any(self.x != 0.0, axis=1))[0]

    @staticmethod
    def of(result: Result, problem: Problem) -> BPDNResult:
        """Add the dual point that the multiplier of a result stands for."""
        fields = {f.name: getattr(result, f.name) for f in dataclasses.fields(result)}
        sparse = SparseProblem.of(problem, result.x)
        dual = sparse.dual_point(result.multiplier)
        if dual is not None:
            bound = result.certificate.lower_bound
            proved = -sparse.ball.support_image((-dual,))
            # The point was rounded to the precision of the data after its value had been taken.
            rounding = 8.0 * eps(dual) * norm(sparse.ball.y) * norm(dual)
            # Where it proves less, the bound rests on a radius as well.
            if proved < bound - 1e-12 * abs(bound) - rounding:
                dual = None
        return BPDNResult(**fields, dual=dual)
