"""The nearest positive semidefinite matrix that satisfies rows: one projection, proved by its multipliers."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from lopro.core.arrays import Array, asarray_like, norm
from lopro.core.counting import count
from lopro.core.deadline import EIGH, current_deadline
from lopro.errors import InfeasibleError, StalledError
from lopro.linalg.dense import EPS
from lopro.methods.semidefinite.form import check_form, member_duals, nearest_form
from lopro.problem import Problem
from lopro.protocol import Candidate, Candidates, Card, ProvedBound, Workbench

__all__ = ["NearestSemidefinite"]


@dataclass(frozen=True)
class NearestSemidefinite:
    """A squared distance over positive semidefinite matrices with rows: Newton's method on the dual.

    Problem: min ``w/2 |X - Z|^2 + <C, X>`` s.t. ``l <= <A_k, X> <= u``, X positive semidefinite, given as a
    sum of `SquaredDistance` and `Linear` over an `Intersection` of a `PSDCone` with `Affine` sets, polyhedra
    and boxes of matrices. Oracles: none; it reads the data. It is one projection, of ``Z - C/w``, which
    takes about seven eigendecompositions with equations and some tens with inequalities.

    Its bound needs no radius: any multipliers prove a bound, and those of a solution a tight one.

    References
    ----------
    H. Qi, D. Sun, "A quadratically convergent Newton method for computing the nearest correlation matrix",
    SIAM J. Matrix Anal. Appl. 28 (2006).

    Examples
    --------
    >>> import numpy as np, lopro
    >>> f = lopro.objectives.SquaredDistance(np.array([[3.0, 2.0], [2.0, 0.0]]))
    >>> fixed = lopro.constraints.Affine.entries(([0, 1], [0, 1]), 1.0, 1.0, shape=(2, 2))
    >>> set_ = lopro.constraints.Intersection(lopro.constraints.PSDCone(2), fixed)
    >>> result = lopro.solve(lopro.Problem(f, set_), method=lopro.NearestSemidefinite())
    >>> result.success, result.x.round(9), round(result.fun, 9), result.counts.projections
    (True, array([[1., 1.],
           [1., 1.]]), 3.5, 1)
    """

    card: ClassVar[Card] = Card(
        assumptions="f a squared distance and a linear function, the set psd matrices with rows",
        oracles="none: it reads the data",
        rate="quadratic near a solution that is not degenerate",
        projections="1",
        reference="Qi, Sun (2006)",
    )

    def check(self, problem: Problem) -> None:
        check_form(problem, distance=True)

    def run(self, bench: Workbench, x0: Array) -> Candidates:
        set_, C, weight, Z = nearest_form(bench.problem)
        deadline = current_deadline()
        deadline.need(EIGH * set_.size**3)
        problem = set_.nearest()
        G = Z - C / weight
        bench.tick()
        count("projections")
        found = problem.solve(G, stopped=lambda: deadline.passed)
        count("eigendecompositions", found.decompositions)
        count("matvecs", found.products)
        if found.emptiness is not None:
            members = bench.problem.constraint.members()
            raise InfeasibleError(found.emptiness, member_duals(members, set_, -found.y))
        if not found.solved:
            deadline.check()
            raise StalledError
        distance = problem.bound(G, found)
        x = asarray_like(found.X, x0)
        # f(X) = weight/2 |X - G|^2 + f(G), up to the rounding of G and of the value there.
        at_G = float(bench.problem.objective.value(G))
        terms = bench.problem.objective.magnitude(G, at_G) + weight * norm(found.X - G) * norm(G)
        value = weight * distance + at_G - 64.0 * EPS * terms
        source = "multipliers of the nearest matrix, rounding included"
        yield Candidate(x, ProvedBound(value, source))
        raise StalledError
