"""The judge of basis pursuit denoising: every verdict rests on a point or a dual point it has checked."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from fuzz.judge.claims import Claims
from fuzz.judge.contract import check_fields, check_violation, rounding
from fuzz.judge.verdict import Class, Finding, Verdict
from fuzz.judge.wide import norm, wide
from fuzz.sparse.column import Column
from fuzz.sparse.dual import gauge, proved, proved_as_given
from fuzz.sparse.primal import Upper, least_residual, upper_bound
from fuzz.sparse.reference import Answer, answer

__all__ = ["CallOptions", "judge_column"]

#: Relative error allowed in a dual point, besides rounding.
_DUAL = 1e-10


@dataclass(frozen=True)
class CallOptions:
    """The options of a call, beyond the problem."""

    tol: float
    dtype: Any
    #: Whether the method is one that returns the dual point of its bound.
    names_dual: bool
    #: A point that is feasible by construction, at least up to rounding.
    planted: Any = None


def judge_column(column: Column, options: CallOptions, claims: Claims) -> Verdict:
    """Return the verdict on one result."""
    return _Judge(column, options, claims).verdict()


@dataclass(frozen=True)
class _Judge:
    column: Column
    options: CallOptions
    claims: Claims

    def verdict(self) -> Verdict:
        try:
            return self._checked()
        except Finding as found:
            return Verdict(Class.WRONG, found.label, found.detail, self._facts())

    def _checked(self) -> Verdict:
        column, claims = self.column, self.claims
        check_fields(claims, self.options.tol, 0.0, self.options.dtype, (column.A.shape[1],))
        if claims.status == "UNBOUNDED":
            raise Finding("false UNBOUNDED", "a norm is never below 0")
        if claims.status == "INFEASIBLE":
            return self._empty()
        if not math.isfinite(claims.fun):
            return Verdict(Class.HONEST, claims.status)
        check_violation(claims, column.violation(claims.x))
        self._check_value()
        proof = self._check_bound()
        return self._success(proof) if claims.success else Verdict(Class.HONEST, claims.status)

    def _check_value(self) -> None:
        true = float(self.column.value(self.claims.x))
        slack = rounding(self.column.eps, true) * math.sqrt(1 + len(self.claims.x) / 64)
        if abs(self.claims.fun - true) > slack:
            raise Finding("value misstated", f"fun = {self.claims.fun!r}, the point has {true!r}")

    def _check_bound(self) -> bool:
        """Raise a finding where the lower bound is false; return whether it is proved."""
        claims, column = self.claims, self.column
        bound = claims.lower_bound
        if bound <= 0.0:
            return bound == 0.0  # a norm proves it
        shown = -math.inf if claims.dual is None else proved_as_given(column, claims.dual)
        self._check_dual()
        if shown >= bound * (1.0 - 1e-14):
            return True
        self._contradict_bound(self.near)
        if shown >= bound - self._slack_of_dual():
            return True
        # Rounding, amplified by the columns, may make the dual point infeasible. It then proves less, but the
        # bound, from sums with more digits, has to be true all the same.
        allowed = (self._slack_of_length() + _DUAL) * bound + self._slack_of_dual()
        if claims.dual is not None and self.options.names_dual and shown < bound - allowed:
            raise Finding("dual proves less", f"{shown!r} is proved, {bound!r} is claimed")
        self._contradict_bound(self.best)
        return self.lower >= bound * (1.0 - 1e-12)

    def _check_dual(self) -> None:
        """Raise a finding where the dual point is infeasible or not finite."""
        dual, column = self.claims.dual, self.column
        if dual is None or not self.options.names_dual:
            return
        if not np.isfinite(dual).all():
            raise Finding("dual not feasible", "it is not finite")
        too_long = float(gauge(column, dual)) - 1.0
        if too_long > self._slack_of_length() + _DUAL:
            raise Finding("dual not feasible", f"too long by {too_long:.3g}, relative")

    def _slack_of_length(self) -> float:
        """Return by how much rounding may make the dual point too long, relative."""
        column, dual = self.column, self.claims.dual
        if dual is None:
            return 0.0
        sizes = (np.abs(wide(column.A)).T @ np.abs(wide(dual))) / wide(column.weights)
        return rounding(column.eps, sizes.max())

    def _contradict_bound(self, upper: Upper | None) -> None:
        bound = self.claims.lower_bound
        if upper is not None and bound > upper.value + rounding(self.column.eps, upper.value):
            raise Finding(
                "bound above optimum",
                f"{bound!r} is claimed, a feasible point has {float(upper.value)!r}",
            )

    def _slack_of_dual(self) -> float:
        dual = self.claims.dual
        if dual is None:
            return 0.0
        terms = (self.column.size + self.column.sigma) * float(norm(dual))
        return rounding(self.column.eps, terms) + _DUAL * abs(self.claims.lower_bound)

    def _success(self, proof: bool) -> Verdict:
        claims = self.claims
        allowed = self.options.tol * abs(claims.fun)
        slack = rounding(self.column.eps, claims.fun)
        if proof:
            return Verdict(Class.CERTIFIED)
        for upper in (self.near, self.best):
            if upper is not None and claims.fun - allowed > upper.value + slack:
                raise Finding(
                    "not within tol",
                    f"fun = {claims.fun!r}, but {float(upper.value)!r} is feasible",
                )
        if claims.fun - self.lower <= allowed + slack:
            return Verdict(Class.CERTIFIED)
        return Verdict(Class.UNKNOWN, "optimum not known well enough", "", self._facts())

    # References for the problem.

    @cached_property
    def near(self) -> Upper | None:
        """A feasible point made of the one that is judged."""
        return upper_bound(self.column, [self.claims.x])

    @cached_property
    def reference(self) -> Answer:
        return answer(self.column)

    @cached_property
    def best(self) -> Upper | None:
        """A feasible point made of a reference."""
        starts = [self.claims.x, self.reference.x]
        return upper_bound(
            self.column,
            starts + ([] if self.options.planted is None else [self.options.planted]),
        )

    @cached_property
    def lower(self) -> float:
        """The best lower bound that the judge can prove."""
        column = self.column
        duals = [self.claims.dual, self.reference.nu, column.y]
        for x in [self.claims.x] + ([] if self.best is None else [self.best.point]):
            duals.append(wide(column.y) - wide(column.A) @ wide(x))
        return max(proved(column, nu) for nu in duals)

    def _empty(self) -> Verdict:
        """Look for a feasible point of a set that is claimed to be empty."""
        column = self.column
        points = [least_residual(column), self.reference.x]
        points += [] if self.options.planted is None else [self.options.planted]
        residuals = []
        for x in points:
            if not np.isfinite(x).all() or (column.nonneg and (np.asarray(x) < 0).any()):
                continue
            r = float(norm(wide(column.A) @ wide(x) - wide(column.y)))
            residuals.append(r)
            if self._meets(x, r) or self._holds_in_spite_of_rounding(x, r):
                raise Finding(
                    "false INFEASIBLE", f"a point has residual {r!r}, sigma is {column.sigma!r}"
                )
        least = min(residuals, default=math.inf)
        if least > column.sigma * (1.0 + 1e-9) + 1e-9 * column.size and self._rank_is_clear():
            return Verdict(Class.CERTIFIED, "empty")
        return Verdict(Class.UNKNOWN, "nearly empty", f"least residual {least!r}", self._facts())

    def _holds_in_spite_of_rounding(self, x: Any, residual: float) -> bool:
        """Whether the point is inside by more than the rounding of a product with it.

        A dual vector proves emptiness up to the rounding of ``A' nu``: that no point is inside by more than
        ``64 eps |A| |x|``. Where small singular values are rounding, huge points are, and disprove nothing.
        """
        column = self.column
        product = rounding(column.eps, norm(column.A) * norm(x))
        return residual + product <= column.sigma and column.holds(x)

    def _meets(self, x: Any, residual: float) -> bool:
        """Whether equations are met as well as the rounding of ``y`` lets them be."""
        if self.column.sigma > 0.0:
            return False
        size = self.column.size
        if x is self.options.planted:  # y is a product that was rounded
            size += float(norm(np.abs(wide(self.column.A)) @ np.abs(wide(x))))
        return residual <= 8.0 * self.column.eps * size

    def _rank_is_clear(self) -> bool:
        """Whether small singular values are all rounding: otherwise only huge points may be feasible."""
        s = self.column.spectrum[1]
        zero = 4.0 * self.column.eps * max(self.column.A.shape)
        return not ((s > zero * s[0]) & (s < 1e-9 * s[0])).any()

    def _facts(self) -> dict[str, Any]:
        c = self.claims
        return {"status": c.status, "fun": c.fun, "bound": c.lower_bound, "violation": c.violation}
