"""Basis pursuit denoising as its methods use it: a norm, the residual ball, and what dual points prove."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np

from lopro.basis_pursuit.block_norm import BlockNorm
from lopro.basis_pursuit.levels import Level, Radius
from lopro.constraints import Box, Intersection, ResidualBall
from lopro.constraints.base import Constraint, ValidInequality
from lopro.core.arrays import Array, asarray_like, eps, is_single, namespace, norm, widest
from lopro.core.vectors import norms
from lopro.functions import Image
from lopro.maps import LinearMap
from lopro.objectives import L1Norm
from lopro.problem import Problem
from lopro.protocol import Evidence, Multiplier

__all__ = ["NORMS", "SparseForm", "SparseProblem", "images_at", "residual_ball_of"]

_EPS = float(np.finfo(np.float64).eps)

#: The least sigma as a share of ``|y|``: below, solutions have several nonzeros, and three products would be
#: wasted. A tenth takes up to 1.28 times the products of an instance of `benchmarks.constants`, never 1.34.
_CLOSE_TO_Y = 0.9
#: The objectives of basis pursuit.
NORMS = (L1Norm, BlockNorm)


class SparseForm:
    """A sparsity-inducing norm and a fit of ``A x`` to data, in the form that searches for columns use.

    Subclasses define how the two are combined: the condition that determines alpha, the value of a point, and
    the lower bound that a dual point proves.
    """

    objective: L1Norm | BlockNorm
    weights: Array
    nonneg: bool
    #: The weight of ``|x|^2 / 2``.
    ridge: float = 0.0

    @property
    def A(self) -> LinearMap:
        """The linear map of the fit."""
        raise NotImplementedError

    @property
    def y(self) -> Array:
        """The right-hand side."""
        raise NotImplementedError

    @property
    def like(self) -> Array:
        """An array of the kind of points."""
        raise NotImplementedError

    def level(self, margin: float) -> Level:
        """Return the condition that determines alpha; residuals are shorter than sigma by a margin."""
        raise NotImplementedError

    def value(self, norm_of_x: float, x: Array, residual: Array) -> float:
        """Return the objective at a point with this norm and this residual."""
        raise NotImplementedError

    def proved(
        self, r: Array, g: Array, stretch: float, growth: float = 1.0, above: float = -math.inf
    ) -> ValidInequality | None:
        """Return the multiplier that scales a residual ``r`` with ``g = A^H r`` to feasibility.

        ``stretch`` is an estimate of the norm of A, ``growth`` the factor by which rounding errors of ``r``
        have grown. None where it proves no bound larger than ``above``.
        """
        raise NotImplementedError

    def with_matrix(self, problem: Problem) -> Problem:
        """Return the same problem with A as a matrix; an operator takes a product for each row or column."""
        raise NotImplementedError

    def bound(self, proof: ValidInequality) -> float:
        """Return the lower bound that a multiplier proves."""
        raise NotImplementedError

    def at_zero(self, like: Array) -> ValidInequality:
        """Return the multiplier that proves the bound 0."""
        raise NotImplementedError

    def image_at(self, x: Array, image: Array) -> Image:
        """Return the images of a point under the maps of the objective, where ``image = A x`` is known."""
        raise NotImplementedError

    def as_given(self, proof: ValidInequality, like: Array) -> ValidInequality:
        """Return a proof that was found in double precision in the library and precision of the problem."""
        raise NotImplementedError

    def evidence(self, proof: ValidInequality) -> Evidence:
        """Return a multiplier as the evidence for a candidate."""
        raise NotImplementedError

    def excess(self, g: Array, blur: float = 0.0) -> Array:
        """Return correlations, known up to ``blur``, in units of the weights.

        With ``x >= 0`` only positive ones exceed.
        """
        return (self.sizes(g) + blur) / self.weights

    def sizes(self, g: Array) -> Array:
        """Return the moduli of correlations, or for each entry the length of its block."""
        if isinstance(self.objective, BlockNorm):
            return self.objective.moduli(np.maximum(g, 0.0) if self.nonneg else g)
        return g if self.nonneg else abs(g)

    def gauge(self, g: Array, blur: float = 0.0) -> float:
        """Return the dual norm of ``g = A^H r``: a dual point has at most 1."""
        sizes = self.excess(g, blur)
        return float(sizes.max() if isinstance(sizes, np.ndarray) else namespace(sizes).max(sizes))

    @property
    def of_duals(self) -> Array:
        """An array of the kind of dual points: complex if A or y is."""
        return widest((self.y, self.like))

    def check_units(self, g: Array, r: Array) -> None:
        """Raise where squares of ``y``, or of ``A`` as estimated by ``g = A^H r``, overflow or underflow."""
        length = norm(r)
        stretch = norm(g) / length if length > 0.0 else 0.0
        # Products of two squares must stay in the range of numbers: 1e38, or 1e308.
        widest = 1e15 if is_single(g) else 1e140
        if 0.0 < stretch <= 1.0 / widest and self.A.explicit:
            # Nearly orthogonal to y, columns of usual length have small correlations as well.
            stretch = float(abs(self.A.matrix).max())
        if not (stretch == 0.0 or 1.0 / widest < stretch < widest):
            raise ValueError(
                f"A must be given in other units: its entries are about {stretch:.3g} in size, and the "
                "square of that is out of the range of numbers"
            )
        size = norm(self.y)  # not that of the residual, which is short at a good start
        if not (size == 0.0 or 1.0 / widest < size < widest):
            raise ValueError(f"y must be given in other units: its length is {size:.3g}")


@dataclass(frozen=True)
class SparseProblem(SparseForm):
    """``min sum w_i |x_i|  s.t. |A x - y| <= sigma``, with ``x >= 0`` where ``nonneg``."""

    objective: L1Norm | BlockNorm
    ball: ResidualBall
    weights: Array
    nonneg: bool
    #: Whether the ball comes before the signs in the constraint.
    ball_first: bool = True

    @staticmethod
    def of(problem: Problem, like: Array) -> SparseProblem:
        """Return a problem whose parts have been checked; weights are of the kind of ``like``."""
        ball, nonneg = residual_ball_of(problem.constraint)
        objective = problem.objective
        assert ball is not None and isinstance(objective, NORMS)
        first = isinstance(problem.constraint.members()[0], ResidualBall)
        return SparseProblem(objective, ball, objective.weights_like(like), nonneg, first)

    @property
    def A(self) -> LinearMap:
        return self.ball.A

    @property
    def y(self) -> Array:
        return self.ball.y

    @property
    def like(self) -> Array:
        return self.ball.like

    @property
    def is_close_to_y(self) -> bool:
        """Whether sigma is so close to ``|y|`` that one nonzero may suffice."""
        length = norm(self.ball.y)
        return _CLOSE_TO_Y * length < self.ball.sigma < length

    def level(self, margin: float) -> Level:
        return Radius(self.ball.sigma - margin)

    def value(self, norm_of_x: float, x: Array, residual: Array) -> float:
        return norm_of_x

    def with_matrix(self, problem: Problem) -> Problem:
        ball = self.ball.with_matrix()
        members = [ball if isinstance(m, ResidualBall) else m for m in problem.constraint.members()]
        constraint = members[0] if len(members) == 1 else Intersection(*members)
        return replace(problem, constraint=constraint)

    def bound(self, proof: ValidInequality) -> float:
        return -proof.support

    def evidence(self, proof: ValidInequality) -> Evidence:
        return Multiplier(proof)

    def proved(
        self,
        r: Array,
        g: Array,
        stretch: float,
        growth: float = 1.0,
        above: float = -math.inf,
    ) -> ValidInequality | None:
        """Return the multiplier that scales a residual to feasibility.

        Its ``support`` is minus the lower bound ``(Re <y, r> - sigma |r|) / gauge`` of the optimum, which is
        reduced by the rounding errors of ``g`` (``8 eps growth stretch |r|``) and of the value.
        """
        length, size = norms(r, g)
        if not 0.0 < length < math.inf:
            return None
        stretch = max(stretch, size / length)
        gauge = self.gauge(g, blur=8.0 * eps(g) * growth * stretch * length)
        if not 0.0 < gauge < math.inf:
            return None
        shrink = 1.0 / gauge  # multiplying complex arrays is faster than dividing them
        of_ball = -shrink * r
        support = self.ball.support_image((of_ball,))
        if not -support > above:
            return None
        if not self.nonneg:
            return ValidInequality(-shrink * g, support, (of_ball,))
        # A subgradient of the norm that is at least g; the multipliers of x >= 0 are the difference.
        slope = self.weights
        if isinstance(self.objective, BlockNorm):
            slope = shrink * np.maximum(g, 0.0)
        of_signs = shrink * g - slope
        dual = (of_ball, of_signs) if self.ball_first else (of_signs, of_ball)
        return ValidInequality(-slope, support, dual)

    def as_given(self, proof: ValidInequality, like: Array) -> ValidInequality:
        wide = self.of_duals
        dual = proof.dual and tuple(asarray_like(v, wide) for v in proof.dual)
        return ValidInequality(asarray_like(proof.direction, like), proof.support, dual)

    def at_zero(self, like: Array) -> ValidInequality:
        """Return the multiplier that proves the bound 0."""
        of_ball = (0.0 * self.ball.y,)
        return ValidInequality(0.0 * like, 0.0, of_ball if not self.nonneg else None)

    def dual_point(self, multiplier: ValidInequality | None) -> Array | None:
        """Return ``nu`` with ``|A^H nu|_i <= w_i`` of a multiplier; None where there is none.

        The multiplier of the ball is ``-nu``, up to the factor that makes it feasible.
        """
        if multiplier is None or multiplier.dual is None:
            return None
        of_ball = multiplier.dual[0 if self.ball_first else 1]
        scale = self.objective.scale_into_domain(multiplier.direction)
        assert scale is not None  # a norm has one
        return -scale * of_ball


def images_at(x: Array, image: Array, constraint: Constraint) -> Image:
    """Return the images of a point under all maps of a constraint, where ``image = A x`` is known."""
    return tuple(
        part
        for member in constraint.members()
        for part in ((image,) if isinstance(member, ResidualBall) else member.image(x))
    )


def residual_ball_of(constraint: Constraint) -> tuple[ResidualBall | None, bool]:
    """Return the residual ball of a constraint, None if it is of another form, and whether ``x >= 0``."""
    members = constraint.members()
    balls = [m for m in members if isinstance(m, ResidualBall)]
    rest = [m for m in members if not isinstance(m, ResidualBall)]
    orthants = [m for m in rest if isinstance(m, Box) and m.is_orthant]
    if len(balls) != 1 or len(rest) > 1 or len(orthants) != len(rest) or len(balls[0].shape) != 1:
        return None, False
    return balls[0], len(rest) == 1
