"""From what a kernel has proved to what the driver is told: a candidate inside the set with its evidence."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TypeAlias, cast

from lopro.certificates import Bound, Emptiness
from lopro.certificates.outcome import Outcome, Status
from lopro.constraints.base import Constraint, ValidInequality
from lopro.constraints.box import Box
from lopro.core.arrays import Array, asarray_like, from_numpy, norm
from lopro.core.deadline import OutOfTime, current_deadline
from lopro.driver.minorants import feasibility_tolerance
from lopro.errors import InfeasibleError, UnboundedError
from lopro.newton.problem import Composite
from lopro.protocol import Candidate, ProvedBound, Workbench

__all__ = ["Shared", "answer", "candidate_in_set", "evidence_of"]

#: Of the gap that is asked for: what a violation may have gained before it is mended.
_NOTICED = 0.5


def candidate_in_set(
    bench: Workbench, x: Array, evidence: ProvedBound | None, mend: bool = False
) -> Candidate:
    """Return a point with its evidence, projected if it violates the set by more than rounding.

    To ``mend`` means to project as well if what a smaller violation may have gained is not small beside the
    gap that is asked for. Without the time for that, the point is returned as it is: no proof is lost.
    """
    constraint = bench.problem.constraint
    # Bounds of variables are kept to the last digit: functions of users may not be defined beyond them.
    exactly = isinstance(constraint, Box) or (mend and _gains(bench, x, evidence))
    allowed = 0.0 if exactly else feasibility_tolerance(x)
    with contextlib.suppress(OutOfTime), current_deadline().wrapping_up():
        with bench.observe():
            image = constraint.image(x)
            violation = constraint.violation_at(x, image)
        if violation <= allowed:
            return Candidate(x, evidence, image=image)
        # What the violation of x has gained is no part of the gap of its projection, of which the driver
        # measures by how much it breaks the inequality of the multipliers.
        own = evidence
        if evidence is not None and evidence.inequality is not None:
            own = replace(evidence, gained=0.0)
        return Candidate(bench.project(x), own, before=x)
    return Candidate(x, evidence)


def _gains(bench: Workbench, x: Array, evidence: ProvedBound | None) -> bool:
    """Whether the violation of a point may be what keeps its gap from being proved."""
    if evidence is None or evidence.gained == 0.0:
        return False
    return evidence.gained > _NOTICED * bench.target.gap(float(bench.objective.value(x)))


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
