"""What a run knows: the best feasible point, the best lower bound, and the certificate they make."""

from __future__ import annotations

import math
from dataclasses import dataclass

from lopro._arrays import Array, norm
from lopro.certificates import Certificate, feasibility_tolerance, lower_bound, solution_radius
from lopro.epochs import Epoch
from lopro.problem import Problem

__all__ = ["Candidate", "Knowledge"]


@dataclass(frozen=True)
class Candidate:
    """A projected point with its value and what is left of its violation."""

    x: Array
    fun: float
    violation: float

    @property
    def feasible(self) -> bool:
        """Whether the violation is within rounding."""
        return self.violation <= feasibility_tolerance(self.x)

    @property
    def rank(self) -> tuple[float, float]:
        """Feasible first, then lower."""
        return max(self.violation, feasibility_tolerance(self.x)), self.fun


class Knowledge:
    """Collects evidence epoch by epoch; nothing that was once proved is lost."""

    def __init__(self, problem: Problem) -> None:
        self.problem = problem
        self.best: Candidate | None = None
        self.lower = -math.inf
        self.source = "no epoch was completed"
        self.warnings: list[str] = []

    def judge(self, x: Array) -> Candidate:
        """Look at a point, and keep it if it is the best so far (and its value is a number)."""
        fun = float(self.problem.objective.value(x))
        candidate = Candidate(x, fun, self.problem.constraint.violation(x))
        if math.isfinite(fun) and (self.best is None or candidate.rank < self.best.rank):
            self.best = candidate
        return candidate

    def learn(self, epoch: Epoch, *, complete: bool) -> None:
        """Draw every lower bound from an epoch that its plan supports.

        A theorem's claim needs all the steps of the plan, so it counts only if those were made.
        """
        assert self.best is not None
        problem, penalty, plan = self.problem, epoch.F.penalty, epoch.plan
        normal = epoch.normal
        if normal is None:
            normal = penalty.normal(problem.constraint, epoch.x_hat)
        self._consider(*lower_bound(problem, epoch.x_hat, normal, self.best.fun))
        if plan is None:
            return
        above, radius = getattr(penalty, "above", None), solution_radius(problem, self.best.fun)
        if above is not None and radius is not None:
            spent = plan.inner.bound(epoch.state, norm(plan.start) + radius.value)
            if spent is not None:
                bound = epoch.penalised_value - above - spent
                self._consider(bound, f"R2: F(x_hat) - C gamma - B_T, |x*| <= {radius.value:.4g}")
        if plan.claim is not None and complete:
            self._consider(epoch.fun - plan.claim.gap, plan.claim.source)

    def _consider(self, bound: float, source: str) -> None:
        assert self.best is not None
        fun, slack = self.best.fun, math.sqrt(feasibility_tolerance(self.best.x))
        if self.best.feasible and bound - fun > slack * max(1.0, abs(fun)):
            # A point of the set is below it: whatever the bound rests on is false.
            self.warnings.append(
                f"a lower bound of {bound:.6g} was dropped, a feasible point has {fun:.6g}: "
                f"check the constants given ({source})"
            )
        elif bound > self.lower or not math.isfinite(self.lower):
            self.lower, self.source = bound, source

    @property
    def certificate(self) -> Certificate:
        """The certificate of the best point."""
        scale = self.problem.gap_scale
        if self.best is None:
            return Certificate.of(math.nan, self.lower, math.inf, self.source, scale)
        best = self.best
        return Certificate.of(best.fun, self.lower, best.violation, self.source, scale)
