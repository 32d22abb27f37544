"""The incumbent of a run: the best feasible point, the best lower bound, and their certificate."""

from __future__ import annotations

import contextlib
import math
import warnings
from collections.abc import Callable

import numpy as np

from lopro.certificates import Bound, Certificate, Target, feasibility_tolerance
from lopro.constraints.base import ValidInequality
from lopro.core.arrays import Array, inner
from lopro.core.deadline import OutOfTime
from lopro.core.real_vectors import to_real_vector
from lopro.driver.candidate import (
    Candidate,
    Claim,
    Judged,
    Multiplier,
    PenalisedMinimum,
    ProvedBound,
)
from lopro.driver.minorants import Known, lower_bound, penalty_bound, scaled_violation
from lopro.errors import BoundContradictionWarning
from lopro.functions import Image, Source
from lopro.problem import Problem

__all__ = ["Incumbent"]


class Incumbent:
    """Collects the best point and the best bounds over all candidates."""

    def __init__(
        self,
        problem: Problem,
        target: Target,
        warnings: list[str],
        unit: Callable[[], float] = lambda: 0.0,
    ) -> None:
        self.problem = problem
        self.target = target
        self.warnings = warnings
        #: Returns a typical size of variables whose units do not follow from the data: bounds that decrease
        #: with the distance must hold far beyond it.
        self.unit = unit
        self.best: Judged | None = None
        #: The best bound that holds everywhere, and the best that holds near the point.
        self._everywhere: Known | None = None
        self._nearby: Known | None = None
        #: The best lower bound that theorems claim for the constants given; no part of the certificate.
        self.claimed = -math.inf
        self._claim_source = ""
        #: Whether a new best point has yet to be compared with the bounds.
        self._unchecked = False
        #: The certificate of the best point and the best bound, and that bound; computed on request.
        self._certificate: Certificate | None = None
        self._best_bound: tuple[Known, float, float] | None = None

    def judge(
        self,
        x: Array,
        image: Image | None = None,
        of_objective: Image | None = None,
        violation: float | None = None,
    ) -> Judged:
        """Evaluate a point, and keep it if it is the best so far and its value is finite."""
        f, c = self.problem.objective, self.problem.constraint
        fun = float(f.linearize_at(f.image(x) if of_objective is None else of_objective)[0])
        if violation is None:
            violation = c.violation(x) if image is None else c.violation_at(x, image)
        magnitude: float | None = None
        if self.problem.gap_scale is None and math.isfinite(fun):
            magnitude = f.magnitude(x, fun) if f.cancels else abs(fun)
        judged = Judged(x, fun, violation, magnitude)
        if math.isfinite(fun):
            self.keep(judged)
        return judged

    def keep(self, judged: Judged) -> None:
        """Keep a point if it is the best so far."""
        if self.best is None or judged.rank < self.best.rank:
            self.best = judged
            self._unchecked = self._everywhere is not None or self._nearby is not None
            self._forget()

    def update(self, candidate: Candidate, fun: float, penalised: float | None) -> None:
        """Update the bounds with those that follow from the evidence of a candidate."""
        assert self.best is not None
        evidence = candidate.evidence
        if isinstance(evidence, Multiplier):
            self._use(evidence.inequality, candidate.taken_at)
        elif isinstance(evidence, ProvedBound):
            bound, normal = evidence.bound(candidate.x), evidence.inequality
            if normal is not None and not isinstance(candidate.x, np.ndarray):
                normal = normal.beside(candidate.x)
            self._consider(Known(bound, evidence.source, normal, evidence.gained, proved=True))
        elif isinstance(evidence, PenalisedMinimum):
            assert penalised is not None
            self._use_penalty(evidence, candidate.taken_at, penalised)
        if candidate.claim is not None:
            self._promise(fun - candidate.claim.gap, candidate.claim.source)
        self._use_infimum()

    def _use_infimum(self) -> None:
        """Use the infimum of f, such as 0 of a norm, as a bound if the best value is negligible."""
        assert self.best is not None
        f, best = self.problem.objective, self.best
        if f.cancels or not best.feasible:
            return
        known = self._known()
        if known is not None and known[1] >= 0.0:
            return
        if not self.target.reached(abs(best.fun), best.fun, best.magnitude):
            return
        least = f.infimum()
        if least is not None and least.source is Source.DERIVED:
            source = f"the least value of f anywhere ({least.note})"
            self._consider(_global(least.value, source))

    def _use(self, inequality: ValidInequality, at: Array) -> None:
        assert self.best is not None
        found = lower_bound(self.problem, at, inequality, self.best.fun)
        self._consider(_global(*found, inequality))

    def _use_penalty(self, evidence: PenalisedMinimum, x_hat: Array, value: float) -> None:
        """Derive bounds from the multiplier in the slope of the penalty, and from R2."""
        assert self.best is not None
        penalty = evidence.F.penalty
        self._use(penalty.valid_inequality(self.problem.constraint, x_hat), x_hat)
        found = penalty_bound(self.problem, evidence, value, self.best.fun)
        if found is not None:
            self._consider(_global(*found))

    def _consider(self, new: Known) -> None:
        """Keep a lower bound if it is the largest so far around the best point."""
        assert self.best is not None
        if self._refuted(new):
            return
        if new.bound.holds_everywhere:
            old = self._everywhere
            least = -math.inf if old is None else old.bound.value
            if new.bound.value > least or not math.isfinite(least):
                self._everywhere = new
                self._forget()
        elif self._nearby is None or self._around(new)[0] > self._around(self._nearby)[0]:
            self._nearby = new
            self._forget()

    def _forget(self) -> None:
        """Discard the cached certificate after a change of the best point or of a bound."""
        self._certificate = self._best_bound = None

    def _around(self, known: Known) -> tuple[float, float]:
        """Return the value of a bound in its region around the best point, and the radius of that region."""
        assert self.best is not None
        bound = known.bound
        if bound.holds_everywhere:
            return bound.value, math.inf
        x = to_real_vector(self.best.x)
        fallback = 0.0 if bound.flat else self.unit()
        return bound.around(x, fallback), bound.radius(x, fallback)

    def _refuted(self, known: Known) -> bool:
        """Whether the best point is feasible and below a bound, which is then false: warn of it."""
        best = self.best
        if best is None or not best.feasible:
            return False
        exactly = known.proved and known.multiplier is not None
        value, gained = self._around(known)[0], self._gained_by_violation(known)
        if not best.is_below(value - gained, self.target, exactly):
            return False
        message = _dropped(value, best.fun, known.source)
        self.warnings.append(message)
        warnings.warn(message, BoundContradictionWarning, stacklevel=2)
        return True

    def _known(self) -> tuple[Known, float, float] | None:
        """Return the largest bound around the best point, its value there, and its radius."""
        if self._best_bound is None:
            self._check_bounds()
            for known in (self._everywhere, self._nearby):
                if known is not None:
                    value, radius = self._around(known)
                    if self._best_bound is None or value > self._best_bound[1]:
                        self._best_bound = known, value, radius
        return self._best_bound

    def _check_bounds(self) -> None:
        """Drop the bounds that a new best point refutes."""
        if self._unchecked:
            self._unchecked = False
            pair = self._everywhere, self._nearby
            self._everywhere, self._nearby = (
                None if known is None or self._refuted(known) else known for known in pair
            )

    @property
    def multiplier(self) -> ValidInequality | None:
        """The multiplier that proves the best lower bound, if it was derived from one."""
        known = self._known() if self.best is not None else None
        return None if known is None else known[0].multiplier

    def _promise(self, bound: float, source: str) -> None:
        """Record the bound that a theorem claims for the constants given, apart from proved bounds."""
        if self._contradicts(bound):
            assert self.best is not None
            self.warnings.append(_dropped(bound, self.best.fun, source))
        elif bound > self.claimed:
            self.claimed, self._claim_source = bound, source

    def _contradicts(self, claimed: float) -> bool:
        """Whether the best point is feasible and below a claimed bound: then a constant is wrong."""
        best = self.best
        return best is not None and best.feasible and best.is_below(claimed, self.target)

    @property
    def claim(self) -> Claim | None:
        """The gap that theorems claim for the best point, if the constants given to them are true."""
        if self.best is None or self.claimed == -math.inf or self._contradicts(self.claimed):
            return None
        return Claim(max(self.best.fun - self.claimed, 0.0), self._claim_source)

    @property
    def certificate(self) -> Certificate:
        """The certificate of the best point."""
        if self._certificate is None:
            self._certificate = self._certify()
        return self._certificate

    def _certify(self) -> Certificate:
        best = self.best
        if best is None:
            return _without_bound(math.nan, math.inf, "no epoch was completed")
        known = self._known()
        if known is None:
            return _without_bound(best.fun, best.violation, "no lower bound was found")
        found, value, radius = known
        source = found.source
        if math.isfinite(radius):
            source = f"{source}, within a distance of {radius:.3g} from x"
        return Certificate.of(
            best.fun, value, best.violation, source, self.target, self._gained_by_violation(found),
            radius, absolute=0.0 if best.violation == 0.0 else math.nan,
            feasible=feasibility_tolerance(best.x), magnitude=best.magnitude,
        )  # fmt: skip

    def measure(self) -> float:
        """Return the absolute violation of the best point; NaN without a point, or without time for it."""
        if self.best is None or not math.isfinite(self.best.violation):
            return math.nan
        if self.best.violation == 0.0:
            return 0.0
        with contextlib.suppress(OutOfTime, ValueError):
            return self.problem.constraint.absolute_violation(self.best.x)
        return math.nan

    def _gained_by_violation(self, known: Known) -> float:
        """Return the charge for the violation of the best point, in units of the objective.

        It is the violation of the valid inequality that the bound rests on: the multipliers times the
        violations of the constraints. The value of a point that is only feasible up to rounding may be below
        the bound by this amount. If the objective is not a norm, the bound may use more than the inequality,
        and nothing is charged.
        """
        if self.best is None or known.multiplier is None:
            return known.gained or 0.0
        if known.gained is not None:
            direction, support = known.multiplier.direction, known.multiplier.support
            # The best point may differ from the candidate for which the method computed the charge.
            return max(known.gained, inner(direction, self.best.x) - support)
        return scaled_violation(self.problem, self.best.x, known.multiplier)

    @property
    def certified(self) -> bool:
        """Whether the best point is feasible and its gap is within the tolerance."""
        if self.best is None or not self.best.feasible:
            return False
        return self.certificate.relative_gap <= self.target.tol


def _without_bound(fun: float, violation: float, why: str) -> Certificate:
    return Certificate.of(fun, -math.inf, violation, why, absolute=math.nan)


def _global(value: float, source: str, multiplier: ValidInequality | None = None) -> Known:
    """Return a bound that holds everywhere."""
    return Known(Bound.everywhere(value), source, multiplier)


def _dropped(bound: float, fun: float, source: str) -> str:
    return (
        f"a lower bound of {bound:.6g} was dropped, a feasible point has {fun:.6g}: "
        f"check the constants given ({source})"
    )
