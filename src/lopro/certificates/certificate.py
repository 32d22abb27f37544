"""The certificate of a point: what is known of its value, its violation, and how."""

from __future__ import annotations

import math
from dataclasses import dataclass

from lopro.certificates.target import Target
from lopro.certificates.tolerances import FEASIBLE

__all__ = ["Certificate"]


@dataclass(frozen=True)
class Certificate:
    """How good a point is, and how that is known.

    Attributes
    ----------
    gap : float
        The value is at most so far above the optimal one; infinite where the point is not feasible or no
        bound is known. It includes ``charge``.
    relative_gap : float
        The gap over the sum of the absolute terms of the value.
    lower_bound : float
        No feasible point within ``radius`` of x has a smaller value.
    violation : float
        The largest relative violation: of a row ``a'x <= b`` that is
        ``(a'x - b)_+ / (sum_j |a_j| |x_j| + |b|)``, of a ball the excess over its own radius, of a
        matrix minus the least eigenvalue in units of its diagonal.
    source : str
        How the bound is known.
    radius : float
        The bound holds for points within this distance of ``x``; infinite where it holds everywhere. A bound
        that loses with the distance holds in every variable within ``1e4 max(|x_j|, s_j)``, ``s_j`` being the
        unit that the data tell (`lopro.certificates.reach_units`): the radius is the smallest of these.
    absolute_violation : float
        The largest violation in the units of its own row.
    charge : float
        What the violation may have gained: the multipliers times the violations. ``fun`` may lie below
        ``lower_bound`` by so much.
    empty_within : float
        No point within this distance of zero satisfies the constraints: multipliers prove that, but not that
        there is none farther out. 0 where nothing is known.

    Examples
    --------
    >>> from lopro.certificates import Certificate
    >>> Certificate.of(fun=2.0, lower_bound=1.5, violation=0.0, source="", absolute=0.0).gap
    0.5

    A row ``1000 x <= 2000`` at ``x = 2.5`` is violated by 500, and compares 2500 with 2000:

    >>> import lopro
    >>> row = lopro.constraints.Polyhedron([[1000.0]], [2000.0])
    >>> import numpy as np
    >>> row.absolute_violation(np.array([2.5])), round(row.violation(np.array([2.5])), 6)
    (500.0, 0.111111)
    """

    gap: float
    relative_gap: float
    lower_bound: float
    violation: float
    source: str
    radius: float = math.inf
    absolute_violation: float = math.nan
    charge: float = 0.0
    empty_within: float = 0.0

    @staticmethod
    def of(
        fun: float,
        lower_bound: float,
        violation: float,
        source: str,
        target: Target | None = None,
        gained: float = 0.0,
        radius: float = math.inf,
        *,
        absolute: float,
        feasible: float = FEASIBLE,
        empty_within: float = 0.0,
    ) -> Certificate:
        """Build the certificate of a point with value ``fun``; the target says what gaps are relative to.

        ``gained`` is what the value may owe to the violation: it counts as a part of the gap. A lower bound
        may pass the value by rounding, or by what was gained; more than that would show as a gap as well. A
        point that violates the set by more than ``feasible``, relatively, has no gap: it proves nothing.
        """
        known = math.isfinite(lower_bound) and violation <= feasible
        gap = max(fun - lower_bound, 0.0) + gained if known else math.inf
        relative = (target or Target(0.0)).relative(gap, fun)
        return Certificate(
            gap, relative, lower_bound, violation, source, radius, absolute, gained, empty_within
        )

    @staticmethod
    def unknown() -> Certificate:
        """Return the certificate that certifies nothing."""
        return Certificate(math.inf, math.inf, -math.inf, math.inf, "nothing is known")
