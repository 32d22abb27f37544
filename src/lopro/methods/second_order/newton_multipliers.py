"""The method of multipliers with semismooth Newton steps."""

from __future__ import annotations

import contextlib
from dataclasses import dataclass
from functools import partial
from typing import ClassVar

import numpy as np

from lopro.certificates import feasibility_tolerance
from lopro.core.arrays import Array
from lopro.core.deadline import OutOfTime
from lopro.errors import StalledError
from lopro.functions.atoms import Atom, Ball, Interval, L1Ball, Opaque, SecondOrderCone
from lopro.maps.host import host_vector
from lopro.methods.answers import answer, member_multipliers, term_multipliers
from lopro.methods.costs import newton_cost
from lopro.methods.second_order.forms import Forms, composite
from lopro.methods.stalling import StallCheck
from lopro.newton.inner import UnboundedBelow
from lopro.newton.problem import Composite
from lopro.newton.solve import outcomes
from lopro.newton.systems import SingularSystem
from lopro.problem import Problem
from lopro.protocol import Candidates, Card, Fit, Workbench

__all__ = ["NewtonMultipliers"]

#: Number of consecutive proofs that are accepted without halving the gap. With 0 and with 20 the same
#: problems of ``python -m benchmarks.constants methods.second_order`` are solved; one that is not takes 0.78
#: and 4.3 times as many steps.
_PATIENCE = 2
#: Share of the tolerated violation at which the method ends, so that points are feasible with a margin: with
#: 1 it takes 2 % fewer steps there, and 0.01 takes as many as 0.1.
_FEASIBILITY_SHARE = 0.1
#: Largest number of entries of matrices with which a point is projected because of the charge for its
#: violation: larger problems make further steps instead.
_QUICKLY_PROJECTED = 1_000_000
#: Names of the sets in explanations.
_SETS: dict[tuple[type[Atom], ...], str] = {
    (Interval,): "rows",
    (Ball, L1Ball): "balls",
    (SecondOrderCone,): "cones",
}


@dataclass(frozen=True)
class NewtonMultipliers:
    """The method of multipliers with semismooth Newton steps: few steps, each with a factorisation.

    Problem: min f(x) + sum of g(Dx) s.t. Mx in Q, where f is a sum of `LeastSquares`, `Quadratic`, `Linear`,
    `SquaredDistance`, `Logistic` and smooth `FunctionObjective` with nonnegative factors, g(Dx) an `L1Norm`,
    an `LInfNorm`, a `GroupNorm` or a `TotalVariation`, and the set is a `Polyhedron`, a box, an `Affine` set,
    a `Simplex`, a `ResidualBall`, an `L1Ball`, a `SecondOrderCone`, or an `Intersection` of those. Oracles:
    it reads the data; of operators and callables it uses products and derivatives, with L-BFGS in place of a
    missing Hessian. Every outer step minimises the sum of f and the centred Moreau envelopes of the other
    terms (``beta/2 dist(Mx + u/beta, Q)^2`` for a set) by Newton's method and then updates the multipliers;
    the iterates converge superlinearly if the solution is not degenerate.

    Its bound needs no radius: the multipliers are refined until the gradient of the Lagrangian is rounding
    error. The remainder lowers the bound by ``|gradient|^2 / (2 mu)`` if f is strongly convex; otherwise the
    certificate states the distance within which it holds.

    References
    ----------
    X. Li, D. Sun, K.-C. Toh, "A highly efficient semismooth Newton augmented Lagrangian method for
    solving Lasso problems", SIAM J. Optim. 28 (2018); B. Hermans, A. Themelis, P. Patrinos, "QPALM: a
    proximal augmented Lagrangian method for nonconvex quadratic programs", Math. Program. Comput. 14 (2022).

    Examples
    --------
    >>> import numpy as np, lopro
    >>> f = lopro.objectives.LeastSquares(np.eye(2), np.array([3.0, 1.0]))
    >>> half = lopro.constraints.Polyhedron([[1.0, 1.0]], [2.0])
    >>> result = lopro.solve(lopro.Problem(f, half), method=lopro.NewtonMultipliers())
    >>> result.success, result.x.round(9), result.counts.projections
    (True, array([2., 0.]), 0)
    """

    card: ClassVar[Card] = Card(
        assumptions="f smooth or a norm or a sum, the set is given by rows and balls",
        oracles="the data, or products and derivatives",
        rate="superlinear near a solution that is not degenerate",
        projections="0 or 1",
        reference="Li, Sun, Toh (2018); Hermans, Themelis, Patrinos (2022)",
    )

    def check(self, problem: Problem) -> None:
        composite(problem)

    def fit(self, problem: Problem) -> Fit | None:
        """Return the fit to a problem, with its reason and cost; None if the method does not fit."""
        return self.fit_to(Forms(problem))

    def fit_to(self, forms: Forms) -> Fit | None:
        """Return the fit to the forms of a problem, which methods share."""
        if forms.composite_obstacle is not None:
            return None
        cost = newton_cost((*forms.terms, *forms.sets), forms.size)
        start = partial(self._run_on, forms)
        return Fit(self, _reason(forms), cost, start)

    def _run_on(self, forms: Forms, bench: Workbench, x0: Array) -> Candidates:
        return self._run(forms.composite, bench, x0)

    def run(self, bench: Workbench, x0: Array) -> Candidates:
        return self._run(composite(bench.problem), bench, x0)

    def _run(self, problem: Composite, bench: Workbench, x0: Array) -> Candidates:
        progress = StallCheck(_PATIENCE, share=0.5)
        quick = problem.entries <= _QUICKLY_PROJECTED
        start = _finite_start(problem, host_vector(x0))
        with contextlib.suppress(OutOfTime, SingularSystem, UnboundedBelow):
            for outcome in outcomes(
                problem,
                bench.target.tol,
                _FEASIBILITY_SHARE * feasibility_tolerance(x0),
                bench.target.scale,
                bench.unit,
                start,
                _first_multipliers(problem, bench),
                stopped=lambda: not bench.tick(),
            ):
                yield answer(problem.terms, outcome, bench, x0, member_multipliers, mend=quick)
                if progress.stalled(outcome.lacking(bench.unit)):
                    break
        raise StalledError


def _reason(forms: Forms) -> str:
    """Return why the method fits a problem."""
    kinds = {type(term.atom) for term in forms.sets}
    sets = " and ".join(name for kind, name in _SETS.items() if kinds.intersection(kind))
    own = [term.atom.function for term in forms.terms if isinstance(term.atom, Opaque)]
    hessians = all(function.has_hessian for function in own)
    smooth = "f has second derivatives" if hessians else "f is smooth (L-BFGS)"
    norms = ", norms have a prox," if forms.norms else ""
    if forms.norms and forms.linear:
        smooth, norms = "f is a norm with a prox", ""
    if not sets:
        return f"{smooth}{norms.rstrip(',')}"
    return f"{smooth}{norms} and the set is given by {sets}"


def _finite_start(problem: Composite, x0: Array) -> Array:
    """Return the start, or zero if the gradient at the start overflows."""
    with np.errstate(over="ignore", invalid="ignore"):
        finite = np.isfinite(problem.smooth.gradient(x0, problem.smooth.image(x0))).all()
    return x0 if finite else 0.0 * x0


def _first_multipliers(problem: Composite, bench: Workbench) -> list[Array] | None:
    """Return the given multipliers of the sets, and zeros for the norms; None if none are given."""
    given = bench.multipliers0
    if given is None:
        return None
    sets = term_multipliers(bench.problem.constraint, [host_vector(v) for v in given])
    pairs = zip(problem.terms, sets, strict=False)  # norms come last
    inside = [term.into_domain(v) for term, v in pairs]
    return [*inside, *(np.zeros(term.size) for term in problem.terms[len(sets) :])]
