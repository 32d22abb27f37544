"""Basis pursuit denoising as its solvers take it: norms of blocks, the residual ball, and dual points."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any, TypeAlias

import numpy as np
import scipy  # parts of it load when first used

from lopro.basis_pursuit.support_newton import Level, Radius
from lopro.constraints import Box, Intersection, ResidualBall
from lopro.constraints.base import Constraint, ValidInequality
from lopro.core.arrays import (
    Array,
    asarray_like,
    eps,
    is_single,
    namespace,
    norm,
    to_numpy,
    widest,
)
from lopro.core.deadline import current_deadline
from lopro.core.validation import check_array
from lopro.core.vectors import norms
from lopro.errors import MissingCapabilityError
from lopro.functions import Ball, Constant, Image, Source
from lopro.functions.atoms import Opaque
from lopro.functions.cone_program import ConeBuilder, RealImage, place_rows
from lopro.functions.term import Term
from lopro.maps import LinearMap
from lopro.maps.algebra import dense
from lopro.objectives import L1Norm, Objective
from lopro.problem import Problem
from lopro.protocol import Evidence, Multiplier

__all__ = [
    "NORMS",
    "BlockNorm",
    "Repeated",
    "SparseForm",
    "SparseProblem",
    "images_at",
    "residual_ball_of",
]


Vector: TypeAlias = "np.ndarray[Any, Any]"


class BlockNorm(Objective):
    """``f(x) = sum_g w_g |x_g|_2`` over blocks of a vector; blocks of one entry make the l1 norm.

    Parameters
    ----------
    labels : array of length d
        The block of each entry: entries with equal labels form a block. Blocks are sorted by label.
    weights : float or array, optional
        Positive; one number for all blocks (default 1) or one for each.

    Examples
    --------
    >>> import numpy as np
    >>> from lopro.basis_pursuit.problem import BlockNorm
    >>> f = BlockNorm([0, 1, 0], weights=[1.0, 2.0])
    >>> x = np.array([3.0, -1.0, 4.0])
    >>> f.value(x), f.prox(x, 1.0) + 0.0
    (7.0, array([2.4, 0. , 3.2]))
    """

    proximable = True

    def __init__(self, labels: Any, weights: Any = None) -> None:
        found = to_numpy(check_array("groups", labels, ndim=1, allow_complex=False))
        names, places = np.unique(found, return_inverse=True)
        #: The block of each entry, numbered from 0.
        self.labels: Vector = places.ravel()
        each = (
            np.float64(1.0)
            if weights is None
            else to_numpy(check_array("weights", weights, allow_complex=False))
        )
        if each.shape not in ((), names.shape):
            raise ValueError(
                f"weights must be a number or {len(names)} of them, one for each group, "
                f"got shape {each.shape}"
            )
        #: The weight of each block.
        self.of_blocks: Vector = np.broadcast_to(each.astype(np.float64), names.shape)
        if self.least_weight < 0.0:
            raise ValueError(
                f"weights must be nonnegative, but one of them is {self.least_weight:g}"
            )
        self.shape = (len(self.labels),)

    @property
    def least_weight(self) -> float:
        """The smallest weight."""
        return float(self.of_blocks.min())

    @property
    def terms(self) -> tuple[Term, ...]:
        return (Term(Blocks(self)),)

    def lengths(self, x: Array) -> Vector:
        """Return the length of each block, in double precision."""
        _check_on_host(x)
        squares = np.square(x.real, dtype=np.float64)
        if np.iscomplexobj(x):
            squares += np.square(x.imag, dtype=np.float64)
        return np.sqrt(np.bincount(self.labels, weights=squares, minlength=len(self.of_blocks)))

    def _everywhere(self, of_blocks: Vector, like: Array) -> Vector:
        """Return the values of blocks at each of their entries, in the precision of ``like``."""
        _check_on_host(like)
        return of_blocks[self.labels].astype(like.real.dtype, copy=False)

    def moduli(self, x: Array) -> Vector:
        """Return the length of its block for each entry."""
        return self._everywhere(self.lengths(x), x)

    def weights_like(self, x: Array) -> Array:
        """Return the weight of its block for each entry, in the kind of ``x``."""
        return self._everywhere(self.of_blocks, x)

    def value(self, x: Array) -> float:
        return float(self.of_blocks @ self.lengths(x))

    def subgradient(self, x: Array) -> Array:
        lengths = self.lengths(x)
        factors = self.of_blocks / np.where(lengths > 0.0, lengths, 1.0)
        return x * self._everywhere(factors, x)

    def prox(self, x: Array, step: float) -> Array:
        return x - self._clipped(x, float(step) * self.of_blocks)

    def _clipped(self, x: Array, bounds: Vector) -> Array:
        """Return ``x`` with every block shortened to its bound."""
        lengths = self.lengths(x)
        beyond = lengths > bounds
        factors = np.where(beyond, bounds / np.where(beyond, lengths, 1.0), 1.0)
        return x * self._everywhere(factors, x)

    def minorant(self, x: Array, target: Array) -> tuple[float, Array]:
        return 0.0, self._clipped(target, self.of_blocks)

    def scale_into_domain(self, v: Array) -> float:
        lengths = self.lengths(v)
        beyond = lengths > self.of_blocks
        return float((self.of_blocks[beyond] / lengths[beyond]).min(initial=1.0))

    def lipschitz(self, ball: Ball | None = None) -> Constant | None:
        value = math.sqrt(float(self.of_blocks @ self.of_blocks))
        return Constant(value, Source.DERIVED, "Euclidean norm of the weights of blocks")

    def infimum(self) -> Constant:
        return Constant(0.0, Source.DERIVED, "a norm")

    def sublevel_radius(self, level: float) -> Constant | None:
        if self.least_weight == 0.0:
            return None
        radius = max(level, 0.0) / self.least_weight
        return Constant(radius, Source.DERIVED, "the length is below the sum of those of blocks")


def _check_on_host(x: Array) -> None:
    if not isinstance(x, np.ndarray):
        raise MissingCapabilityError(
            "groups and joint sparsity need data on the host: pass NumPy arrays"
        )


class Blocks(Opaque):
    """The sum of the lengths of blocks as an atom with a cone program, for interior-point methods."""

    function: BlockNorm

    def add_to_cone_program(self, program: ConeBuilder, image: RealImage, scale: float) -> None:
        f, D = self.function, scipy.sparse.csr_array(image.D)
        d, sizes = len(f.labels), np.bincount(f.labels)
        order, firsts = np.argsort(f.labels, kind="stable"), np.cumsum(sizes) - sizes
        for size in np.unique(sizes):
            (blocks,) = np.nonzero(sizes == size)
            entries = order[firsts[blocks][:, None] + np.arange(size)]
            if image.is_complex:
                entries = np.hstack([entries, entries + d])
            places = np.arange(len(blocks) * (1 + entries.shape[1])).reshape(len(blocks), -1)
            inside, count = places[:, 1:].ravel(), places.size
            t = program.new_variables(len(blocks))
            program.add_linear(scale * f.of_blocks[blocks], t)
            bounds = np.zeros(count)
            bounds[inside] = -image.b[entries.ravel()]
            heads = place_rows(-scipy.sparse.eye_array(len(blocks)), places[:, 0], count)
            rows = place_rows(-D[entries.ravel()], inside, count)
            program.add_second_order(places.shape[1], bounds, (heads, t), (rows, 0))


class Repeated(LinearMap):
    """``X -> A X`` on the entries of ``X``, row by row, as a vector.

    Parameters
    ----------
    base : LinearMap
        The map of one vector.
    copies : int
        The number of columns of ``X``.

    Examples
    --------
    >>> import numpy as np
    >>> from lopro.basis_pursuit.problem import Repeated
    >>> from lopro.maps import linear_map
    >>> A = Repeated(linear_map(np.array([[1.0, 2.0]])), 2)
    >>> A.shape, A.forward(np.array([1.0, 0.0, 10.0, 1.0]))
    ((2, 4), array([21.,  2.]))
    """

    def __init__(self, base: LinearMap, copies: int) -> None:
        rows, columns = base.shape
        super().__init__(
            base.source, (rows * copies, columns * copies), base.like, base.name, base.nbytes
        )
        self.base, self.copies = base, copies

    def _as_block(self, v: Array) -> Array:
        return v.reshape(-1, self.copies)

    # Products are those of the base, on its ledger: as many as there are columns, in one pass.

    def forward(self, x: Array) -> Array:
        return self.base.forward(self._as_block(x)).reshape(-1)

    def adjoint(self, y: Array) -> Array:
        return self.base.adjoint(self._as_block(y)).reshape(-1)

    def least_squares_rest(self, y: Any) -> Any:
        """Return the least-squares residual of a long vector; the base has entries."""
        matrix, rest = np.asarray(self.base.toarray()), y.reshape(-1, self.copies)
        rows, columns = matrix.shape
        current_deadline().need(8.0 * rows * columns * min(rows, columns))
        # Twice: a short residual is orthogonal only up to the rounding of the vector it was computed from.
        for _ in range(2):
            rest = rest - matrix @ np.linalg.lstsq(matrix, rest, rcond=None)[0]
        return rest.ravel()

    @property
    def has_columns(self) -> bool:
        return self.base.has_columns

    @property
    def in_memory(self) -> bool:
        return self.base.in_memory

    def read_columns(self, indices: Any) -> Any:
        """Return the columns of single entries: those of the base, in the rows of their right-hand side."""
        which, side = np.divmod(indices, self.copies)
        block = dense(self.base.columns(which))
        spread = np.zeros((self.base.shape[0], self.copies, len(which)), dtype=block.dtype)
        spread[:, side, np.arange(len(which))] = block
        return spread.reshape(self.shape[0], len(which))

    def adjoint_exactly(self, y: Array) -> Array:
        return self.base.adjoint_exactly(self._as_block(y)).reshape(-1)


#: The objectives of basis pursuit.
NORMS = (L1Norm, BlockNorm)


class SparseForm:
    """A norm that makes zeros, and a residual ``y - A x``: what searches for columns need of a problem.

    Subclasses define the balance between the two: the condition on alpha, the value of a point,
    and the bound that a dual point proves.
    """

    objective: L1Norm | BlockNorm
    weights: Array
    nonneg: bool
    #: The weight of ``|x|^2 / 2``.
    ridge: float = 0.0

    @property
    def A(self) -> LinearMap:
        """The map."""
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
        """Return the condition that determines alpha; feasible points stay inside by a margin."""
        raise NotImplementedError

    def value(self, norm_of_x: float, x: Array, residual: Array) -> float:
        """Return the objective at a point with this norm and this residual."""
        raise NotImplementedError

    def proved(
        self, r: Array, g: Array, stretch: float, growth: float = 1.0, above: float = -math.inf
    ) -> ValidInequality | None:
        """Return the multiplier that a residual ``r`` with ``g = A^H r`` is, scaled to feasibility."""
        raise NotImplementedError

    def with_matrix(self, problem: Problem) -> Problem:
        """Return the same problem with all entries of A: those of an operator take many products."""
        raise NotImplementedError

    def bound(self, proof: ValidInequality) -> float:
        """Return the lower bound that a multiplier proves."""
        raise NotImplementedError

    def at_zero(self, like: Array) -> ValidInequality:
        """Return the multiplier that proves 0."""
        raise NotImplementedError

    def as_given(self, proof: ValidInequality, like: Array) -> ValidInequality:
        """Return a proof found in double precision in the library and precision of the problem."""
        raise NotImplementedError

    def evidence(self, proof: ValidInequality) -> Evidence:
        """Return a multiplier as the evidence for a candidate."""
        raise NotImplementedError

    def excess(self, g: Array, blur: float = 0.0) -> Array:
        """Return correlations in units of the weights; those of the wrong sign do not count."""
        return (self._sizes(g) + blur) / self.weights

    def _sizes(self, g: Array) -> Array:
        """Return moduli, or lengths of blocks at each of their entries."""
        if isinstance(self.objective, BlockNorm):
            return self.objective.moduli(np.maximum(g, 0.0) if self.nonneg else g)
        return g if self.nonneg else abs(g)

    def gauge(self, g: Array, blur: float = 0.0) -> float:
        """Return the factor by which ``g = A^H r``, known up to ``blur``, is too large for a dual point."""
        sizes = self.excess(g, blur)
        return float(sizes.max() if isinstance(sizes, np.ndarray) else namespace(sizes).max(sizes))

    @property
    def of_duals(self) -> Array:
        """An array of the kind of dual points: complex as soon as either A or y is."""
        return widest((self.y, self.like))

    def check_units(self, g: Array, r: Array) -> None:
        """Raise where squares of ``y`` or of ``A``, seen by ``g = A^H r``, leave the range of numbers."""
        length = norm(r)
        stretch = norm(g) / length if length > 0.0 else 0.0
        widest = 1e15 if is_single(g) else 1e140
        if 0.0 < stretch <= 1.0 / widest and self.A.explicit:
            # Columns that are nearly orthogonal to y look short.
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
        """Read a problem whose parts have been checked; the weights come in the kind of ``like``."""
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
        """Return the multiplier that a residual ``r`` with ``g = A^H r`` is, scaled to feasibility.

        Its ``support`` is minus the lower bound ``(Re <y, r> - sigma |r|) / gauge`` of the optimum, less what
        rounding may have gained: in ``g``, where ``stretch`` is an estimate of the norm of ``A`` and
        ``growth`` is the factor by which errors of ``r`` have grown, and in the value. None where nothing
        is proved that is larger than ``above``.
        """
        length, size = norms(r, g)
        if not 0.0 < length < math.inf:
            return None
        stretch = max(stretch, size / length)
        gauge = self.gauge(g, blur=8.0 * eps(g) * growth * stretch * length)
        if not 0.0 < gauge < math.inf:
            return None
        shrink = 1.0 / gauge  # complex numbers are multiplied sooner than divided
        of_ball = -shrink * r
        support = self.ball.support_image((of_ball,))
        if not -support > above:
            return None
        if not self.nonneg:
            return ValidInequality(-shrink * g, support, (of_ball,))
        # A slope of the norm, at least the correlations: the multipliers of the signs are the difference.
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
        """Return the multiplier that proves 0, the value where ``x = 0`` is feasible."""
        of_ball = (0.0 * self.ball.y,)
        return ValidInequality(0.0 * like, 0.0, of_ball if not self.nonneg else None)

    def dual_point(self, multiplier: ValidInequality | None) -> Array | None:
        """Return ``nu`` with ``|A^H nu|_i <= w_i`` that a multiplier stands for, None where it has none.

        The multiplier of the ball is ``-nu``, up to the factor that makes it feasible.
        """
        if multiplier is None or multiplier.dual is None:
            return None
        of_ball = multiplier.dual[0 if self.ball_first else 1]
        scale = self.objective.scale_into_domain(multiplier.direction)
        assert scale is not None  # a norm has one
        return -scale * of_ball


def images_at(x: Array, image: Array, constraint: Constraint) -> Image:
    """Return a point under all maps of a constraint, where ``image = A x`` is known already."""
    return tuple(
        part
        for member in constraint.members()
        for part in ((image,) if isinstance(member, ResidualBall) else member.image(x))
    )


def residual_ball_of(constraint: Constraint) -> tuple[ResidualBall | None, bool]:
    """Return the residual ball of a constraint and whether there is ``x >= 0`` as well."""
    members = constraint.members()
    balls = [m for m in members if isinstance(m, ResidualBall)]
    rest = [m for m in members if not isinstance(m, ResidualBall)]
    orthants = [m for m in rest if isinstance(m, Box) and m.is_orthant]
    if len(balls) != 1 or len(rest) > 1 or len(orthants) != len(rest) or len(balls[0].shape) != 1:
        return None, False
    return balls[0], len(rest) == 1
