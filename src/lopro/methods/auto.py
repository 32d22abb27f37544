"""Auto: choose the method by what the problem offers, and need no constants."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar

import scipy  # parts of it load when first used

from lopro.core.arrays import Array
from lopro.engines import EngineUnavailable, quick_by_piqp
from lopro.errors import InfeasibleError, MissingCapabilityError, StalledError
from lopro.functions.atoms import L1, Interval
from lopro.functions.term import Term
from lopro.methods.alternating import AlternatingDirections
from lopro.methods.multipliers import MultiplierMethod
from lopro.methods.nearest_point import NearestPoint
from lopro.methods.paper.lopgd import LoPGD
from lopro.methods.registry import recognised
from lopro.methods.second_order import NewtonMultipliers, ProgramEngines
from lopro.methods.second_order.forms import composite, quadratic_program
from lopro.methods.second_order.interior_point import InteriorPoint
from lopro.methods.second_order.newton_multipliers import newton_reason
from lopro.methods.semidefinite import LowRankFactors, NearestSemidefinite, SemidefiniteEngines
from lopro.methods.splitting import ADMM, admm_reason
from lopro.newton.smooth import QuadraticForm
from lopro.objectives import NuclearNorm, Scaled
from lopro.problem import Problem
from lopro.protocol import Candidates, Card, Method, Workbench

__all__ = ["Auto", "Choice"]

#: Entries of matrices up to which an interior point method is asked for what Newton's method has not proved.
_SMALL_FORM = 100_000


#: Samples per variable from which on Newton's method takes norms of samples: its systems have the size of the
#: variables, those of an interior point method that of the samples.
_SAMPLES = 4


@dataclass(frozen=True)
class Choice:
    """A method that fits a problem, and why."""

    method: Method
    reason: str


@dataclass(frozen=True)
class Auto:
    """The default: the method that fits the problem, and the next one where it does not get there.

    In this order: the application whose form is recognised (basis pursuit, metric learning); one
    projection for a squared distance; semidefinite
    programs and nearest matrices; nuclear norms over bounds on entries; engines for sparse quadratic and
    linear programs; Newton's method where f is smooth, with norms or without, and the set is given by rows
    and balls; the method of multipliers where the set is an image of an easy one; an interior point method
    where there is a conic form; adaptive LoPGD.

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

    def choices(self, problem: Problem) -> list[Choice]:
        """Return the methods that fit, in the order in which they are tried."""
        return list(_choices(problem))

    def choose(self, problem: Problem) -> Method:
        """Return the method that is tried first."""
        return next(_choices(problem)).method

    def check(self, problem: Problem) -> None:
        self.choose(problem)

    def run(self, bench: Workbench, x0: Array) -> Candidates:
        stalled: StalledError | EngineUnavailable | None = None
        excluded: InfeasibleError | None = None
        for choice in _choices(bench.problem):
            bench.hand_over(choice.method)
            stalled = None
            try:
                yield from choice.method.run(bench, x0)
            except (StalledError, EngineUnavailable) as error:
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


def _choices(problem: Problem) -> Iterator[Choice]:
    """Yield the methods that fit, each looked for when the ones before have failed."""
    found = recognised(problem)
    if found is not None:
        yield Choice(found[1], f"it has the form of {found[0]}")
        return
    if _fits(NearestPoint(), problem):
        yield Choice(NearestPoint(), "a squared distance over a set is one projection")
    if _fits(LowRankFactors(), problem):
        yield Choice(LowRankFactors(), "a linear cost over matrices with a given diagonal")
    if _fits(SemidefiniteEngines(), problem):
        yield Choice(SemidefiniteEngines(), "it is a semidefinite program")
    elif _fits(NearestSemidefinite(), problem):
        yield Choice(
            NearestSemidefinite(), "a squared distance over semidefinite matrices is one projection"
        )
    f = problem.objective
    spectral = isinstance(f.f if isinstance(f, Scaled) else f, NuclearNorm)
    if spectral and _fits(AlternatingDirections(), problem):
        reason = "its prox takes singular values, and the projection is a formula"
        yield Choice(AlternatingDirections(), reason)
    tried: list[Method] = []
    for choice in _second_order(problem):
        tried.append(choice.method)
        yield choice
    by_products = None if tried else admm_reason(problem, first=False)
    if by_products is not None:
        yield Choice(ADMM(), by_products)
    if _fits(MultiplierMethod(), problem):
        yield Choice(MultiplierMethod(), "the set is given by a linear map into an easy set")
        return
    if _fits(InteriorPoint(), problem):
        if InteriorPoint() not in tried:
            yield Choice(InteriorPoint(), "it has a conic form")
        if not tried and _fits(NewtonMultipliers(), problem):
            yield Choice(NewtonMultipliers(), "its norms have a prox")
        return
    LoPGD().check(problem)
    yield Choice(LoPGD(), "only values, slopes and projections are known")


def _second_order(problem: Problem) -> Iterator[Choice]:
    try:
        program = quadratic_program(problem)
    except MissingCapabilityError:
        yield from _newton(problem)
        return
    # What is a program can be taken by Newton's method, too.
    step = Choice(NewtonMultipliers(), newton_reason(problem, composite(problem)))
    kind = "linear" if program.P is None else "quadratic"
    engines = Choice(ProgramEngines(), f"it is a {kind} program")
    if quick_by_piqp(program):
        # What it leaves unproved goes to Newton's method before simplex steps are asked for.
        yield Choice(ProgramEngines(engines=("piqp",)), f"it is a dense {kind} program")
    sparse = scipy.sparse.issparse(program.A) and program.sparse
    yield from (engines, step) if sparse else (step, engines)


def _newton(problem: Problem) -> Iterator[Choice]:
    """Yield Newton's method where f has curvature, or is a norm and the set has rows only.

    Such a norm is one of the variables, or of many more samples than variables. Norms of other images, and
    norms over balls, are solved faster by interior points and first order.
    """
    reason = admm_reason(problem)
    if reason is not None:
        yield Choice(ADMM(), reason)
    try:
        form = composite(problem)
    except MissingCapabilityError:
        return
    rows = all(isinstance(term.atom, Interval | L1) for term in form.terms)
    plain = all(term.is_identity or _has_many_rows(term) for term in form.norms)
    linear = isinstance(form.smooth, QuadraticForm) and form.smooth.P is None
    if not linear or (rows and plain):
        yield Choice(NewtonMultipliers(), newton_reason(problem, form))
        if form.entries <= _SMALL_FORM and _fits(InteriorPoint(), problem):
            yield Choice(InteriorPoint(), "it has a small conic form")


def _has_many_rows(term: Term) -> bool:
    """Whether a norm is one of many samples and few variables, so that Newton's systems are small."""
    rows, columns = term.D.shape
    return rows >= _SAMPLES * columns


def _fits(method: Method, problem: Problem) -> bool:
    try:
        method.check(problem)
    except MissingCapabilityError:
        return False
    return True
