"""The conversion of a solver's outcome to a candidate: a feasible point with its lower bound."""

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
    """Return a point with its evidence, projected if it violates the set by more than ``allowed``.

    By default rounding error is allowed. If the time limit passes first, the point is returned without a
    projection, with its evidence.
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
            # The charge for the violation of x does not apply to its projection; the driver computes the
            # charge of the projection from the inequality of the multipliers.
            projected = evidence
            if evidence is not None and evidence.inequality is not None:
                projected = replace(evidence, gained=0.0)
            return Candidate(bench.project(x), projected, before=x)
    except OutOfTime:
        return Candidate(x, evidence)


def _allowed(bench: Workbench, x: Array, evidence: ProvedBound | None, mend: bool) -> float:
    """Return the violation up to which a point is not projected.

    With ``mend`` it is 0 if the charge for the violation is a large share of the tolerated gap. Bounds of
    variables must hold exactly, because functions of users may be undefined outside of them.
    """
    if isinstance(bench.problem.constraint, Box):
        return 0.0
    charge = evidence.gained if mend and evidence is not None else 0.0
    if charge > 0.0 and charge > _CHARGED * bench.target.gap(float(bench.objective.value(x))):
        return 0.0
    return feasibility_tolerance(x)


#: A conversion of the multipliers of all sets of a constraint to one array for each member.
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
        The terms for which the solver has multipliers, with maps for vectors on the host.
    outcome : Outcome
        The outcome of the solver.
    bench : Workbench
        The workbench of the run.
    like : array
        An array of the library and the precision in which the point is returned.
    shared : callable
        Converts the multipliers of the sets, in the order of the solver, to those of the members.
    mend : bool
        Whether to project also if the charge for a small violation is a large share of the tolerated gap.

    Raises
    ------
    InfeasibleError, UnboundedError
        If the outcome proves that there is no solution.
    """
    _raise_if_unsolvable(outcome, bench.problem.constraint, shared)
    x, evidence = asarray_like(outcome.x, like), evidence_of(terms, outcome, bench, like, shared)
    known = x is outcome.x and isinstance(bench.problem.constraint, LinearRows)
    allowed = _allowed(bench, x, evidence, mend)
    if known and outcome.violation <= allowed:
        # The driver would measure the rows in the same way.
        return Candidate(x, evidence, violation=outcome.violation)
    return candidate_in_set(bench, x, evidence, allowed)


def _raise_if_unsolvable(outcome: Outcome, constraint: Constraint, shared: Shared) -> None:
    """Raise if the outcome proves that the set is empty or the objective unbounded below."""
    if outcome.status is Status.INFEASIBLE:
        assert isinstance(outcome.ray, tuple)
        raise InfeasibleError(_emptiness(outcome), shared(constraint, outcome.ray))
    if isinstance(outcome.certificate, Emptiness):
        ray = cast("tuple[Array, ...]", outcome.ray)
        radius = outcome.certificate.radius
        raise InfeasibleError(_emptiness(outcome), shared(constraint, ray), radius)
    if outcome.status is Status.UNBOUNDED:
        raise UnboundedError("the objective decreases without bound along the ray", outcome.ray)


def evidence_of(
    terms: Sequence[Term], outcome: Outcome, bench: Workbench, like: Array, shared: Shared
) -> ProvedBound | None:
    """Return the bound of an outcome with its multipliers; the parameters are those of `answer`."""
    inequality = _inequality(terms, outcome, bench.problem.constraint, shared, like)
    return _bound(outcome, bench, inequality)


def _emptiness(outcome: Outcome) -> str:
    proof, where = outcome.certificate, ""
    if outcome.status is not Status.INFEASIBLE and isinstance(proof, Emptiness):
        where = f" within |x| <= {proof.radius:.3g}"
    return f"the constraint set is empty{where}: result.ray holds the multipliers that prove it"


def _bound(outcome: Outcome, bench: Workbench, inequality: ValidInequality) -> ProvedBound | None:
    """Return the bound with its slope and its centre; None if the slope makes it useless near solutions."""
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
    """Return the valid inequality that the multipliers of the sets define, together with them."""
    pairs = zip(terms, outcome.multipliers, strict=True)
    sets = [(term, v) for term, v in pairs if term.is_set]
    inside = [term.into_domain(v) for term, v in sets]
    direction = 0.0 * outcome.x
    support = 0.0
    for (term, _), v in zip(sets, inside, strict=True):
        direction = direction + term.pullback(v)
        support += term.conjugate(v)
    dual = tuple(from_numpy(v, like) for v in shared(constraint, inside))
    return ValidInequality(from_numpy(direction, like), support, dual)


def member_multipliers(constraint: Constraint, multipliers: Sequence[Array]) -> Image:
    """Return one array for each member from the multipliers of the terms of a constraint."""
    if isinstance(constraint, LinearRows):
        return tuple(multipliers)
    left, found = list(multipliers), []
    for member in constraint.members():
        own = [left.pop(0) for _ in member.terms]
        # A member of several terms has one multiplier: the sum of their normal vectors.
        pairs = zip(member.terms, own, strict=True)
        found.append(own[0] if len(own) == 1 else sum(term.pullback(v) for term, v in pairs))
    return tuple(found)


def term_multipliers(constraint: Constraint, multipliers: Sequence[Array]) -> list[Array]:
    """Return multipliers of the members as those of the terms: the inverse of `member_multipliers`."""
    found: list[Array] = []
    for member, v in zip(constraint.members(), multipliers, strict=True):
        if isinstance(member, Simplex):
            # The multiplier of the sum is the largest entry, that of the positive entries of x.
            found += [v - v.max(), np.array([v.max()])]
        else:
            found.append(v)
    return found
