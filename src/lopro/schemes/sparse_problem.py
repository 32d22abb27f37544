"""What makes a problem basis pursuit denoising: one residual ball, perhaps with ``x >= 0``."""

from __future__ import annotations

from lopro.constraints import Box, ResidualBall
from lopro.constraints.base import Constraint

__all__ = ["is_orthant", "residual_ball_of"]


def residual_ball_of(constraint: Constraint) -> tuple[ResidualBall | None, bool]:
    """Return the residual ball of a constraint and whether ``x >= 0`` is asked for as well."""
    members = constraint.members()
    balls = [m for m in members if isinstance(m, ResidualBall)]
    rest = [m for m in members if not isinstance(m, ResidualBall)]
    if len(balls) != 1 or len(rest) > 1 or not all(is_orthant(m) for m in rest):
        return None, False
    return balls[0], len(rest) == 1


def is_orthant(constraint: Constraint) -> bool:
    """Whether a constraint is ``x >= 0``."""
    return isinstance(constraint, Box) and constraint.is_orthant
