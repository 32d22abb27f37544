"""The documented guarantees, in one place: judges test results against these only."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from fuzz.judge.claims import Claims
from fuzz.judge.verdict import Finding

__all__ = [
    "SLACK",
    "check_fields",
    "check_violation",
    "deadline",
    "eps_of",
    "feasible_up_to",
    "gap_unit",
    "rounding",
]

#: Factor between a violation as the library measures it and as a judge does: their scales differ.
SLACK = 4.0

#: A reported violation is a false claim if it is below this share of the true one.
_GROSS = 1e-3

#: Rounding units by which numbers near an optimum may differ from exact ones.
_UNITS = 64.0


def eps_of(dtype: Any) -> float:
    """Return the rounding unit of a dtype; that of double precision for integers."""
    dtype = np.dtype(dtype)
    return float(np.finfo(dtype).eps) if dtype.kind in "fc" else float(np.finfo(np.float64).eps)


def feasible_up_to(eps: float) -> float:
    """Return the relative violation up to which a point counts as feasible."""
    return max(1e-9, 64.0 * eps)


def rounding(eps: float, size: Any) -> float:
    """Return the allowed rounding error of a number whose terms have this size altogether."""
    return _UNITS * eps * float(size)


def deadline(limit: float) -> float:
    """Return the seconds within which a call with this time limit has to return."""
    return 1.2 * limit + 0.5


def gap_unit(scale: float, fun: float) -> float:
    """Return the denominator of a relative gap."""
    return max(scale, abs(fun))


def check_fields(
    claims: Claims, tol: float, scale: float, dtype: Any, shape: tuple[int, ...]
) -> None:
    """Raise a finding where the fields of a result contradict each other or the input."""
    if claims.success != (claims.status == "CONVERGED"):
        raise Finding("fields contradict", f"success={claims.success}, status {claims.status}")
    if claims.x.shape != shape:
        raise Finding("shape changed", f"x has shape {claims.x.shape}, not {shape}")
    if dtype is not None and claims.x.dtype != np.dtype(dtype):
        raise Finding("dtype changed", f"x is {claims.x.dtype}, the input {np.dtype(dtype)}")
    if claims.violation < 0.0 or claims.gap < 0.0 or claims.relative_gap < 0.0:
        raise Finding("fields contradict", "a gap or a violation is negative")
    _check_gap(claims, scale)
    if claims.success:
        _check_success(claims, tol)


def _check_gap(claims: Claims, scale: float) -> None:
    if math.isnan(claims.lower_bound) or claims.lower_bound == math.inf:
        raise Finding("fields contradict", f"the lower bound is {claims.lower_bound}")
    if not math.isfinite(claims.fun):
        return
    expected = claims.fun - claims.lower_bound
    size = abs(claims.fun) + (0.0 if expected == math.inf else abs(claims.lower_bound))
    slack = rounding(eps_of(np.float64), size)
    if not claims.gap >= expected - slack:
        raise Finding("gap understated", f"gap {claims.gap:.6g}, but fun - bound is {expected:.6g}")
    unit = gap_unit(scale, claims.fun)
    if unit > 0.0 and math.isfinite(claims.gap):
        relative = claims.gap / unit
        rounded = 1e-9 + 64.0 * eps_of(claims.x.dtype)  # the terms are added up in that precision
        if not claims.relative_gap >= relative * (1.0 - rounded):
            raise Finding(
                "gap understated", f"relative gap {claims.relative_gap:.6g}, not {relative:.6g}"
            )


def _check_success(claims: Claims, tol: float) -> None:
    if not (np.isfinite(claims.x).all() and math.isfinite(claims.fun)):
        raise Finding("fields contradict", "success with a point that is not finite")
    if not claims.relative_gap <= tol:
        raise Finding(
            "fields contradict",
            f"success with relative gap {claims.relative_gap:.3g} > tol {tol:g}",
        )
    if not claims.violation <= feasible_up_to(eps_of(claims.x.dtype)):
        raise Finding("fields contradict", f"success with violation {claims.violation:.3g}")


def check_violation(claims: Claims, measured: float) -> None:
    """Raise a finding where a point is further outside than the result admits."""
    allowed = feasible_up_to(eps_of(claims.x.dtype))
    if measured <= SLACK * allowed:
        return
    if claims.success:
        raise Finding("infeasible success", f"relative violation {measured:.3g}")
    if claims.violation <= allowed or claims.violation < _GROSS * measured:
        raise Finding(
            "violation understated", f"{claims.violation:.3g} is claimed, it is {measured:.3g}"
        )
