"""The judge of metric learning: any psd matrix bounds the optimum from above."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from fuzz.judge.claims import Claims
from fuzz.judge.contract import check_fields, check_violation, gap_unit, rounding
from fuzz.judge.verdict import Class, Finding, Verdict
from fuzz.judge.wide import norm, wide
from fuzz.metric.problem import MetricProblem

__all__ = ["judge_metric"]

#: Values below this share of ``f(0)`` count as zero, by the documentation of the gap.
_NEGLIGIBLE = 1e-9
_REFERENCE = 1e-6


def judge_metric(problem: MetricProblem, tol: float, dtype: Any, claims: Claims) -> Verdict:
    """Return the verdict on one result."""
    return _Judge(problem, tol, dtype, claims).verdict()


@dataclass(frozen=True)
class _Judge:
    problem: MetricProblem
    tol: float
    dtype: Any
    claims: Claims

    def verdict(self) -> Verdict:
        try:
            return self._checked()
        except Finding as found:
            facts = {"status": self.claims.status, "fun": self.claims.fun}
            return Verdict(Class.WRONG, found.label, found.detail, facts)

    @cached_property
    def _zero(self) -> float:
        """The value of the zero matrix."""
        return float(self.problem.value(np.zeros((self.problem.dim,) * 2)))

    def _checked(self) -> Verdict:
        claims, problem = self.claims, self.problem
        d = problem.dim
        check_fields(claims, self.tol, _NEGLIGIBLE * self._zero, self.dtype, (d, d))
        if claims.status in ("INFEASIBLE", "UNBOUNDED"):
            raise Finding(f"false {claims.status}", "the zero matrix is a point, and 0 a bound")
        if not math.isfinite(claims.fun):
            return Verdict(Class.HONEST, claims.status)
        check_violation(claims, problem.violation(claims.x))
        self._check_values()
        self._contradict(claims.lower_bound, "bound above optimum")
        return self._success() if claims.success else Verdict(Class.HONEST, claims.status)

    def _check_values(self) -> None:
        claims, problem = self.claims, self.problem
        slack = self._slack(claims.x)
        for name, shown, true in (
            ("fun", claims.fun, problem.value(claims.x)),
            ("loss", claims.extra.get("loss"), problem.loss(claims.x)),
        ):
            if shown is not None and abs(float(shown) - float(true)) > slack:
                raise Finding("value misstated", f"{name} = {shown!r}, it is {float(true)!r}")
        factor = claims.extra.get("factor")
        if factor is not None:
            L = wide(np.asarray(factor))
            away = norm(L.T @ L - wide(claims.x))
            if away > 1e-5 * norm(claims.x):
                raise Finding("factor misstated", f"|A - L'L| = {float(away):.3g}")

    def _slack(self, A: Any) -> float:
        eps = float(np.finfo(self.dtype).eps)
        return rounding(eps, self.problem.size(A)) * (1.0 + self.problem.dim / 16.0)

    def _contradict(self, number: float, label: str) -> None:
        if not math.isfinite(number):
            return
        for A in self._points():
            value = self.problem.value(A)
            if number > value + self._slack(A) + self._slack(self.claims.x):
                words = f"{number!r} is promised, a psd matrix has {float(value)!r}"
                raise Finding(label, words)

    def _points(self) -> list[Any]:
        found = [np.zeros((self.problem.dim,) * 2)]
        for A in (self.claims.x, self._reference[0]):
            inside = self.problem.inside(A) if np.isfinite(A).all() else None
            found += [] if inside is None else [inside]
        return found

    @cached_property
    def _reference(self) -> tuple[Any, float]:
        return self.problem.reference()

    def _success(self) -> Verdict:
        fun = self.claims.fun
        allowed = self.tol * gap_unit(_NEGLIGIBLE * self._zero, fun)
        self._contradict(fun - allowed, "not within tol")
        slack = self._slack(self.claims.x) + _REFERENCE * self._zero
        if fun - self._reference[1] <= allowed + slack:
            return Verdict(Class.CERTIFIED)
        return Verdict(Class.UNKNOWN, "optimum not known well enough")
