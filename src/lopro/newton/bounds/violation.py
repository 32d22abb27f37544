"""What the violation of a point can have gained: it is charged to the gap."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from lopro.newton.arrays import EPS, Array, norm
from lopro.newton.problem import Composite

__all__ = ["relative_violation", "violation_charge"]


def violation_charge(problem: Composite, x: Array, multipliers: Sequence[Array]) -> float:
    """Return ``sum |v_i| viol_i``: by so much, at most, ``f(x)`` may be below the optimal value.

    Examples
    --------
    >>> import numpy as np
    >>> from lopro.functions.atoms import Interval, Linear
    >>> from lopro.functions.term import Term
    >>> from lopro.newton import Composite
    >>> from lopro.newton.bounds import violation_charge
    >>> terms = [Term(Linear(np.array([-2.0]))), Term(Interval([-np.inf], [1.0]))]
    >>> problem = Composite.of(terms, 1)
    >>> charge = violation_charge(problem, np.array([1.5]), [np.array([2.0])])
    >>> abs(charge - 1.0) < 1e-14
    True
    """
    charge = 0.0
    for term, v in zip(problem.terms, multipliers, strict=True):
        excess = term.distance(term.image(x))
        sizes = np.abs(v) if term.separable else np.sqrt(v @ v)
        charge += float(np.sum(sizes * excess)) * (1.0 + (term.size + 4) * EPS)
    return charge


def relative_violation(problem: Composite, x: Array) -> float:
    """Return the largest violation, each relative to its row's norm times ``|x|`` and its bounds."""
    worst = 0.0
    length = float(np.sqrt(x @ x))
    for term in problem.terms:
        image = term.image(x)
        excess = np.atleast_1d(term.distance(image))
        sizes = term.row_norms * length
        if term.separable:
            sizes = np.maximum(sizes, np.abs(image) + excess)
            shares = excess / np.where(sizes > 0.0, sizes, 1.0)
        else:
            largest = max(norm(sizes), norm(image) + float(excess[0]))
            shares = excess / (largest if largest > 0.0 else 1.0)
        worst = max(worst, float(shares.max(initial=0.0)))
    return worst
