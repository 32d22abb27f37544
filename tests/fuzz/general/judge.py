"""The judge of `solve` and `minimize`: feasible points refute claims, a checked reference confirms them."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from fuzz.general.model import Model
from fuzz.judge.claims import Claims
from fuzz.judge.conic import Reference
from fuzz.judge.contract import check_fields, check_violation, gap_unit, rounding
from fuzz.judge.verdict import Class, Finding, Verdict

__all__ = ["CallOptions", "judge_model"]

#: A reference confirms a value up to this share of the numbers that make it up.
#: Values below this share of the first one are zero.
_NEGLIGIBLE = 1e-8
_REFERENCE = 1e-7


@dataclass(frozen=True)
class CallOptions:
    """The options of a call, beyond the problem."""

    tol: float
    dtype: Any
    eps: float
    #: What the call gave; None: gaps are relative to the terms of the value.
    gap_scale: float | None = None
    #: The value at the start: what is negligible beside it counts as zero.
    first: float = 0.0
    #: Accuracy of the slopes that the library was given, relative: finite differences have little.
    slopes: float = 0.0


def judge_model(model: Model, options: CallOptions, claims: Claims) -> Verdict:
    """Return the verdict on one result."""
    return _Judge(model, options, claims).verdict()


@dataclass(frozen=True)
class _Judge:
    model: Model
    options: CallOptions
    claims: Claims

    def verdict(self) -> Verdict:
        try:
            return self._checked()
        except Finding as found:
            return Verdict(Class.WRONG, found.label, found.detail, self._facts())

    def _checked(self) -> Verdict:
        claims, options = self.claims, self.options
        check_fields(claims, options.tol, self._gap_scale(), options.dtype, self.model.shape)
        if claims.status == "INFEASIBLE":
            return self._empty()
        if claims.status == "UNBOUNDED":
            return self._unbounded()
        if not math.isfinite(claims.fun):
            return Verdict(Class.HONEST, claims.status)
        check_violation(claims, self.model.violation(claims.x))
        self._check_value()
        self._contradict(claims.lower_bound, "bound above optimum", "is claimed as a lower bound")
        return self._success() if claims.success else Verdict(Class.HONEST, claims.status)

    def _gap_scale(self) -> float:
        """Return the least denominator of relative gaps, as it is documented."""
        if self.options.gap_scale is not None:
            return self.options.gap_scale
        f, x = self.model.objective, self.claims.x
        if x.shape != self.model.shape or not np.isfinite(x).all():
            return 0.0
        # A gap of 64 roundings of a typical value is small at any tolerance.
        rounded = 64.0 * 2.0**-52 / self.options.tol if self.options.tol > 0.0 else 0.0
        return max(f.terms(x), max(_NEGLIGIBLE, rounded) * max(self.options.first, f.size(x)))

    def _check_value(self) -> None:
        x = self.claims.x
        true = float(self.model.objective.value(x))
        if abs(self.claims.fun - true) > self._slack(x):
            raise Finding("value misstated", f"fun = {self.claims.fun!r}, the point has {true!r}")

    def _slack(self, x: Any) -> float:
        size = self.model.objective.size(x)
        share = 1.0 + math.prod(self.model.shape) / 64.0
        return rounding(self.options.eps, size) * share + self.options.slopes * size

    def _contradict(self, number: float, label: str, words: str) -> None:
        """Raise a finding where a feasible point has a value below ``number``."""
        if number == -math.inf or self.best is None:
            return
        value, point = self.best
        if number > value + self._slack(point) + self._slack(self.claims.x):
            raise Finding(label, f"{number!r} {words}, a feasible point has {float(value)!r}")

    def _success(self) -> Verdict:
        claims = self.claims
        allowed = self.options.tol * gap_unit(self._gap_scale(), claims.fun)
        self._contradict(claims.fun - allowed, "not within tol", "is what success promises")
        if self.lower == -math.inf:
            return Verdict(Class.UNKNOWN, "no reference", "", self._facts())
        slack = _REFERENCE * (self.model.objective.size(claims.x) + abs(claims.fun))
        if self._reference is not None:
            slack += 0.01 * _REFERENCE * self._reference[2]  # an optimum of 0 is known so well
        if claims.fun - self.lower <= allowed + slack + self._slack(claims.x):
            return Verdict(Class.CERTIFIED)
        return Verdict(Class.UNKNOWN, "optimum not known well enough", "", self._facts())

    # References for the problem.

    @cached_property
    def _reference(self) -> tuple[Reference, Any, float] | None:
        try:
            return self.model.reference()
        except (ValueError, ArithmeticError):
            return None  # numbers beyond what the solver takes

    @cached_property
    def best(self) -> tuple[Any, Any] | None:
        """The lowest value of a point that is feasible beyond doubt, and the point."""
        starts = [self.claims.x]
        if self._reference is not None:
            starts.append(self._reference[1])
        points = self.model.feasible_points(starts)
        values = [(self.model.objective.value(z), z) for z in points]
        return min(values, key=lambda pair: pair[0], default=None)

    @cached_property
    def lower(self) -> float:
        """The reference's lower bound, where it has one that can be relied on."""
        if self._reference is None or self.model.ray is not None:
            return -math.inf
        found, _, factor = self._reference
        return found.lower * factor if found.solved else -math.inf

    def _empty(self) -> Verdict:
        model = self.model
        if model.safe is not None:
            raise Finding("false INFEASIBLE", "a point of the set is known")
        if model.inside is not None and model.violation(model.inside) <= 1e-14:
            raise Finding("false INFEASIBLE", "a point is in the set up to rounding")
        if model.empty:
            return Verdict(Class.CERTIFIED, "empty")
        if self._reference is not None and "PrimalInfeasible" in self._reference[0].status:
            return Verdict(Class.CERTIFIED, "empty")
        if self.best is not None:
            raise Finding("false INFEASIBLE", "the reference is a point of the set")
        return Verdict(Class.UNKNOWN, "perhaps empty", "", self._facts())

    def _unbounded(self) -> Verdict:
        if self.model.ray is not None:
            return Verdict(Class.CERTIFIED, "unbounded")
        if self.lower > -math.inf:
            raise Finding("false UNBOUNDED", f"the optimum is about {self.lower!r}")
        return Verdict(Class.UNKNOWN, "perhaps unbounded", "", self._facts())

    def _facts(self) -> dict[str, Any]:
        c = self.claims
        return {"status": c.status, "fun": c.fun, "bound": c.lower_bound, "violation": c.violation}
