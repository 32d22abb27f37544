"""A norm added to the fit instead of minimised under a bound of the residual: the LASSO and its relatives.

The LASSO and the elastic net are ``min lam f(x) + |A x - y|^2 / 2 + rho |x|^2 / 2`` with the norm
``f = sum w_i |x_i|``, the square-root LASSO is ``min lam f(x) + |A x - y|``. For every ``u`` the first is at
least ``<y, u> - |u|^2 / 2 - sum ((|A'u|_i - lam w_i)_+)^2 / (2 rho)``; with ``rho = 0`` this holds for
``|A'u|_i <= lam w_i`` without the sum. The second is at least ``<y, u>`` if ``|u| <= 1`` as well. A residual,
multiplied by the factor for which its bound is the largest, is such a ``u``.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import ClassVar

import numpy as np

from lopro.basis_pursuit.block_norm import BlockNorm
from lopro.basis_pursuit.levels import Level, Penalty, Ratio
from lopro.basis_pursuit.problem import SparseForm
from lopro.constraints import Intersection, ResidualBall
from lopro.constraints.base import ValidInequality
from lopro.core.arrays import (
    Array,
    Companion,
    asarray_like,
    eps,
    inner,
    is_single,
    namespace,
)
from lopro.core.vectors import norms
from lopro.functions import Image
from lopro.linalg.rounding import Estimate, dot
from lopro.maps import LinearMap
from lopro.maps.copied import CopiedMap
from lopro.objectives import L1Norm, LeastSquares, Objective, OfAtom, Scaled, Sum
from lopro.problem import Problem
from lopro.protocol import Evidence, ProvedBound

__all__ = [
    "FitMultiplier",
    "PenalisedForm",
    "PenalisedProblem",
    "SquareRootProblem",
    "unscaled",
]

_EPS = float(np.finfo(np.float64).eps)
#: Roundings of a value in single precision, which is a pairwise sum of rounded squares: the error of a
#: pairwise sum of n terms is at most log2(n) roundings, and about their root (N. Higham, Accuracy and
#: Stability of Numerical Algorithms, 2002, section 4.2).
_ROUNDED = 4.0


@dataclass(frozen=True, eq=False)
class FitMultiplier(ValidInequality):
    """The multiplier of the fit with the bound that it proves, and the multipliers of ``x >= 0``."""

    fit: Array = field(kw_only=True)
    value: float = field(kw_only=True)


class PenalisedForm(SparseForm):
    """A norm added to the fit: bounds are proved by a `FitMultiplier`."""

    source: ClassVar[str] = "Fenchel dual, residual scaled to feasibility"

    def bound(self, proof: ValidInequality) -> float:
        assert isinstance(proof, FitMultiplier)
        return proof.value

    def as_given(self, proof: ValidInequality, like: Array) -> ValidInequality:
        assert isinstance(proof, FitMultiplier)
        return replace(
            proof,
            direction=asarray_like(proof.direction, like),
            dual=proof.dual and tuple(asarray_like(v, like) for v in proof.dual),
            fit=asarray_like(proof.fit, self.of_duals),
        )

    def evidence(self, proof: ValidInequality) -> Evidence:
        bound = self.bound(proof)
        rounding = _ROUNDED * eps(self.like) * abs(bound) if is_single(self.like) else 0.0
        return ProvedBound(bound, self.source, inequality=proof, gained=rounding)

    def at_zero(self, like: Array) -> FitMultiplier:
        """Return the multiplier that proves 0: no part of the objective is negative."""
        return FitMultiplier(0.0 * like, 0.0, None, fit=0.0 * self.y, value=0.0)


@dataclass(frozen=True)
class PenalisedProblem(PenalisedForm):
    """``scale (lam f(x) + |A x - y|^2 / 2 + ridge |x|^2 / 2)``, with ``x >= 0`` where ``nonneg``."""

    objective: L1Norm | BlockNorm
    #: The part of the objective with the residual.
    fit: LeastSquares | OfAtom
    #: All parts of the objective.
    parts: tuple[Objective, ...]
    weights: Array
    nonneg: bool
    lam: float
    ridge: float = 0.0
    scale: float = 1.0

    @property
    def A(self) -> LinearMap:
        return self.fit.terms[0].D

    @property
    def y(self) -> Array:
        return self._y.array

    @cached_property
    def _y(self) -> Companion:
        assert self.fit.terms[0].offset is not None
        return Companion(self.fit.terms[0].offset)

    @property
    def like(self) -> Array:
        assert self.fit.like is not None
        return self.fit.like

    def level(self, margin: float) -> Level:
        return Penalty(self.lam)

    # The interface of a residual ball for first-order methods: all residuals are allowed.

    sigma: ClassVar[float] = math.inf
    tight_frame: ClassVar[float | None] = None

    def image(self, x: Array) -> Image:
        """Return ``A x``."""
        return (self.A.forward(x),)

    def pullback(self, dual: Image) -> Array:
        """Return ``A^H r``."""
        return self.A.adjoint(dual[0])

    def with_matrix(self, problem: Problem) -> Problem:
        A = CopiedMap(self.A.toarray(), self.A.name)
        parts = [_with_map(f, A) if unscaled(f)[1] is self.fit else f for f in self.parts]
        return replace(problem, objective=Sum(*parts))

    def value(self, norm_of_x: float, x: Array, residual: Array) -> float:
        squares = inner(residual, residual) + self.ridge * inner(x, x)
        return self.scale * (self.lam * norm_of_x + 0.5 * squares)

    def image_at(self, x: Array, image: Array) -> Image:
        return tuple(
            part
            for f in self.parts
            for part in ((image,) if unscaled(f)[1] is self.fit else f.image(x))
        )

    def proved(
        self, r: Array, g: Array, stretch: float, growth: float = 1.0, above: float = -math.inf
    ) -> FitMultiplier | None:
        length, size = norms(r, g)
        if not 0.0 < length < math.inf:
            return None
        blur = 8.0 * eps(g) * growth * max(stretch, size / length) * length
        along = _product(self._y.beside(r), r)
        t, paid = self._factor(along.value, length, g, blur)
        if not 0.0 < t < math.inf:
            return None
        value = self.scale * self._dual_value(t, along, length, paid)
        if not value > above:
            return None
        return self._multiplier(t * r, t * g, value)

    def _factor(self, along: float, length: float, g: Array, blur: float) -> tuple[float, float]:
        """Return the best factor of the residual, and the cost of correlations beyond their weights.

        With a ridge the bound is a concave function of the factor ``t`` whose derivative is piecewise linear.
        """
        largest = along / (length * length)
        if self.ridge == 0.0:
            gauge = self.gauge(g, blur)
            return (min(largest, self.lam / gauge) if gauge > 0.0 else largest), 0.0
        sizes, allowed = self.sizes(g) + blur, self.lam * self.weights
        beyond = largest * sizes > allowed
        s, a = sizes[beyond], allowed[beyond]
        t = largest
        while (
            True
        ):  # Newton's method from the right; each step drops correlations below their weight
            on = t * s > a
            square = float(s[on] @ s[on]) / self.ridge
            after = (along + float(s[on] @ a[on]) / self.ridge) / (length * length + square)
            if not 0.0 < after < t * (1.0 - 4.0 * float(np.finfo(np.float64).eps)):
                break
            t = after
        excess = np.maximum(t * s - a, 0.0)
        return t, float(excess @ excess) / (2.0 * self.ridge)

    def _dual_value(self, t: float, along: Estimate, length: float, paid: float) -> float:
        """Return the bound, rounded down."""
        square = 0.5 * (t * length) * (t * length)
        rounding = t * along.error + 16.0 * _EPS * (abs(t * along.value) + square + paid)
        return t * along.value - square - paid * (1.0 + len(self.weights) * _EPS) - rounding

    def _multiplier(self, u: Array, pulled: Array, value: float) -> FitMultiplier:
        if not self.nonneg:
            return FitMultiplier(0.0 * pulled, 0.0, None, fit=u, value=value)
        below = self.scale * (pulled - self.lam * self.weights)
        of_signs = below - namespace(below).clip(below, 0.0, None)
        return FitMultiplier(of_signs, 0.0, (of_signs,), fit=u, value=value)


class SquareRootProblem(PenalisedProblem):
    """``scale (lam f(x) + |A x - y|)``, with ``x >= 0`` where ``nonneg``."""

    def level(self, margin: float) -> Level:
        return Ratio(self.lam)

    def value(self, norm_of_x: float, x: Array, residual: Array) -> float:
        return self.scale * (self.lam * norm_of_x + norms(residual, residual)[0])

    def _factor(self, along: float, length: float, g: Array, blur: float) -> tuple[float, float]:
        unit = (1.0 - 8.0 * eps(g)) / length
        gauge = self.gauge(g, blur)
        return (min(unit, self.lam / gauge) if gauge > 0.0 else unit), 0.0

    def _dual_value(self, t: float, along: Estimate, length: float, paid: float) -> float:
        return t * along.value - t * along.error - 16.0 * _EPS * abs(t * along.value)

    def equations(self, problem: Problem) -> Problem:
        """Return ``min f(x)  s.t. A x = y``, equivalent if its dual solution is at most 1 / lam long."""
        ball = ResidualBall(self.A, self.y, 0.0)
        signs = problem.constraint.members() if self.nonneg else ()
        constraint = Intersection(ball, *signs) if signs else ball
        return replace(problem, objective=self.objective, constraint=constraint)


def _with_map(f: Objective, A: LinearMap) -> Objective:
    """Return a norm of a residual, squared or not, with another map."""
    scale, fit = unscaled(f)
    term = fit.terms[0]
    if isinstance(fit, LeastSquares):
        return Scaled(scale, LeastSquares(A, term.offset))
    return Scaled(scale, OfAtom(term.atom, A, term.offset))


def unscaled(f: Objective) -> tuple[float, Objective]:
    """Return the factor of a multiple of a function (1 for others), and the function."""
    return (f.factor, f.f) if isinstance(f, Scaled) else (1.0, f)


def _product(y: Array, r: Array) -> Estimate:
    """Return ``Re <y, r>`` with a bound of its rounding error."""
    if (
        isinstance(y, np.ndarray)
        and isinstance(r, np.ndarray)
        and "c" not in y.dtype.kind + r.dtype.kind
    ):
        return dot(r.astype(np.float64), y.astype(np.float64))
    size, length = norms(y, r)
    return Estimate(inner(y, r), 8.0 * eps(r) * size * length)
