"""From what a kernel has proved to what the driver is told."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeAlias, cast

from lopro.certificates import Bound, Emptiness
from lopro.constraints.base import Constraint, ValidInequality
from lopro.core.arrays import Array, asarray_like, from_numpy, norm
from lopro.errors import InfeasibleError, UnboundedError
from lopro.methods.answers import candidate_in_set
from lopro.newton.problem import Composite
from lopro.newton.solve import Outcome, Status
from lopro.protocol import Candidate, ProvedBound, Workbench

__all__ = ["Shared", "answer", "evidence_of"]

#: From a constraint and the multipliers of sets to one array for each member.
Shared: TypeAlias = Callable[[Constraint, Sequence[Array]], tuple[Array, ...]]


def answer(
    problem: Composite,
    outcome: Outcome,
    bench: Workbench,
    like: Array,
    shared: Shared,
    mend: bool = False,
) -> Candidate:
    """Return the candidate of an outcome, projected if it violates the set by more than rounding.

    Parameters
    ----------
    problem : Composite
        The problem that the kernel has solved.
    outcome : Outcome
        What it has found.
    bench : Workbench
        That of the run.
    like : array
        In whose library and precision the point is returned.
    shared : callable
        Makes of the multipliers of the sets, in the order of the kernel, those of the members.
    mend : bool
        Whether small violations are mended, too, by a projection, where they keep the gap from being proved.

    Raises
    ------
    InfeasibleError, UnboundedError
        Where the outcome proves that there is no solution.
    """
    if outcome.status is Status.EMPTY:
        assert isinstance(outcome.ray, tuple)
        raise InfeasibleError(_emptiness(outcome), shared(bench.problem.constraint, outcome.ray))
    if isinstance(outcome.certificate, Emptiness):
        ray = cast("tuple[Array, ...]", outcome.ray)
        radius = outcome.certificate.radius
        raise InfeasibleError(_emptiness(outcome), shared(bench.problem.constraint, ray), radius)
    if outcome.status is Status.UNBOUNDED:
        raise UnboundedError("the objective falls without end along the ray", outcome.ray)
    x = asarray_like(outcome.x, like)
    return candidate_in_set(bench, x, evidence_of(problem, outcome, bench, like, shared), mend)


def evidence_of(
    problem: Composite, outcome: Outcome, bench: Workbench, like: Array, shared: Shared
) -> ProvedBound | None:
    """Return the bound of an outcome with the multipliers that it rests on; the parameters are `answer`'s."""
    inequality = _inequality(problem, outcome, bench.problem.constraint, shared, like)
    return _bound(outcome, bench, inequality)


def _emptiness(outcome: Outcome) -> str:
    found, where = outcome.certificate, ""
    if outcome.status is not Status.EMPTY and isinstance(found, Emptiness):
        where = f" within |x| <= {found.radius:.3g}"
    return f"the constraint set is empty{where}: result.ray holds the multipliers that prove it"


def _bound(outcome: Outcome, bench: Workbench, inequality: ValidInequality) -> ProvedBound | None:
    """Return the bound with its slope and its centre; None if it loses all as far out as solutions may be."""
    bound, given = outcome.bound, bench.problem.radius
    source = "Lagrangian bound of the multipliers, rounding included"
    if not bound.flat and given is not None:
        bound = Bound.everywhere(bound.within(given.value + norm(bound.centre)))
        source = f"{source}, |x*| <= {given.value:.4g} ({given.source.value})"
    elif not bound.flat:
        lost = bound.value - bound.around(outcome.x, bench.unit)
        if lost > max(abs(outcome.fun), bench.target.scale):
            return None  # a slope that is no rounding: the objective may well fall without end
    local = None if bound.holds_everywhere else bound
    return ProvedBound(bound.value, source, bound.limit, inequality, outcome.charge, None, local)


def _inequality(
    problem: Composite, outcome: Outcome, constraint: Constraint, shared: Shared, like: Array
) -> ValidInequality:
    """Return the multipliers as a valid inequality of the set, with those of its images."""
    pairs = zip(problem.terms, outcome.multipliers, strict=True)
    sets = [(term, v) for term, v in pairs if term.is_set]
    inside = [term.into_domain(v) for term, v in sets]
    direction = 0.0 * outcome.x
    support = 0.0
    for (term, _), v in zip(sets, inside, strict=True):
        direction = direction + term.pullback(v)
        support += term.conjugate(v)
    dual = constraint.dual_of(shared(constraint, inside))
    there = tuple(from_numpy(v, like) for v in dual)
    return ValidInequality(from_numpy(direction, like), support, there)
