"""The judge of problems whose feasible points and best values are known: it compares claims with them."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from fuzz.judge.claims import Claims
from fuzz.judge.contract import check_fields, check_violation
from fuzz.judge.verdict import Class, Finding, Verdict

__all__ = ["Known", "judge_by_points"]


@dataclass(frozen=True)
class Known:
    """Known properties of a problem.

    ``points`` are feasible beyond doubt, ``size(x)`` is the sum of the absolute terms of a value, ``typical``
    that of points of typical size. Values are compared up to ``rounding`` times these.
    """

    value: Callable[[Any], float]
    excess: Callable[[Any], float]
    size: Callable[[Any], float]
    points: Sequence[Any]
    typical: float
    shape: tuple[int, ...]
    rounding: float = 1e-13
    #: Whether there is no feasible point, or none that is best, by construction.
    empty: bool = False
    unbounded: bool = False


def judge_by_points(known: Known, tol: float, claims: Claims) -> Verdict:
    """Return the verdict on one result."""
    try:
        check_fields(claims, tol, math.inf, None, known.shape)
        return _checked(known, tol, claims)
    except Finding as found:
        return Verdict(Class.WRONG, found.label, found.detail)


def _checked(known: Known, tol: float, claims: Claims) -> Verdict:
    check_status(known, claims.status, claims.success)
    if claims.status in ("INFEASIBLE", "UNBOUNDED"):
        right = known.empty or known.unbounded
        return Verdict(Class.CERTIFIED if right else Class.UNKNOWN, claims.status)
    if not math.isfinite(claims.fun):
        return Verdict(Class.HONEST, claims.status)
    check_violation(claims, known.excess(claims.x))
    true, size = known.value(claims.x), known.size(claims.x)
    if abs(claims.fun - true) > known.rounding * size:
        raise Finding("value misstated", f"fun = {claims.fun!r}, the point has {true!r}")
    check_bound(known, claims.lower_bound, size, claims)
    if claims.success:
        check_value(known, tol, claims.x, claims.fun)
    return Verdict(Class.CERTIFIED if claims.success else Class.HONEST, claims.status)


def check_status(known: Known, status: str, success: bool) -> None:
    """Raise a finding where a status contradicts what the problem is."""
    if status == "INFEASIBLE" and known.points:
        raise Finding("false INFEASIBLE", "a feasible point is known")
    if status == "UNBOUNDED" and not known.unbounded:
        raise Finding("false UNBOUNDED", "empty" if known.empty else "it is bounded")
    if success and (known.empty or known.unbounded):
        raise Finding("false success", "empty" if known.empty else "unbounded")


def check_bound(known: Known, bound: float, size: float, claims: Claims | None = None) -> None:
    """Raise a finding where a feasible point, within the radius of the claim, has a value below the bound."""
    for point in known.points:
        if claims is not None and float(np.linalg.norm(point - claims.x)) > claims.radius:
            continue
        value = known.value(point)
        slack = known.rounding * (size + known.size(point) + known.typical)
        if bound > value + slack:
            raise Finding("bound above optimum", f"{bound!r}, a feasible point has {value!r}")


def check_value(known: Known, tol: float, x: Any, fun: float) -> None:
    """Raise a finding where a feasible point is better by more than the tolerance allows."""
    share = max(1e-8, 64.0 * 2.0**-52 / tol)
    allowed = tol * max(abs(fun), known.size(x), share * known.typical)
    for point in known.points:
        value = known.value(point)
        slack = known.rounding * (known.size(x) + known.size(point) + known.typical)
        if fun - value > allowed + slack:
            raise Finding("not within tol", f"fun = {fun!r}, a feasible point has {value!r}")
