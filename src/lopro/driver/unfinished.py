"""The point of a run that ended before its first candidate."""

from __future__ import annotations

import math

from lopro.core.arrays import Array, isfinite
from lopro.core.counting import counting
from lopro.core.deadline import OutOfTime
from lopro.driver.candidate import Judged
from lopro.driver.incumbent import Incumbent
from lopro.driver.result import Status
from lopro.driver.workbench import RunWorkbench
from lopro.errors import InfeasibleError, NonFiniteError, ProjectionError

__all__ = ["keep_reached"]

#: After these the current point is not projected.
_NOT_PROJECTED = (Status.NONFINITE, Status.PROJECTION_FAILED)


def keep_reached(
    bench: RunWorkbench,
    incumbent: Incumbent,
    start: Array,
    status: Status | None,
    warnings: list[str],
) -> None:
    """Keep the projection of the current point; without a projection, keep the least violating point."""
    points = [bench.projected, bench.reached, start]
    if points[1] is not bench.projected and not (status in _NOT_PROJECTED or bench.spent):
        try:
            with bench.deadline.active(), counting(bench.counts):
                points = [bench.project(points[1])]
        except OutOfTime:
            warnings.append("there was no time to project the current point")
        except (NonFiniteError, InfeasibleError, ProjectionError) as error:
            warnings.append(f"the current point could not be projected: {error}")
    for x in points:
        if x is not None and isfinite(x):
            _judge(bench, incumbent, x, warnings)


def _judge(bench: RunWorkbench, incumbent: Incumbent, x: Array, warnings: list[str]) -> None:
    """Evaluate a point after the end of the run; there may be no time to check that it is feasible."""
    try:
        with bench.observe(), bench.deadline.active(), bench.deadline.wrapping_up():
            incumbent.judge(x)
    except OutOfTime:
        warnings.append("there was no time to measure the violation of the point")
        incumbent.keep(Judged(x, math.nan, math.inf))
    except NonFiniteError as error:
        warnings.append(str(error))
