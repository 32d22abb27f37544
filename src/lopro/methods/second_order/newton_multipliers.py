"""The method of multipliers with semismooth Newton steps."""

from __future__ import annotations

import contextlib
import math
from dataclasses import dataclass
from functools import partial
from typing import ClassVar

import numpy as np

from lopro.certificates import feasibility_tolerance
from lopro.core.arrays import Array
from lopro.core.deadline import OutOfTime
from lopro.errors import StalledError
from lopro.functions.atoms import Atom, Ball, Interval, L1Ball, SecondOrderCone
from lopro.maps.host import host_vector
from lopro.methods.answers import answer, member_multipliers, term_multipliers
from lopro.methods.costs import newton_cost
from lopro.methods.second_order.forms import Forms, composite, has_second_derivatives
from lopro.newton.inner import UnboundedBelow
from lopro.newton.problem import Composite
from lopro.newton.solve import outcomes
from lopro.newton.systems import SingularSystem
from lopro.problem import Problem
from lopro.protocol import Candidates, Card, Fit, Workbench

__all__ = ["NewtonMultipliers"]

#: Proofs without progress after which a run has stalled.
_PATIENCE = 3
#: Of the violation that is allowed: one more step to get there costs less than a projection afterwards.
_INSIDE = 0.1
#: Entries of matrices up to which a projection takes no longer than a few steps.
_QUICKLY_PROJECTED = 1_000_000
#: The sets in words.
_SETS: dict[tuple[type[Atom], ...], str] = {
    (Interval,): "rows",
    (Ball, L1Ball): "balls",
    (SecondOrderCone,): "cones",
}


@dataclass(frozen=True)
class NewtonMultipliers:
    """Semismooth Newton steps on augmented Lagrangians: few steps, each with a factorisation.

    Problem: min f(x) + sum of g(Dx) s.t. Mx in Q, where f is a sum of `LeastSquares`, `Quadratic`, `Linear`,
    `SquaredDistance`, `Logistic` and smooth `FunctionObjective` with nonnegative factors, g(Dx) an `L1Norm`,
    an `LInfNorm`, a `GroupNorm` or a `TotalVariation`, and the set a `Polyhedron`, a box, an `Affine` set, a
    `Simplex`, a `ResidualBall`, an `L1Ball`, a `SecondOrderCone`, or an `Intersection` of those. Oracles: it
    reads the data; of operators and callables it uses products and derivatives, which are those of L-BFGS
    where there is no Hessian. Every outer step minimises f and the centred Moreau envelopes of all others,
    for a set ``beta/2 dist(Mx + u/beta, Q)^2``, by Newton's method and takes over the multipliers; the
    iterates converge superlinearly where the solution is not degenerate.

    Its bound needs no radius: the multipliers are refined until the slope of the Lagrangian is rounding,
    and what rounding is left costs ``|slope|^2 / (2 mu)`` where f is strongly convex; elsewhere the
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
        """Return why the method fits a problem and what it would cost; None where it does not."""
        return self.fit_to(Forms(problem))

    def fit_to(self, forms: Forms) -> Fit | None:
        """Return the same for forms that other methods may share."""
        if forms.composite_lacks is not None:
            return None
        cost = newton_cost((*forms.terms, *forms.sets), forms.size)
        start = partial(self._run_on, forms)
        return Fit(self, _reason(forms), cost, start)

    def _run_on(self, forms: Forms, bench: Workbench, x0: Array) -> Candidates:
        return self._run(forms.composite, bench, x0)

    def run(self, bench: Workbench, x0: Array) -> Candidates:
        return self._run(composite(bench.problem), bench, x0)

    def _run(self, problem: Composite, bench: Workbench, x0: Array) -> Candidates:
        progress = _Progress()
        quick = problem.entries <= _QUICKLY_PROJECTED
        start = _finite_start(problem, host_vector(x0))
        with contextlib.suppress(OutOfTime, SingularSystem, UnboundedBelow):
            for outcome in outcomes(
                problem,
                bench.target.tol,
                _INSIDE * feasibility_tolerance(x0),
                bench.target.scale,
                bench.unit,
                start,
                _first_multipliers(problem, bench),
                stopped=lambda: not bench.tick(),
            ):
                yield answer(problem.terms, outcome, bench, x0, member_multipliers, mend=quick)
                if not progress.made(outcome.lacking(bench.unit)):
                    break
        raise StalledError


def _reason(forms: Forms) -> str:
    """Return why the method fits a problem."""
    kinds = {type(term.atom) for term in forms.sets}
    sets = " and ".join(name for kind, name in _SETS.items() if kinds.intersection(kind))
    known = has_second_derivatives(forms.problem)
    smooth = "f has second derivatives at hand" if known else "f is smooth (L-BFGS)"
    norms = ", norms have a prox," if forms.norms else ""
    if forms.norms and forms.linear:
        smooth, norms = "f is a norm with a prox", ""
    if not sets:
        return f"{smooth}{norms.rstrip(',')}"
    return f"{smooth}{norms} and the set is given by {sets}"


def _finite_start(problem: Composite, x0: Array) -> Array:
    """Return the start, or zero where the gradient there is beyond the range of numbers."""
    with np.errstate(over="ignore", invalid="ignore"):
        finite = np.isfinite(problem.smooth.gradient(x0, problem.smooth.image(x0))).all()
    return x0 if finite else 0.0 * x0


def _first_multipliers(problem: Composite, bench: Workbench) -> list[Array] | None:
    """Return the given multipliers of the sets, and zeros for the norms."""
    given = bench.multipliers0
    if given is None:
        return None
    sets = term_multipliers(bench.problem.constraint, [host_vector(v) for v in given])
    pairs = zip(problem.terms, sets, strict=False)  # norms come last
    inside = [term.into_domain(v) for term, v in pairs]
    return [*inside, *(np.zeros(term.size) for term in problem.terms[len(sets) :])]


class _Progress:
    """Whether what is lacking of a proof still falls."""

    def __init__(self) -> None:
        self._least, self._since = math.inf, 0

    def made(self, lacking: float) -> bool:
        """Take note of the next one; False after some that have not fallen by half."""
        falls = lacking < 0.5 * self._least
        self._least, self._since = min(lacking, self._least), 0 if falls else self._since + 1
        return self._since < _PATIENCE
