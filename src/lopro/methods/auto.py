"""Auto: the choice of a method by the structure of the problem, without constants."""

from __future__ import annotations

import math
import warnings
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from itertools import chain
from math import prod
from typing import Any, ClassVar, Protocol

from lopro.core.arrays import Array, eps, is_single, on_host
from lopro.core.deadline import current_deadline
from lopro.engines import EngineUnavailable
from lopro.engines.answer import installed
from lopro.errors import InfeasibleError, PrecisionWarning, StalledError
from lopro.functions.atoms import Interval, L1Ball, LInf, SecondOrderCone
from lopro.maps import SparseMap
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

__all__ = ["Application", "Auto", "applications", "recognised", "register"]

#: Entries of matrices up to which an interior point method follows where Newton's method proves too little.
_SMALL_FORM = 100_000
#: Methods that compute in the precision of the points; the others widen the data, or copy them to the host.
_FIRST_ORDER = (MultiplierMethod, ADMM, LoPGD, AlternatingDirections)
#: Rounding units that first-order methods leave of the gap: of 140 pairs of the contract in single precision
#: all were proved to 1e-4, and linear costs over balls to 2e-6 to 8e-6 only.
_ROUNDINGS = 128.0


#: The engine that is fast on dense programs.
_PIQP = ProgramEngines(engines=("piqp",))


class Application(Protocol):
    """A problem with methods of its own, from top to bottom in one folder."""

    #: Its name in explanations.
    name: str
    #: The classes of objectives that its problems have: `recognise` is not called for others.
    objectives: tuple[type[Any], ...]
    #: Its methods, by their public names.
    methods: dict[str, Any]

    def recognise(self, problem: Problem) -> Method | None:
        """Return the method for a general problem that has this form; None for others."""
        ...


_applications: list[Application] = []


def register(application: Application) -> None:
    """Register an application with `lopro.Auto` and the tables of methods."""
    if all(known.name != application.name for known in _applications):
        _applications.append(application)


def applications() -> tuple[Application, ...]:
    """Return the applications that are registered."""
    return tuple(_applications)


def recognised(problem: Problem) -> tuple[str, Method] | None:
    """Return the name of the application whose form a problem has, and its method; None for others."""
    for application in _applications:
        fits = isinstance(problem.objective, application.objectives)
        method = application.recognise(problem) if fits else None
        if method is not None:
            return application.name, method
    return None


@dataclass(frozen=True)
class Auto:
    """The default: the method that fits the problem, and the next one where it does not get there.

    In this order: the application whose form is recognised (basis pursuit, metric learning); one
    projection for a squared distance; semidefinite programs and nearest matrices; nuclear norms over bounds
    on entries; engines for quadratic and linear programs and Newton's method, where f is smooth, with norms
    or without, and the set is given by rows and balls, whichever costs less (`lopro.explain` prints the
    estimates); the method of multipliers for sets ``{x : M x in Q}`` with a cheap projection on Q; an
    interior point method where there is a conic form; adaptive LoPGD.

    Examples
    --------
    >>> import numpy as np, lopro
    >>> f = lopro.objectives.L1Norm()
    >>> half = lopro.constraints.Polyhedron(np.array([[-2.0, -1.0]]), np.array([-1.0]))
    >>> lopro.Auto().choose(lopro.Problem(f, half))
    NewtonMultipliers()
    """

    card: ClassVar[Card] = Card(
        assumptions="none: it picks by what the problem offers",
        oracles="those of the method it picks",
        rate="that of the method it picks",
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
        """Return the plan: the first method is looked for now, the others when it has not got there."""
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
        _say_what_can_be_proved(fit.method, bench, x0)
        bench.hand_over(fit.method)
        stalled = None
        try:
            yield from fit.run(bench, x0)
        except (StalledError, EngineUnavailable, UnprovedRay) as error:
            stalled = error
        except InfeasibleError as error:
            if math.isinf(error.radius):
                raise
            excluded = error  # there may be points farther out
        if bench.exhausted:
            return
    if excluded is not None:
        raise excluded
    if stalled is not None:
        raise stalled


def _say_what_can_be_proved(method: Method, bench: Workbench, x0: Array) -> None:
    """Warn of a tolerance that a method cannot reach in the precision of the points, before it runs."""
    least = _ROUNDINGS * eps(x0)
    if not is_single(x0) or not (
        0.0 < bench.target.tol < least and isinstance(method, _FIRST_ORDER)
    ):
        return
    if bench.problem.objective.coarse_slopes:
        return  # the slopes limit the gap, not the points; the warning was given where they were made
    if _has_coupled(bench.problem):
        return  # Newton's method takes over, in double precision
    warnings.warn(
        f"tol={bench.target.tol:.1g} is below {least:.1g}, the least gap that {type(method).__name__} "
        "can prove where the points are in single precision: give data in float64, or a larger tol",
        PrecisionWarning,
        stacklevel=2,
    )


def _plan(problem: Problem) -> Iterator[Fit]:
    """Yield the methods that fit, each looked for when the ones before have failed."""
    found = recognised(problem)
    if found is not None:
        yield Fit(found[1], f"it has the form of {found[0]}")
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
    """Yield methods for problems that are one projection, matrices, or given by singular values."""
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
    """Yield Newton's method and the engines, the cheaper one first."""
    forms = Forms(problem)
    # Dense programs that PIQP does not prove go to Newton's method before other engines.
    quick = forms.program_lacks is None and not forms.sparse and installed("piqp")
    first = (_PIQP if quick else ProgramEngines()).fit_to(forms)
    if first is not None and _operations(first) <= least_newton_cost():
        yield first  # Newton's method takes longer than that whatever the problem is
        first = None
    newton = NewtonMultipliers().fit_to(forms) if _suits_newton(forms) else None
    others = [] if forms.program_lacks is None else _for_norms_of_images(problem)
    if others and others[0].cost is None:
        yield others.pop(0)
    fits = (fit for fit in (first, newton, *others) if fit is not None)
    yield from sorted(fits, key=_operations)
    last: Fit | None = None
    cones = any(isinstance(term.atom, SecondOrderCone) for term in forms.sets)
    if forms.linear and cones and _entries(problem) <= _SMALL_FORM:
        last = InteriorPoint().fit(problem)
    elif quick:
        last = ProgramEngines().fit_to(forms)
        last = last and replace(last, reason="the same program, by all engines in turn")
    elif newton is not None and forms.program_lacks is not None and not others:
        small = forms.composite.entries <= _SMALL_FORM
        last = InteriorPoint().fit(problem) if small else None
    if last is not None:
        yield last


def _for_norms_of_images(problem: Problem) -> list[Fit]:
    """Return ADMM, without a cost where it comes first, and an interior point method that may be faster."""
    reason = admm_reason(problem)
    if reason is None:
        return []
    if not is_explicit(problem):
        return [Fit(ADMM(), reason)]
    entries = _entries(problem)
    cost = admm_cost(entries)
    admm = Fit(ADMM(), reason, cost)
    likes = (problem.objective.like, problem.constraint.like)
    elsewhere = any(like is not None and not on_host(like) for like in likes)
    if least_conic_cost(entries) >= cost.operations or (elsewhere and entries > _SMALL_FORM):
        return [admm]
    conic = InteriorPoint().fit(problem)
    # It cannot be interrupted within a step: it is not begun where the time is short.
    affordable = conic is not None and current_deadline().affords(_operations(conic))
    return [admm, conic] if conic is not None and affordable else [admm]


def _entries(problem: Problem) -> float:
    """Return the number of entries of all matrices: what a product with all maps reads."""
    found = 0.0
    for D in {id(t.map): t.map for t in problem.terms if t.map is not None}.values():
        found += float(D.matrix.nnz if isinstance(D, SparseMap) else prod(D.shape))
    return found


def _operations(fit: Fit) -> float:
    return math.inf if fit.cost is None else fit.cost.operations


def _has_coupled(problem: Problem) -> bool:
    """Whether a term couples its largest entries: Newton's steps change few of them at a time.

    Least squares of 100 x 300 with an l-infinity norm take it over 30 s, and the method of multipliers 1 s;
    of 400 x 100 over an l1 ball 0.04 and 0.2 s.
    """
    return any(isinstance(term.atom, L1Ball | LInf) for term in problem.terms)


def _suits_newton(forms: Forms) -> bool:
    """Whether Newton's method is among the fast ones: f has curvature, or is a norm and the set has rows.

    Such a norm is one of the variables, or of many more samples than variables. Norms of other images, and
    norms over balls, are solved faster by interior points and first order.
    """
    if forms.composite_lacks is not None:
        return False
    if _has_coupled(forms.problem):
        return False
    rows = all(isinstance(term.atom, Interval) for term in forms.sets)
    return not forms.linear or (rows and not any(is_norm_of_image(term) for term in forms.norms))
