"""The choice of a method from the structure of the problem and from estimates of cost."""

from __future__ import annotations

import math
import warnings
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from itertools import chain
from math import prod
from typing import ClassVar

from lopro.core.arrays import Array, eps, is_single, on_host
from lopro.core.deadline import current_deadline
from lopro.engines import EngineUnavailable
from lopro.engines.answer import installed
from lopro.errors import InfeasibleError, PrecisionWarning, StalledError
from lopro.functions.atoms import Interval, L1Ball, LInf, SecondOrderCone
from lopro.maps import SparseMap
from lopro.methods.applications import registered
from lopro.methods.costs import admm_cost, least_conic_cost, least_newton_cost, passes_cost
from lopro.methods.multipliers import MultiplierMethod
from lopro.methods.nearest_point import NearestPoint
from lopro.methods.paper.low_projection import LoPGD
from lopro.methods.second_order import NewtonMultipliers, ProgramEngines
from lopro.methods.second_order.forms import Forms
from lopro.methods.second_order.interior_point import InteriorPoint, UnprovedRay
from lopro.methods.semidefinite import LowRankFactors, NearestSemidefinite, SemidefiniteEngines
from lopro.methods.splitting import ADMM, admm_reason, is_explicit, is_norm_of_image
from lopro.methods.splitting.alternating import AlternatingDirections
from lopro.objectives import NuclearNorm, Scaled, SquaredDistance
from lopro.problem import Problem
from lopro.protocol import Candidates, Card, Fit, Method, Workbench, fit_of

__all__ = ["Auto"]

#: Entries of matrices up to which an interior point method follows where Newton's method proves too little.
_SMALL_FORM = 100_000
#: Methods that compute in the precision of the points; the others convert the data to double precision.
_FIRST_ORDER = (MultiplierMethod, ADMM, LoPGD, AlternatingDirections)
#: The smallest relative gap that first-order methods prove, in units of rounding: all 140 pairs of the
#: contract tests were proved to 1e-4 in single precision, and linear costs over balls to no less than 2e-6 to
#: 8e-6.
_LEAST_GAP = 128.0

#: The engine that is fastest on dense programs.
_PIQP = ProgramEngines(engines=("piqp",))


@dataclass(frozen=True)
class Auto:
    """The default: the methods that fit the problem, one after the other until one of them solves it.

    In this order: the application that recognises the problem (basis pursuit, metric learning); one
    projection for a squared distance; semidefinite programs and nearest matrices; nuclear norms over bounds
    on entries; where f is smooth, or the sum of a smooth function and norms, and the set is given by rows and
    balls, engines for quadratic and linear programs and Newton's method, the cheaper one first
    (`lopro.explain` prints the estimates); the method of multipliers for sets ``{x : M x in Q}`` with a cheap
    projection on Q; an interior point method for problems with a conic form; adaptive LoPGD.

    Examples
    --------
    >>> import numpy as np, lopro
    >>> f = lopro.objectives.L1Norm()
    >>> half = lopro.constraints.Polyhedron(np.array([[-2.0, -1.0]]), np.array([-1.0]))
    >>> lopro.Auto().choose(lopro.Problem(f, half))
    NewtonMultipliers()
    """

    card: ClassVar[Card] = Card(
        assumptions="none: it chooses by the structure of the problem",
        oracles="those of the chosen method",
        rate="that of the chosen method",
        projections="O(log 1/eps)",
        reference="this library",
    )

    def choices(self, problem: Problem) -> list[Fit]:
        """Return the methods that fit, in the order in which they run."""
        return list(_plan(problem))

    def choose(self, problem: Problem) -> Method:
        """Return the method that runs first."""
        return next(_plan(problem)).method

    def check(self, problem: Problem) -> None:
        self.choose(problem)

    def fit(self, problem: Problem) -> Fit:
        """Return the plan: the first method is chosen now, each other one after those before it failed."""
        plan = _plan(problem)
        first = next(plan)

        def start(bench: Workbench, x0: Array) -> Candidates:
            return _run(chain([first], plan), bench, x0)

        return Fit(self, first.reason, first.cost, start)

    def run(self, bench: Workbench, x0: Array) -> Candidates:
        return _run(_plan(bench.problem), bench, x0)


def _run(plan: Iterable[Fit], bench: Workbench, x0: Array) -> Candidates:
    """Run one method after the other until the problem is solved."""
    stalled: StalledError | EngineUnavailable | UnprovedRay | None = None
    excluded: InfeasibleError | None = None
    for fit in plan:
        _warn_of_precision(fit.method, bench, x0)
        bench.hand_over(fit.method)
        stalled = None
        try:
            yield from fit.run(bench, x0)
        except (StalledError, EngineUnavailable, UnprovedRay) as error:
            stalled = error
        except InfeasibleError as error:
            if math.isinf(error.radius):
                raise
            excluded = error  # feasible points farther out are not excluded
        if bench.exhausted:
            return
    if excluded is not None:
        raise excluded
    if stalled is not None:
        raise stalled


def _warn_of_precision(method: Method, bench: Workbench, x0: Array) -> None:
    """Warn of a tolerance that a method cannot reach in the precision of the points, before it runs."""
    least = _LEAST_GAP * eps(x0)
    if not is_single(x0) or not (
        0.0 < bench.target.tol < least and isinstance(method, _FIRST_ORDER)
    ):
        return
    if bench.problem.objective.coarse_slopes:
        return  # the precision of the slopes limits the gap; the objective has given that warning
    if _has_coupled(bench.problem):
        return  # Newton's method follows, in double precision
    warnings.warn(
        f"tol={bench.target.tol:.1g} is below {least:.1g}, the least gap that {type(method).__name__} "
        "can prove where the points are in single precision: give data in float64, or a larger tol",
        PrecisionWarning,
        stacklevel=2,
    )


def _plan(problem: Problem) -> Iterator[Fit]:
    """Yield the methods that fit; each is chosen only when those before it have failed."""
    for application in registered:
        fits = isinstance(problem.objective, application.objectives)
        method = application.recognise(problem) if fits else None
        if method is not None:
            yield Fit(method, f"it has the form of {application.name}")
            return
    yield from _closed_forms(problem)
    tried: list[Method] = []
    for fit in _second_order(problem):
        tried.append(fit.method)
        yield fit
    images = all(member.has_image_set for member in problem.constraint.members())
    reason = (
        "the set is {x : M x in Q} with a cheap projection on Q"
        if images
        else "the set is given by smooth functions, or linear maps into easy sets"
    )
    general = fit_of(MultiplierMethod(), problem, reason)
    if general is not None:
        yield replace(general, cost=passes_cost(_entries(problem)))
        if NewtonMultipliers() not in tried and _has_coupled(problem):
            newton = NewtonMultipliers().fit(problem)
            if newton is not None:
                yield newton
        return
    general = InteriorPoint().fit(problem)
    if general is not None:
        if InteriorPoint() not in tried:
            yield general
        newton = None if tried else NewtonMultipliers().fit(problem)
        if newton is not None:
            yield replace(newton, reason="its norms have a prox")
    by_products = None if ADMM() in tried else admm_reason(problem, first=False)
    if by_products is not None:
        yield Fit(ADMM(), by_products)
    if general is not None:
        return
    LoPGD().check(problem)
    yield Fit(LoPGD(), "only values, slopes and projections are known; few projections are used")


def _closed_forms(problem: Problem) -> Iterator[Fit]:
    """Yield methods for squared distances, for semidefinite matrices, and for nuclear norms."""
    f = problem.objective.f if isinstance(problem.objective, Scaled) else problem.objective
    fit = NearestPoint().fit(problem) if isinstance(f, SquaredDistance) else None
    if fit is not None:
        yield fit
    if problem.shape is not None and len(problem.shape) == 1:
        return
    fit = fit_of(LowRankFactors(), problem, "a linear cost over matrices with a given diagonal")
    if fit is not None:
        yield fit
    fit = fit_of(SemidefiniteEngines(), problem, "it is a semidefinite program")
    if fit is None:
        reason = "a squared distance over semidefinite matrices is one projection"
        fit = fit_of(NearestSemidefinite(), problem, reason)
    if fit is not None:
        yield fit
    if isinstance(f, NuclearNorm):
        reason = "its prox takes singular values, and the projection is a formula"
        fit = fit_of(AlternatingDirections(), problem, reason)
        if fit is not None:
            yield fit


def _second_order(problem: Problem) -> Iterator[Fit]:
    """Yield Newton's method, the engines and methods for norms of images, the cheapest first."""
    forms = Forms(problem)
    # A dense program that PIQP does not solve goes to Newton's method before other engines.
    dense = forms.program_obstacle is None and not forms.sparse and installed("piqp")
    first = (_PIQP if dense else ProgramEngines()).fit_to(forms)
    if first is not None and _operations(first) <= least_newton_cost():
        yield first  # cheaper than Newton's method on any problem
        first = None
    newton = NewtonMultipliers().fit_to(forms) if _suits_newton(forms) else None
    others = [] if forms.program_obstacle is None else _for_norms_of_images(problem)
    if others and others[0].cost is None:
        yield others.pop(0)
    fits = (fit for fit in (first, newton, *others) if fit is not None)
    yield from sorted(fits, key=_operations)
    last: Fit | None = None
    cones = any(isinstance(term.atom, SecondOrderCone) for term in forms.sets)
    if forms.linear and cones and _entries(problem) <= _SMALL_FORM:
        last = InteriorPoint().fit(problem)
    elif dense:
        last = ProgramEngines().fit_to(forms)
        last = last and replace(last, reason="the same program, by all engines in turn")
    elif newton is not None and forms.program_obstacle is not None and not others:
        small = forms.composite.entries <= _SMALL_FORM
        last = InteriorPoint().fit(problem) if small else None
    if last is not None:
        yield last


def _for_norms_of_images(problem: Problem) -> list[Fit]:
    """Return ADMM, without a cost if it is to run first, and an interior point method that may be faster."""
    reason = admm_reason(problem)
    if reason is None:
        return []
    if not is_explicit(problem):
        return [Fit(ADMM(), reason)]
    entries = _entries(problem)
    cost = admm_cost(entries)
    admm = Fit(ADMM(), reason, cost)
    likes = (problem.objective.like, problem.constraint.like)
    on_device = any(like is not None and not on_host(like) for like in likes)
    if least_conic_cost(entries) >= cost.operations or (on_device and entries > _SMALL_FORM):
        return [admm]
    conic = InteriorPoint().fit(problem)
    # Clarabel cannot be interrupted within a step: it is not started if its cost exceeds the time left.
    affordable = conic is not None and current_deadline().affords(_operations(conic))
    return [admm, conic] if conic is not None and affordable else [admm]


def _entries(problem: Problem) -> float:
    """Return the number of entries of all matrices, which a product with each of them reads."""
    maps = {id(t.map): t.map for t in problem.terms if t.map is not None}.values()
    return sum(float(D.matrix.nnz if isinstance(D, SparseMap) else prod(D.shape)) for D in maps)


def _operations(fit: Fit) -> float:
    return math.inf if fit.cost is None else fit.cost.operations


def _has_coupled(problem: Problem) -> bool:
    """Whether a term is an l1 ball or an l-infinity norm, which couples its largest entries.

    A Newton step changes few of these at a time: least squares of 100 x 300 with an l-infinity norm take
    Newton's method over 30 s and the method of multipliers 1 s; of 400 x 100 over an l1 ball 0.04 and 0.2 s.
    """
    return any(isinstance(term.atom, L1Ball | LInf) for term in problem.terms)


def _suits_newton(forms: Forms) -> bool:
    """Whether Newton's method may be the fastest: f has curvature, or is a norm over a set given by rows.

    The norm must be one of the variables, or of many more samples than variables. Interior point and
    first-order methods are faster for norms of other images and for norms over balls.
    """
    if forms.composite_obstacle is not None:
        return False
    if _has_coupled(forms.problem):
        return False
    rows = all(isinstance(term.atom, Interval) for term in forms.sets)
    return not forms.linear or (rows and not any(is_norm_of_image(term) for term in forms.norms))
