"""The point that a solver of the whole problem ends with, as a candidate inside the set."""

from __future__ import annotations

import contextlib
from dataclasses import replace

from lopro.constraints.box import Box
from lopro.core.arrays import Array
from lopro.core.deadline import OutOfTime, current_deadline
from lopro.protocol import Candidate, ProvedBound, Workbench
from lopro.protocol.certificates import feasibility_tolerance

__all__ = ["candidate_in_set"]

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
