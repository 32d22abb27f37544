"""What a run knows: the best feasible point, the best lower bound, and the certificate they make."""

from __future__ import annotations

import contextlib
import math
from dataclasses import dataclass

from lopro.constraints.base import ValidInequality
from lopro.core.arrays import Array, eps, inner
from lopro.core.deadline import OutOfTime
from lopro.functions import Image, Source
from lopro.problem import Problem
from lopro.protocol import Candidate, Certificate, Multiplier, PenalisedMinimum, ProvedBound, Target
from lopro.protocol.certificates import feasibility_tolerance, lower_bound, solution_radius

__all__ = ["Incumbent", "Judged"]


@dataclass(frozen=True)
class Judged:
    """A point with its value and what is left of its violation."""

    x: Array
    fun: float
    violation: float
    #: The sum of the absolute terms of the value; None where gaps are relative to something else.
    magnitude: float | None = None

    @property
    def feasible(self) -> bool:
        """Whether the violation is within rounding."""
        return self.violation <= feasibility_tolerance(self.x)

    @property
    def rank(self) -> tuple[float, float]:
        """Feasible first, then lower."""
        return max(self.violation, feasibility_tolerance(self.x)), self.fun


class Incumbent:
    """Collects evidence candidate by candidate; nothing that was once proved is lost."""

    def __init__(self, problem: Problem, target: Target, warnings: list[str]) -> None:
        self.problem = problem
        self.target = target
        self.warnings = warnings
        self.best: Judged | None = None
        self.lower = -math.inf
        self.source = "no epoch was completed"
        #: How far from the point the lower bound holds.
        self.radius = math.inf
        #: What violations can have gained over the bound, where the method has told.
        self._gained: float | None = None
        #: The multiplier behind the best lower bound, where it rests on one.
        self.multiplier: ValidInequality | None = None
        #: Of the best point and the best bound, once somebody has asked.
        self._certificate: Certificate | None = None

    def judge(self, x: Array, image: Image | None = None) -> Judged:
        """Look at a point, and keep it if it is the best so far (and its value is a number)."""
        fun, c = float(self.problem.objective.value(x)), self.problem.constraint
        violation = c.violation(x) if image is None else c.violation_at(x, image)
        own = self.problem.gap_scale is not None or not math.isfinite(fun)
        magnitude = None if own else self.problem.objective.magnitude(x, fun)
        judged = Judged(x, fun, violation, magnitude)
        if math.isfinite(fun):
            self.keep(judged)
        return judged

    def keep(self, judged: Judged) -> None:
        """Keep a point if it is the best so far."""
        if self.best is None or judged.rank < self.best.rank:
            self.best, self._certificate = judged, None

    def learn(self, candidate: Candidate, fun: float, penalised: float | None) -> None:
        """Draw every lower bound from a candidate that its evidence supports."""
        assert self.best is not None
        evidence = candidate.evidence
        if isinstance(evidence, Multiplier):
            self._use(evidence.inequality, candidate.taken_at)
        elif isinstance(evidence, ProvedBound):
            e = evidence
            self._consider(e.value, e.source, e.inequality, e.radius, e.gained)
        elif isinstance(evidence, PenalisedMinimum):
            assert penalised is not None
            self._use_penalty(evidence, candidate.taken_at, penalised)
        if candidate.claim is not None:
            self._consider(fun - candidate.claim.gap, candidate.claim.source)
        self._use_infimum()

    def _use_infimum(self) -> None:
        """Where the best value is about zero, it matters that a norm or a square is not negative."""
        assert self.best is not None
        f, best = self.problem.objective, self.best
        negligible = self.target.reached(abs(best.fun), best.fun, best.magnitude)
        if f.cancels or self.lower >= 0.0 or not (best.feasible and negligible):
            return
        least = f.infimum()
        if least is not None and least.source is Source.DERIVED:
            self._consider(least.value, f"the least value of f anywhere ({least.note})")

    def _use(self, inequality: ValidInequality, at: Array) -> None:
        assert self.best is not None
        bound, source = lower_bound(self.problem, at, inequality, self.best.fun)
        self._consider(bound, source, inequality)

    def _use_penalty(self, evidence: PenalisedMinimum, x_hat: Array, value: float) -> None:
        """The slope of the penalty is a multiplier; and R2 bounds the optimum by the penalised value."""
        assert self.best is not None
        penalty = evidence.F.penalty
        self._use(penalty.valid_inequality(self.problem.constraint, x_hat), x_hat)
        if penalty.above is None or evidence.bound is None:
            return
        radius = solution_radius(self.problem, self.best.fun)
        spent = None if radius is None else evidence.bound(radius.value)
        if radius is not None and spent is not None:
            source = f"R2: F(x_hat) - C gamma - B_T, |x*| <= {radius.value:.4g}"
            self._consider(value - penalty.above - spent, source)

    def _consider(
        self,
        bound: float,
        source: str,
        multiplier: ValidInequality | None = None,
        radius: float = math.inf,
        gained: float | None = None,
    ) -> None:
        """Keep a lower bound, and the multiplier it rests on, if it is the best so far."""
        assert self.best is not None
        fun, slack = self.best.fun, math.sqrt(feasibility_tolerance(self.best.x))
        unit = self.target.unit(fun, self.best.magnitude)
        if self.best.feasible and bound - fun - (gained or 0.0) > slack * unit:
            # A point of the set is below it: whatever the bound rests on is false.
            self.warnings.append(
                f"a lower bound of {bound:.6g} was dropped, a feasible point has {fun:.6g}: "
                f"check the constants given ({source})"
            )
        elif bound > self.lower or not math.isfinite(self.lower):
            self.lower, self.source, self.multiplier = bound, source, multiplier
            self.radius, self._gained, self._certificate = radius, gained, None

    @property
    def certificate(self) -> Certificate:
        """The certificate of the best point."""
        if self._certificate is None:
            self._certificate = self._certify()
        return self._certificate

    def _certify(self) -> Certificate:
        if self.best is None:
            return Certificate.of(math.nan, self.lower, math.inf, self.source)
        best, target = self.best, self.target
        unit = Target(target.tol, target.unit(best.fun, best.magnitude))
        gained = self._gained_by_violation()
        return Certificate.of(
            best.fun, self.lower, best.violation, self.source, unit, gained, self.radius,
            feasible=feasibility_tolerance(best.x),
        )  # fmt: skip

    def measure(self) -> float:
        """Return the absolute violation of the best point; NaN where there is none, or no time for it."""
        if self.best is None or not math.isfinite(self.best.violation):
            return math.nan
        if self.best.violation == 0.0:
            return 0.0
        with contextlib.suppress(OutOfTime, ValueError):
            return self.problem.constraint.absolute_violation(self.best.x)
        return math.nan

    def _gained_by_violation(self) -> float:
        """Return what the best point may have gained by being outside, in units of the objective.

        That is by how much it breaks the inequality which the bound rests on: the multipliers times the
        violations. A point that is feasible up to rounding only may lie below the bound by so much. Where
        the objective is no norm, the bound may rest on more than the inequality, and nothing is charged.
        """
        if self.best is None or self.multiplier is None:
            return self._gained or 0.0
        direction, support = self.multiplier.direction, self.multiplier.support
        if self._gained is not None:
            # The best point may be another one than the candidate that the method has charged.
            return max(self._gained, inner(direction, self.best.x) - support)
        scale = self.problem.objective.scale_into_domain(direction)
        if scale is None:
            return 0.0
        reached = inner(direction, self.best.x)
        excess = reached - support
        rounding = 8.0 * eps(self.best.x) * (abs(reached) + abs(support))
        return scale * excess if excess > rounding else 0.0

    @property
    def certified(self) -> bool:
        """Whether the best point is feasible and its gap is within the tolerance."""
        if self.best is None or not self.best.feasible:
            return False
        return self.certificate.relative_gap <= self.target.tol
