"""Alternating directions: a prox of the objective and a projection onto the set in every iteration."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

from lopro.constraints.base import ValidInequality
from lopro.core.arrays import Array, inner, norm
from lopro.errors import MissingCapabilityError, StalledError
from lopro.methods.splitting.base import SplittingMethod, balancing_factor
from lopro.methods.splitting.settings import SETTINGS
from lopro.methods.stalling import StallCheck
from lopro.objectives import Objective
from lopro.problem import Problem
from lopro.protocol import Candidate, Candidates, Card, Multiplier, Workbench

__all__ = ["AlternatingDirections"]


@dataclass(frozen=True)
class AlternatingDirections(SplittingMethod):
    """Alternating directions (Douglas-Rachford): a prox of f and a projection on the set in every iteration.

    Problem: min f(x) s.t. c(x) <= 0, where f has a prox and the set a projection in closed form (bounds on
    entries, rows that share no variable). Oracles: prox, projection. It is for functions whose prox is
    expensive, such as `NuclearNorm`, where few iterations matter more than few projections.

    The vector ``w - P(w)`` of a projection is normal to the set; scaled into the domain of the conjugate of f
    it proves a lower bound. The method needs no constants.

    Parameters
    ----------
    every : int
        Iterations before the first check of the gap; a check takes as long as one or two iterations.
    relaxation : float
        At least 1 and below 2; 1.5 to 1.8 are recommended (see `ADMM`).
    patience : int
        Number of consecutive checks without a smaller gap that are accepted.

    References
    ----------
    J. Eckstein, D. P. Bertsekas, "On the Douglas-Rachford splitting method and the proximal point algorithm
    for maximal monotone operators", Math. Program. 55 (1992).

    Examples
    --------
    A matrix of rank one from three of its entries:

    >>> import numpy as np, lopro
    >>> f = lopro.objectives.NuclearNorm((2, 2))
    >>> known = lopro.constraints.Affine.entries(
    ...     [0, 1, 2], [4.0, 2.0, 2.0], [4.0, 2.0, 2.0], (2, 2)
    ... )
    >>> result = lopro.solve(lopro.Problem(f, known), method=lopro.AlternatingDirections())
    >>> result.success, result.x.round(3), round(result.fun, 4)
    (True, array([[4., 2.],
           [2., 1.]]), 5.0)
    """

    card: ClassVar[Card] = Card(
        assumptions="f has a prox, the set a projection in closed form",
        oracles="prox, projections on the set",
        rate="O(1/T); linear near many solutions",
        projections="1 per iteration, in closed form",
        reference="Eckstein, Bertsekas (1992)",
    )

    every: int = 10
    relaxation: float = 1.6
    patience: int = 30

    def check(self, problem: Problem) -> None:
        if not problem.objective.proximable:
            raise MissingCapabilityError(f"the objective {problem.objective!r} has no prox")
        if not problem.constraint.projects_in_closed_form:
            raise MissingCapabilityError(
                f"the projection on {problem.constraint!r} has no closed form"
            )

    def run(self, bench: Workbench, x0: Array) -> Candidates:
        z = bench.project(x0)
        step, u = SETTINGS.first_step * _dual_size(bench.objective, z), 0.0 * z
        progress, k, next_check = StallCheck(self.patience), 0, self.every
        while bench.tick():
            x = bench.objective.prox(z - u, step)
            w = self.relaxation * x + (1.0 - self.relaxation) * z + u
            last, z = z, bench.project(w)
            u, k = w - z, k + 1
            if k < next_check:
                continue
            next_check = self.next_certificate(k, SETTINGS.check_share)
            v = u / step
            verdict = yield Candidate(z, Multiplier(ValidInequality(v, inner(v, z))))
            if progress.stalled(verdict.merit()):
                break
            # The penalty of ADMM is the inverse of the step.
            factor = balancing_factor(norm(x - z) / _size(x), norm(z - last) / _size(u))
            step, u = step / factor, u / factor
        raise StalledError


def _size(x: Array) -> float:
    """Return the norm of an array; 1 for zero."""
    return norm(x) or 1.0


def _dual_size(f: Objective, z: Array) -> float:
    """Return about the least step at which the prox of ``z`` is 0: the dual norm of ``z`` if f is a norm."""
    length = norm(z)
    if length == 0.0:
        return 1.0
    # For a multiple of z far outside of the domain, in any units, the scale is the inverse of its dual norm.
    factor = 1e6 * math.sqrt(math.prod(z.shape)) / length
    scale = f.scale_into_domain(factor * z)
    return length if scale is None or scale == 0.0 else 1.0 / (scale * factor)
