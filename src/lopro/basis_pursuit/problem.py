"""Basis pursuit denoising as its solvers see it: the residual ball, the weights, and dual points."""

from __future__ import annotations

from dataclasses import dataclass

from lopro._util.arrays import Array, inner, namespace, norm
from lopro.constraints import Box, ResidualBall
from lopro.constraints.base import Constraint, ValidInequality
from lopro.objectives import L1Norm
from lopro.problem import Problem

__all__ = ["SparseProblem", "residual_ball_of"]


@dataclass(frozen=True)
class SparseProblem:
    """``min sum w_i |x_i|  s.t. |A x - y| <= sigma``, with ``x >= 0`` where ``nonneg``."""

    objective: L1Norm
    ball: ResidualBall
    weights: Array
    nonneg: bool
    #: Whether the ball comes before the signs in the constraint.
    ball_first: bool = True

    @staticmethod
    def of(problem: Problem, like: Array) -> SparseProblem:
        """Read a problem whose parts have been checked; the weights come in the kind of ``like``."""
        ball, nonneg = residual_ball_of(problem.constraint)
        objective = problem.objective
        assert ball is not None and isinstance(objective, L1Norm)
        first = isinstance(problem.constraint.members()[0], ResidualBall)
        return SparseProblem(objective, ball, objective.weights_like(like), nonneg, first)

    def excess(self, g: Array) -> Array:
        """Return correlations in units of the weights; those of the wrong sign do not count."""
        return (g if self.nonneg else abs(g)) / self.weights

    def gauge(self, g: Array) -> float:
        """Return the factor by which ``g = A^H r`` is too large for ``r`` to be a dual point."""
        return float(namespace(g).max(self.excess(g)))

    def dual_value(self, r: Array, y: Array) -> float:
        """Return ``Re <y, r> - sigma |r|``, which a dual point puts below the optimum."""
        return inner(y, r) - self.ball.sigma * norm(r)

    def valid_inequality(self, r: Array, g: Array, gauge: float, value: float) -> ValidInequality:
        """Return the multiplier that proves ``value``; with x >= 0 the signs add what is missing."""
        of_ball = -r / gauge
        if not self.nonneg:
            return ValidInequality(-g / gauge, -value, (of_ball,))
        of_signs = g / gauge - self.weights
        dual = (of_ball, of_signs) if self.ball_first else (of_signs, of_ball)
        return ValidInequality(-self.weights, -value, dual)

    def at_zero(self, like: Array) -> ValidInequality:
        """Return the multiplier that proves 0, the value where ``x = 0`` is feasible."""
        of_ball = (0.0 * self.ball.y,)
        return ValidInequality(0.0 * like, 0.0, of_ball if not self.nonneg else None)

    def dual_point(self, multiplier: ValidInequality | None) -> Array | None:
        """Return ``nu`` with ``|A^H nu|_i <= w_i`` that a multiplier stands for, where it knows its own.

        The multiplier of the ball is ``-nu``, up to the factor that makes it feasible.
        """
        if multiplier is None or multiplier.dual is None:
            return None
        of_ball = multiplier.dual[0 if self.ball_first else 1]
        scale = self.objective.scale_into_domain(multiplier.direction)
        assert scale is not None  # a norm has one
        return -scale * of_ball


def residual_ball_of(constraint: Constraint) -> tuple[ResidualBall | None, bool]:
    """Return the residual ball of a constraint and whether ``x >= 0`` is asked for as well."""
    members = constraint.members()
    balls = [m for m in members if isinstance(m, ResidualBall)]
    rest = [m for m in members if not isinstance(m, ResidualBall)]
    orthants = [m for m in rest if isinstance(m, Box) and m.is_orthant]
    if len(balls) != 1 or len(rest) > 1 or len(orthants) != len(rest):
        return None, False
    return balls[0], len(rest) == 1
