"""The problem ``min |x|_1 s.t. |A x - y| <= sigma``, as NESTA and the level-set method take it."""

from __future__ import annotations

from typing import cast

from lopro.constraints import ResidualBall
from lopro.constraints.base import ValidInequality
from lopro.core.arrays import norm
from lopro.errors import MissingCapabilityError
from lopro.objectives import L1Norm
from lopro.problem import Problem

__all__ = ["checked_parts", "parts", "scaled_to_dual_ball"]


def checked_parts(problem: Problem, method: str, advice: str = "") -> tuple[L1Norm, ResidualBall]:
    """Return objective and constraint; raise unless they are an l1 norm and a residual ball."""
    f, c = problem.objective, problem.constraint
    if not (isinstance(f, L1Norm) and isinstance(c, ResidualBall)):
        raise MissingCapabilityError(
            f"{method} minimises an L1Norm over a ResidualBall, got {f!r} over {c!r}{advice}"
        )
    return f, c


def parts(problem: Problem) -> tuple[L1Norm, ResidualBall]:
    """Return objective and constraint of a problem that has been checked."""
    return cast(L1Norm, problem.objective), cast(ResidualBall, problem.constraint)


def scaled_to_dual_ball(f: L1Norm, inequality: ValidInequality) -> ValidInequality:
    """Return a nonzero inequality with norm G, the largest norm in the dual ball of the l1 norm.

    The certificate scales it down to the boundary of the dual ball.
    """
    G = f.lipschitz()
    assert G is not None  # the shape is fixed by the problem
    return inequality.scaled(G.value / norm(inequality.direction))
