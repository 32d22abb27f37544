"""Convert the outcome of a solver to a candidate for the driver: a feasible point with its lower bound."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TypeAlias, cast

import numpy as np

from lopro.certificates import Bound, Emptiness, feasibility_tolerance
from lopro.certificates.certificate import Outcome, Status
from lopro.constraints.base import Constraint, ValidInequality
from lopro.constraints.polyhedron import Box
from lopro.constraints.rows import LinearRows
from lopro.constraints.simplex import Simplex
from lopro.core.arrays import Array, asarray_like, from_numpy, norm
from lopro.core.deadline import OutOfTime, current_deadline
from lopro.errors import InfeasibleError, UnboundedError
from lopro.functions.term import Term
from lopro.newton.smooth import Image
from lopro.protocol import Candidate, ProvedBound, Workbench

__all__ = [
    "Shared",
    "answer",
    "candidate_in_set",
    "evidence_of",
    "member_multipliers",
    "term_multipliers",
]

#: Share of the tolerated gap that the violation of a point may contribute before the point is projected.
_CHARGED = 0.5


def candidate_in_set(
    bench: Workbench, x: Array, evidence: ProvedBound | None, allowed: float | None = None
) -> Candidate:
    """Return a point with its evidence, projected if it violates the set by more than rounding.

    Another violation than rounding may be ``allowed``. If the time limit comes first, the point is returned
    without a projection, with its proof.
    """
    constraint = bench.problem.constraint
    if allowed is None:
        allowed = _allowed(bench, x, evidence, mend=False)
    try:
        with current_deadline().wrapping_up():
            with bench.observe():
                image = constraint.image(x)
                violation = constraint.violation_at(x, image)
            if violation <= allowed:
                return Candidate(x, evidence, image=image, violation=violation)
            # The charge for the violation of x does not apply to its projection; the driver computes that
            # of the projection from the inequality of the multipliers.
            own = evidence
            if evidence is not None and evidence.inequality is not None:
                own = replace(evidence, gained=0.0)
            return Candidate(bench.project(x), own, before=x)
    except OutOfTime:
        return Candidate(x, evidence)


def _allowed(bench: Workbench, x: Array, evidence: ProvedBound | None, mend: bool) -> float:
    """Return the violation up to which a point is not projected.

    With ``mend`` that is 0 if the charge for it is a large share of the tolerated gap. Bounds of variables
    hold exactly: functions of users may be undefined outside.
    """
    if isinstance(bench.problem.constraint, Box):
        return 0.0
    charge = evidence.gained if mend and evidence is not None else 0.0
    if charge > 0.0 and charge > _CHARGED * bench.target.gap(float(bench.objective.value(x))):
        return 0.0
    return feasibility_tolerance(x)


#: Maps a constraint and the multipliers of its sets to one array for each member.
Shared: TypeAlias = Callable[[Constraint, Sequence[Array]], tuple[Array, ...]]


def answer(
    terms: Sequence[Term],
    outcome: Outcome,
    bench: Workbench,
    like: Array,
    shared: Shared,
    mend: bool = False,
) -> Candidate:
    """Return the candidate of an outcome, projected if it violates the set by more than rounding.

    Parameters
    ----------
    terms : sequence of Term
        Those that the solver has multipliers for, with maps for vectors on the host.
    outcome : Outcome
        Its outcome.
    bench : Workbench
        The workbench of the run.
    like : array
        An array of the library and the precision in which the point is returned.
    shared : callable
        Converts the multipliers of the sets, in the order of the solver, to those of the members.
    mend : bool
        Whether to project as well where a small violation is charged a large share of the tolerated gap.

    Raises
    ------
    InfeasibleError, UnboundedError
        Where the outcome proves that there is no solution.
    """
    if outcome.status is Status.INFEASIBLE:
        assert isinstance(outcome.ray, tuple)
        raise InfeasibleError(_emptiness(outcome), shared(bench.problem.constraint, outcome.ray))
    if isinstance(outcome.certificate, Emptiness):
        ray = cast("tuple[Array, ...]", outcome.ray)
        radius = outcome.certificate.radius
        raise InfeasibleError(_emptiness(outcome), shared(bench.problem.constraint, ray), radius)
    if outcome.status is Status.UNBOUNDED:
        raise UnboundedError("the objective decreases without bound along the ray", outcome.ray)
    x, evidence = asarray_like(outcome.x, like), evidence_of(terms, outcome, bench, like, shared)
    known = x is outcome.x and isinstance(bench.problem.constraint, LinearRows)
    allowed = _allowed(bench, x, evidence, mend)
    if known and outcome.violation <= allowed:
        return Candidate(x, evidence)  # rows are measured in one way, which the driver repeats
    return candidate_in_set(bench, x, evidence, allowed)


def evidence_of(
    terms: Sequence[Term], outcome: Outcome, bench: Workbench, like: Array, shared: Shared
) -> ProvedBound | None:
    """Return the bound of an outcome with the multipliers that it rests on; the parameters are `answer`'s."""
    inequality = _inequality(terms, outcome, bench.problem.constraint, shared, like)
    return _bound(outcome, bench, inequality)


def _emptiness(outcome: Outcome) -> str:
    found, where = outcome.certificate, ""
    if outcome.status is not Status.INFEASIBLE and isinstance(found, Emptiness):
        where = f" within |x| <= {found.radius:.3g}"
    return f"the constraint set is empty{where}: result.ray holds the multipliers that prove it"


def _bound(outcome: Outcome, bench: Workbench, inequality: ValidInequality) -> ProvedBound | None:
    """Return the bound with its slope and its centre; None if it is useless at the distance of solutions."""
    bound, given = outcome.bound, bench.problem.radius
    source = "Lagrangian bound of the multipliers, rounding included"
    if not bound.flat and given is not None:
        bound = Bound.everywhere(bound.within(given.value + norm(bound.centre)))
        source = f"{source}, |x*| <= {given.value:.4g} ({given.source.value})"
    elif not bound.flat:
        lost = bound.value - bound.around(outcome.x, bench.unit)
        if lost > max(abs(outcome.fun), bench.target.scale):
            return None  # the slope exceeds rounding: the objective may be unbounded below
    local = None if bound.holds_everywhere else bound
    return ProvedBound(bound.value, source, bound.limit, inequality, outcome.charge, None, local)


def _inequality(
    terms: Sequence[Term], outcome: Outcome, constraint: Constraint, shared: Shared, like: Array
) -> ValidInequality:
    """Return the multipliers as a valid inequality of the set, with those of its images."""
    pairs = zip(terms, outcome.multipliers, strict=True)
    sets = [(term, v) for term, v in pairs if term.is_set]
    inside = [term.into_domain(v) for term, v in sets]
    direction = 0.0 * outcome.x
    support = 0.0
    for (term, _), v in zip(sets, inside, strict=True):
        direction = direction + term.pullback(v)
        support += term.conjugate(v)
    dual = shared(constraint, inside)
    there = tuple(from_numpy(v, like) for v in dual)
    return ValidInequality(from_numpy(direction, like), support, there)


def member_multipliers(constraint: Constraint, multipliers: Sequence[Array]) -> Image:
    """Return one array for each member from the multipliers of the terms of a constraint."""
    if isinstance(constraint, LinearRows):
        return tuple(multipliers)
    left, found = list(multipliers), []
    for member in constraint.members():
        own = [left.pop(0) for _ in member.terms]
        # A member of several terms has one normal vector.
        pairs = zip(member.terms, own, strict=True)
        found.append(own[0] if len(own) == 1 else sum(term.pullback(v) for term, v in pairs))
    return tuple(found)


def term_multipliers(constraint: Constraint, multipliers: Sequence[Array]) -> list[Array]:
    """Return multipliers of the members as those of the terms: the inverse of `member_multipliers`."""
    found: list[Array] = []
    for member, v in zip(constraint.members(), multipliers, strict=True):
        if isinstance(member, Simplex):
            # The total is what positive entries pay, the largest multiplier; the others pay less.
            found += [v - v.max(), np.array([v.max()])]
        else:
            found.append(v)
    return found
