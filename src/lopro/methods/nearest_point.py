"""Squared distances over a set, solved by one projection."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from lopro.constraints import Constraint
from lopro.constraints.compact import CompactSet
from lopro.constraints.polyhedron import Box
from lopro.core.arrays import Array, asarray_like
from lopro.errors import MissingCapabilityError, StalledError
from lopro.functions.atoms import Opaque
from lopro.methods.setting import linearised
from lopro.objectives import Objective, SquaredDistance
from lopro.problem import Problem
from lopro.protocol import Candidate, Candidates, Card, Fit, Multiplier, Workbench

__all__ = ["NearestPoint"]


@dataclass(frozen=True)
class NearestPoint:
    """The nearest point of a set by one projection, proved by the normal vector at that point.

    Problem: min ``w/2 |x - z|^2`` over one bounded set with a linear minimiser (`L1Ball`, `Simplex`,
    `Spectrahedron`, a bounded `Box`), or over a constraint defined by the user. Oracles: one projection, and
    one linear minimisation or one subgradient of c.

    The difference ``v = z - x`` is normal to the set at the projection x. For any ``v`` the maximum of
    ``<v, y>`` over the set gives a lower bound, which equals the value at x if the projection is exact. For a
    constraint of the user the linearisation of c at x replaces the set: the bound is tight where c is
    differentiable at x, and valid whatever the accuracy of the projection.

    Examples
    --------
    >>> import numpy as np, lopro
    >>> f = 2.0 * lopro.objectives.SquaredDistance(np.array([3.0, 1.0]))
    >>> result = lopro.solve(
    ...     lopro.Problem(f, lopro.constraints.L1Ball(2)), method=lopro.NearestPoint()
    ... )
    >>> result.success, result.x, round(result.fun, 9), result.counts.projections
    (True, array([1., 0.]), 5.0, 1)
    """

    card: ClassVar[Card] = Card(
        assumptions="f a squared distance; a bounded set with a linear minimiser, or one of your own",
        oracles="projection, linear minimisation or a subgradient of c",
        rate="exact",
        projections="1",
        reference="the definition of a projection",
    )

    def fit(self, problem: Problem) -> Fit | None:
        """Return the fit to a problem of this form; None for other problems."""
        set_ = problem.constraint
        supported = _has_minimizer(set_) or _is_opaque(set_)
        if not supported or _distance(problem.objective) is None:
            return None
        return Fit(self, "a squared distance over a set is one projection")

    def check(self, problem: Problem) -> None:
        set_ = problem.constraint
        if self.fit(problem) is None:
            raise MissingCapabilityError(
                "NearestPoint needs SquaredDistance over one bounded set with a linear_minimizer (L1Ball, "
                "Simplex, Spectrahedron, a bounded Box) or a set of your own, got "
                f"{problem.objective!r} over {set_!r}"
            )

    def run(self, bench: Workbench, x0: Array) -> Candidates:
        found = _distance(bench.problem.objective)
        assert found is not None
        weight, z = found[0], asarray_like(found[1], x0)
        bench.tick()
        x = bench.project(z)
        normal, c = weight * (z - x), bench.constraint
        bounded = _has_minimizer(bench.problem.constraint)
        inequality = c.support_inequality(-normal) if bounded else linearised(c, x, normal)
        yield Candidate(x, Multiplier(inequality), before=z)
        raise StalledError


def _has_minimizer(set_: Constraint) -> bool:
    """Whether a set is bounded and has a linear minimiser."""
    return isinstance(set_, (CompactSet, Box)) and set_.has_linear_minimizer


def _is_opaque(set_: Constraint) -> bool:
    """Whether a set is given by one function with values, subgradients and projections alone."""
    opaque = len(set_.terms) == 1 and isinstance(set_.terms[0].atom, Opaque)
    return opaque and not set_.has_image_set


def _distance(f: Objective) -> tuple[float, Array] | None:
    """Return the weight and the point of a squared distance; None for another objective."""
    (weight, own), *others = f.summands
    if others or not isinstance(own, SquaredDistance) or own.weights is not None:
        return None
    return weight, own.z
