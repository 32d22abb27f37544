"""The point that a solver of the whole problem ends with, as a candidate inside the set."""

from __future__ import annotations

import contextlib

from lopro._util.arrays import Array
from lopro._util.deadline import OutOfTime, current_deadline
from lopro.constraints.box import Box
from lopro.protocol import Candidate, ProvedBound, Workbench
from lopro.protocol.certificates import feasibility_tolerance

__all__ = ["candidate_in_set"]


def candidate_in_set(bench: Workbench, x: Array, evidence: ProvedBound | None) -> Candidate:
    """Return a point with its evidence, projected if it violates the set by more than rounding.

    Without the time for that, the point is returned as it is: what is proved is not lost.
    """
    constraint = bench.problem.constraint
    # Bounds of variables are kept to the last digit: functions of users may not be defined beyond them.
    allowed = 0.0 if isinstance(constraint, Box) else feasibility_tolerance(x)
    with contextlib.suppress(OutOfTime), current_deadline().wrapping_up():
        with bench.observe():
            image = constraint.image(x)
            violation = constraint.violation_at(x, image)
        if violation <= allowed:
            return Candidate(x, evidence, image=image)
        return Candidate(bench.project(x), evidence, before=x)
    return Candidate(x, evidence)
