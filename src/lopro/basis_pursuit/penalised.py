"""A norm added to the residual instead of minimised under a bound of it: the LASSO and the square-root LASSO.

These are ``min lam f(x) + |A x - y|^2 / 2 + rho |x|^2 / 2`` and ``min lam f(x) + |A x - y|`` for the norm
``f = sum w_i |x_i|``. For every ``u`` the first is at least
``<y, u> - |u|^2 / 2 - sum ((|A'u|_i - lam w_i)_+)^2 / (2 rho)``, and with ``rho = 0`` only a ``u`` with
``|A'u|_i <= lam w_i`` proves something. The second is at least ``<y, u>`` where ``|u| <= 1`` as well. A
residual is such a ``u`` up to a factor, and the best factor is known.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import ClassVar

import numpy as np

from lopro.basis_pursuit.problem import (
    NORMS,
    BlockNorm,
    SparseForm,
    SparseProblem,
    residual_ball_of,
)
from lopro.basis_pursuit.support_newton import Level, Penalty, Ratio
from lopro.constraints import Box, Intersection, ResidualBall, WholeSpace
from lopro.constraints.base import ValidInequality
from lopro.core.arrays import (
    Array,
    Companion,
    asarray_like,
    eps,
    inner,
    is_complex,
    is_single,
    namespace,
)
from lopro.core.vectors import norms
from lopro.functions import Image
from lopro.functions.atoms import GroupNorm
from lopro.linalg.rounding import Estimate, dot
from lopro.maps import LinearMap
from lopro.maps.copied import CopiedMap
from lopro.objectives import L1Norm, LeastSquares, Objective, OfAtom, Scaled, SquaredDistance, Sum
from lopro.problem import Problem
from lopro.protocol import Evidence, ProvedBound

__all__ = ["FitMultiplier", "PenalisedProblem", "SquareRootProblem", "sparse_form", "unscaled"]

_SOURCE = "Fenchel dual, residual scaled to feasibility"


@dataclass(frozen=True, eq=False)
class FitMultiplier(ValidInequality):
    """The multiplier of the residual, ``fit``, the bound that it proves, and those of ``x >= 0``."""

    fit: Array = field(kw_only=True)
    value: float = field(kw_only=True)


@dataclass(frozen=True)
class PenalisedProblem(SparseForm):
    """``scale (lam f(x) + |A x - y|^2 / 2 + ridge |x|^2 / 2)``, with ``x >= 0`` where ``nonneg``."""

    objective: L1Norm | BlockNorm
    #: The part of the objective with the residual in it, and all parts.
    fit: LeastSquares | OfAtom
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

    # The interface of a ball for first-order methods: here any residual is allowed.

    sigma: ClassVar[float] = math.inf
    tight_frame: ClassVar[float | None] = None

    def image(self, x: Array) -> Image:
        """Return ``A x``."""
        return (self.A.forward(x),)

    def pullback(self, dual: Image) -> Array:
        """Return ``A^H r``."""
        return self.A.adjoint(dual[0])

    def with_matrix(self, problem: Problem) -> Problem:
        """Return the same problem with all entries of A: those of an operator take many products."""
        A = CopiedMap(self.A.toarray(), self.A.name)
        parts = [_with_map(f, A) if unscaled(f)[1] is self.fit else f for f in self.parts]
        return replace(problem, objective=Sum(*parts))

    def value(self, norm_of_x: float, x: Array, residual: Array) -> float:
        squares = inner(residual, residual) + self.ridge * inner(x, x)
        return self.scale * (self.lam * norm_of_x + 0.5 * squares)

    def image_at(self, x: Array, image: Array) -> Image:
        """Return a point under the maps of the objective, where ``image = A x`` is known already."""
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
        """Return by what to multiply the residual, and what the ridge pays for correlations beyond."""
        largest = along / (length * length)
        if self.ridge == 0.0:
            gauge = self.gauge(g, blur)
            return (min(largest, self.lam / gauge) if gauge > 0.0 else largest), 0.0
        sizes, allowed = self._sizes(g) + blur, self.lam * self.weights
        beyond = largest * sizes > allowed
        s, a = sizes[beyond], allowed[beyond]
        # The slope in t falls and is concave and piecewise linear: Newton's method comes from the right.
        t = largest
        while True:  # each step leaves out correlations that no longer exceed their weight
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

    def at_zero(self, like: Array) -> FitMultiplier:
        """Return the multiplier that proves 0: no part of the objective is negative."""
        return FitMultiplier(0.0 * like, 0.0, None, fit=0.0 * self.y, value=0.0)

    def bound(self, proof: ValidInequality) -> float:
        assert isinstance(proof, FitMultiplier)
        return proof.value

    def as_given(self, proof: ValidInequality, like: Array) -> ValidInequality:
        """Return a proof found in double precision in the library and precision of the problem."""
        assert isinstance(proof, FitMultiplier)
        return replace(
            proof,
            direction=asarray_like(proof.direction, like),
            dual=proof.dual and tuple(asarray_like(v, like) for v in proof.dual),
            fit=asarray_like(proof.fit, self.of_duals),
        )

    def evidence(self, proof: ValidInequality) -> Evidence:
        bound = self.bound(proof)
        # Values of points in single precision are sums of rounded squares.
        rounding = ROUNDED * eps(self.like) * abs(bound) if is_single(self.like) else 0.0
        return ProvedBound(bound, _SOURCE, inequality=proof, gained=rounding)


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
        """Return ``min f(x)  s.t. A x = y``, the same where its dual solution is no longer than 1 / lam."""
        ball = ResidualBall(self.A, self.y, 0.0)
        signs = problem.constraint.members() if self.nonneg else ()
        constraint = Intersection(ball, *signs) if signs else ball
        return replace(problem, objective=self.objective, constraint=constraint)


_EPS = float(np.finfo(np.float64).eps)
#: Roundings of a value that is a pairwise sum.
ROUNDED = 4.0


def sparse_form(problem: Problem, like: Array | None = None) -> SparseForm | None:
    """Return a problem as one with a norm and a residual; None where it is not of this form.

    Examples
    --------
    >>> import numpy as np, lopro
    >>> from lopro.basis_pursuit.penalised import sparse_form
    >>> f = lopro.objectives.LeastSquares(np.eye(2), np.ones(2)) + 0.5 * lopro.objectives.L1Norm()
    >>> sparse_form(lopro.Problem(f)).lam
    0.5
    """
    if isinstance(problem.objective, NORMS):
        if residual_ball_of(problem.constraint)[0] is None:
            return None
        return SparseProblem.of(problem, problem.start(None) if like is None else like)
    return _penalised(problem, like)


def _penalised(problem: Problem, like: Array | None) -> PenalisedProblem | None:
    f = problem.objective
    if not isinstance(f, Sum):
        return None
    parts = [(s, _by_labels(g, problem)) for s, g in map(unscaled, f.parts)]
    fits = [(s, g) for s, g in parts if isinstance(g, LeastSquares) or _is_norm(g)]
    found = [(s, g) for s, g in parts if isinstance(g, NORMS)]
    ridges = [s for s, g in parts if isinstance(g, SquaredDistance) and _is_ridge(g)]
    if len(fits) != 1 or len(found) != 1 or 2 + len(ridges) != len(parts):
        return None
    (scale, fit), (weight, g), ridge = fits[0], found[0], sum(ridges)
    signs = _signs(problem)
    if signs is None:
        return None
    assert isinstance(fit, LeastSquares | OfAtom)
    square = isinstance(fit, LeastSquares)
    if min(scale, weight, g.least_weight) <= 0.0 or not (square or ridge == 0.0):
        return None
    if ridge > 0.0 and (isinstance(g, BlockNorm) or is_complex(problem.start(None))):
        return None
    kind = PenalisedProblem if square else SquareRootProblem
    weights = g.weights_like(problem.start(None) if like is None else like)
    lam, rho = weight / scale, ridge / scale
    return kind(g, fit, f.parts, weights, signs, lam, rho, scale)


def _signs(problem: Problem) -> bool | None:
    """Return whether ``x >= 0`` is required; None where there are other constraints."""
    members = problem.constraint.members()
    if all(isinstance(m, WholeSpace) for m in members):
        return False
    if len(members) != 1 or is_complex(problem.start(None)):
        return None
    return True if isinstance(members[0], Box) and members[0].is_orthant else None


def unscaled(f: Objective) -> tuple[float, Objective]:
    """Return the factor of a multiple of a function, 1 for others, and the function."""
    return (f.factor, f.f) if isinstance(f, Scaled) else (1.0, f)


def _with_map(f: Objective, A: LinearMap) -> Objective:
    """Return a residual, squared or not, with another map."""
    scale, fit = unscaled(f)
    term = fit.terms[0]
    if isinstance(fit, LeastSquares):
        return Scaled(scale, LeastSquares(A, term.offset))
    return Scaled(scale, OfAtom(term.atom, A, term.offset))


def _by_labels(f: Objective, problem: Problem) -> Objective:
    """Return the norm of groups of entries of ``x`` as one of blocks; other functions as they are."""
    if not isinstance(f, OfAtom) or not isinstance(f.atom, GroupNorm):
        return f
    if f.D is not None or f.offset is not None or problem.shape is None:
        return f
    x = problem.start(None)
    if not isinstance(x, np.ndarray) or x.ndim != 1:
        return f
    return BlockNorm(np.arange(x.size) // f.atom.group_size, f.atom.weight)


def _is_norm(f: Objective) -> bool:
    """Whether a function is the Euclidean norm of ``D x - b``."""
    if not isinstance(f, OfAtom) or not isinstance(f.atom, GroupNorm) or f.D is None:
        return False
    alone = f.atom.group_size == f.D.shape[0] and f.atom.weight == 1.0
    return alone and f.terms[0].offset is not None


def _is_ridge(f: SquaredDistance) -> bool:
    """Whether a function is ``|x|^2 / 2``."""
    return f.weights is None and not bool(namespace(f.z).any(f.z != 0.0))


def _product(y: Array, r: Array) -> Estimate:
    """Return ``Re <y, r>`` with a bound of its error."""
    if (
        isinstance(y, np.ndarray)
        and isinstance(r, np.ndarray)
        and "c" not in y.dtype.kind + r.dtype.kind
    ):
        return dot(r.astype(np.float64), y.astype(np.float64))
    size, length = norms(y, r)
    return Estimate(inner(y, r), 8.0 * eps(r) * size * length)
