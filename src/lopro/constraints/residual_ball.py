"""The residual ball ``{x : |A x - y| <= sigma}``, squared as in the paper or as a plain norm."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import Any, TypeAlias

import numpy as np

from lopro.certificates.violation import ball_size
from lopro.constraints.base import Constraint, ValidInequality
from lopro.core.arrays import (
    Array,
    Companion,
    asarray_like,
    copy,
    eps,
    from_numpy,
    inner,
    is_complex,
    is_single,
    namespace,
    norm,
    to_numpy,
)
from lopro.core.exact import support_of_ball
from lopro.core.validation import check_array, check_number, check_shape
from lopro.errors import InfeasibleError
from lopro.functions import Ball, Constant, Image, Linearization, MappedFunction, Source, atoms
from lopro.functions.term import Term
from lopro.maps import SparseMap, linear_map
from lopro.maps.algebra import widened
from lopro.maps.copied import CopiedMap
from lopro.maps.host import host_vector
from lopro.projections.empty_ball import residual_exceeds
from lopro.projections.residual_ball import adjoint_product, project_residual_ball

#: A product with a matrix of this size takes less than a millisecond.
_SMALL_BYTES = 2**20

__all__ = ["FEW_COLUMNS", "ResidualBall", "ResidualForm", "ResidualNorm", "SquaredResidual"]


@dataclass(frozen=True)
class SquaredResidual:
    """``c(x) = |A x - y|^2 - sigma^2``: smooth everywhere, steep far away.

    Examples
    --------
    >>> import lopro.constraints as lc
    >>> lc.SquaredResidual().value(3.0, 2.0)
    5.0
    """

    def value(self, length: float, sigma: float) -> float:
        """Return ``c`` where the residual has this length."""
        return length**2 - sigma**2

    def slope(self, length: float) -> float:
        """Return the factor between the residual and the gradient in the image."""
        return 2.0

    def regularity(self, smallest: float, inner_radius: float, sigma: float) -> float:
        """Return rho: ``|w|^2 - s^2 >= 2 s (|w| - s)`` for the part ``w`` in the range of A."""
        return 2.0 * smallest * inner_radius


@dataclass(frozen=True)
class ResidualNorm:
    """``c(x) = |A x - y| - sigma``: Lipschitz everywhere, no gradient where ``A x = y``.

    Examples
    --------
    >>> import lopro.constraints as lc
    >>> lc.ResidualNorm().value(3.0, 2.0)
    1.0
    """

    def value(self, length: float, sigma: float) -> float:
        """Return ``c`` where the residual has this length."""
        return length - sigma

    def slope(self, length: float) -> float:
        """Return the factor between the residual and the (sub)gradient in the image."""
        return 1.0 / length if length > 0.0 else 0.0

    def regularity(self, smallest: float, inner_radius: float, sigma: float) -> float:
        """Return rho: the slope of ``sqrt(w^2 + e^2)`` at the boundary, times ``smallest``."""
        return smallest * (inner_radius / sigma if sigma > 0.0 else 1.0)


_QUICKLY_FACTORED = 300
#: Columns of an operator that may all be asked for.
FEW_COLUMNS = 300
#: Entries of a matrix in single precision that is held in double precision as well.
_HELD_TWICE = 10**6
#: Aims further and further inside a ball, until the rounded point is inside too.
_ATTEMPTS = 6


def _widened(x: Array) -> Array:
    """Return ``x`` on the host in double precision."""
    return widened(to_numpy(x))


def _as_precise_as(x: Array, exact: Array) -> Array:
    """Return ``exact`` in the library and precision of ``x``, complex where either is."""
    if is_single(x):
        exact = exact.astype(np.complex64 if is_complex(exact) else np.float32)
    return from_numpy(exact, x)


ResidualForm: TypeAlias = SquaredResidual | ResidualNorm


class ResidualBall(MappedFunction, Constraint):
    r"""The set ``{x : |A x - y|_2 <= sigma}``.

    Parameters
    ----------
    A : array, scipy.sparse matrix, LinearOperator or LinearMap
        Operators are projected on by a Krylov method and get estimated constants only.
    y : array
        The measurements, one per row of ``A``.
    sigma : float
        The radius, a norm (the paper's tau is its square); 0 means ``A x = y``.
    form : SquaredResidual or ResidualNorm
        Which function ``c`` describes the set.
    tight_frame : float, optional
        ``c`` where ``A A^H = c I`` is known of an operator: the projection becomes one formula.

    Notes
    -----
    With the least-squares residual ``e`` and the smallest nonzero singular value ``s``, rho is
    ``2 s sqrt(sigma^2 - e^2)`` for the square and ``s sqrt(sigma^2 - e^2) / sigma`` for the norm.
    Both are attained at the boundary, along the singular direction of ``s``.

    Departures
    ----------
    The paper prints half of the first constant and asks for full row rank.

    Examples
    --------
    >>> import numpy as np, lopro.constraints as lc
    >>> ball = lc.ResidualBall(np.eye(2), np.zeros(2), 1.0)
    >>> ball.value(np.array([3.0, 4.0]))
    24.0
    >>> ball.project(np.array([3.0, 4.0])).round(9)
    array([0.6, 0.8])
    >>> round(ball.regularity().value, 9)
    2.0
    """

    has_image_set = True

    def __init__(
        self,
        A: Any,
        y: Any,
        sigma: float,
        form: ResidualForm | None = None,
        *,
        tight_frame: float | None = None,
    ) -> None:
        self.A = linear_map(A, "A")
        self.y = copy(from_numpy(to_numpy(check_array("y", y, ndim=1)), self.A.like))
        check_shape("y", self.y, (self.A.shape[0],))
        self.sigma = check_number("sigma", sigma, minimum=0.0)
        self.form: ResidualForm = SquaredResidual() if form is None else form
        if not isinstance(self.form, (SquaredResidual, ResidualNorm)):
            raise TypeError(f"form must be SquaredResidual() or ResidualNorm(), got {form!r}")
        # The norm has a kink where A x = y, the centre of the set, and nowhere else.
        self.smooth = isinstance(self.form, SquaredResidual) or self.sigma > 0.0
        self.shape = (self.A.shape[1],)
        self._y = Companion(self.y)
        self._size_of_y = norm(self.y)
        self.like = self._wide_enough()
        self.tight_frame = tight_frame
        if tight_frame is not None:
            self.tight_frame = check_number("tight_frame", tight_frame, minimum=0.0, exclusive=True)
            self._check_tight_frame(self.tight_frame)

    def __repr__(self) -> str:
        return f"ResidualBall(A={self.A!r}, sigma={self.sigma:g}, form={self.form!r})"

    def _wide_enough(self) -> Array:
        """Points are complex as soon as either A or y is."""
        if is_complex(self.A.like) or not is_complex(self.y):
            return self.A.like
        xp = namespace(self.A.like)
        return xp.astype(self.A.like, xp.complex64 if eps(self.A.like) > 1e-10 else xp.complex128)

    def _check_tight_frame(self, c: float) -> None:
        """Try the claim on one vector: a wrong factor is found here, not in a wrong result."""
        probe = np.random.default_rng(0).standard_normal(self.A.shape[0])
        u = asarray_like(probe / np.linalg.norm(probe), self.A.like)
        gap = norm(self.A.forward(self.A.adjoint(u)) - c * u)
        if gap > 1e3 * eps(self.A.like) * c:
            raise ValueError(
                f"tight_frame={c:g} does not fit A: |A A^H u - c u| = {gap:.3g} for a unit u"
            )

    @cached_property
    def terms(self) -> tuple[Term, ...]:
        if self.sigma > 0.0:
            return (Term(atoms.Ball(self.sigma), self.A, self.y),)
        if is_complex(self.like):
            return super().terms
        y = host_vector(self.y)
        return (Term(atoms.Interval(y, y), self.A),)

    def image(self, x: Array) -> Image:
        return (self.A.forward(x),)

    def linearize_at(self, image: Image) -> Linearization:
        r = image[0] - self._y.beside(image[0])
        length = norm(r)
        c = self.form.value(length, self.sigma)
        return c, lambda: self.A.adjoint(self.form.slope(length) * r)

    def lipschitz(self, ball: Ball | None = None) -> Constant | None:
        largest = self.largest_singular_value
        if isinstance(self.form, ResidualNorm):
            return largest
        if ball is None:
            return None
        r = norm(self.A.forward(ball.center) - self._y.beside(ball.center))
        value = 2.0 * largest.value * (r + largest.value * ball.radius)
        return Constant(value, largest.source, "2 |A| times the longest residual on the ball")

    def smoothness(self) -> Constant | None:
        if isinstance(self.form, ResidualNorm):
            return None
        largest = self.largest_singular_value
        return Constant(2.0 * largest.value**2, largest.source, f"2 |A|^2, {largest.note}")

    def infimum(self) -> Constant | None:
        misfit = max(0.0, self.misfit - self._rounding)  # stays a lower bound after rounding
        note = "least-squares residual" if self._spectrum_known else "the residual is not negative"
        return Constant(self.form.value(misfit, self.sigma), Source.DERIVED, note)

    # The geometry of the set.

    @cached_property
    def largest_singular_value(self) -> Constant:
        """``|A|_2`` and where it comes from."""
        if self.tight_frame is not None:
            return Constant(math.sqrt(self.tight_frame), Source.GIVEN, "tight_frame")
        return self.A.largest_singular_value

    @property
    def _spectrum_known(self) -> bool:
        return self.A.explicit or self.tight_frame is not None

    @cached_property
    def _smallest(self) -> float:
        """The smallest nonzero singular value, rounded down."""
        if self.tight_frame is not None:
            return math.sqrt(self.tight_frame)
        largest, smallest = self.A.singular_range
        return max(0.0, smallest - max(self.A.shape) * eps(self.A.like) * largest)

    @property
    def _rounding(self) -> float:
        return 1e2 * eps(self.y) * self._size_of_y

    @cached_property
    def misfit(self) -> float:
        """The least-squares residual ``min |A x - y|`` (0 where it is not known)."""
        rest = self._rest
        return 0.0 if rest is None or norm(rest) <= self._rounding else norm(rest)

    @cached_property
    def _rest(self) -> Array | None:
        """What of y is out of the reach of A; None where that is nothing, or not known."""
        if not self.A.explicit or self.tight_frame is not None or self.A.full_row_rank:
            return None
        rest = self.y - self.A.left_spectrum[1] @ self._coordinates()
        # Once more: a short rest is orthogonal to the range only up to the rounding of y.
        U = self.A.left_spectrum[1]
        return rest - U @ adjoint_product(U, rest)

    @cached_property
    def is_empty(self) -> bool:
        """Whether the part of y that A does not reach proves that there is no point; explicit maps only."""
        if not self.A.explicit or self._size_of_y <= self.sigma or not self._squares_are_numbers:
            return False
        rest = self._rest
        return rest is not None and residual_exceeds(self.A, self.y, self.sigma, rest)

    @property
    def _squares_are_numbers(self) -> bool:
        """Whether the products of entries of A stay in the range of numbers, as far as y can tell."""
        stretch = norm(self.A.adjoint(self.y)) / self._size_of_y
        return stretch < math.sqrt(float(np.finfo(to_numpy(self.A.like).dtype).max)) / 1e14

    def _coordinates(self) -> Array:
        """Return the coordinates of y in the range of A."""
        return adjoint_product(self.A.left_spectrum[1], self.y)

    @property
    def _inner_radius(self) -> float:
        """The radius of the ball within the range of A; 0 where only least squares gets there."""
        e = self.misfit
        return math.sqrt(max(0.0, (self.sigma - e) * (self.sigma + e)))

    def regularity(self) -> Constant | None:
        if not self._spectrum_known or (self.A.explicit and self.is_empty):
            return None
        rho = self.form.regularity(self._smallest, self._inner_radius, self.sigma)
        if rho <= 0.0:
            return None
        source = Source.DERIVED if self.tight_frame is None else Source.GIVEN
        return Constant(rho, source, "smallest nonzero singular value of A and the radius")

    def radius(self) -> Constant | None:
        tall = self.A.shape[0] >= self.A.shape[1]
        if isinstance(self.A, SparseMap) and min(self.A.shape) > _QUICKLY_FACTORED:
            return None  # its spectrum would be that of a dense matrix
        if not (tall and self.A.explicit and self.A.full_column_rank and self._smallest > 0.0):
            return None
        s, U = self.A.left_spectrum
        centre = norm(self.A.adjoint(U @ (self._coordinates() / s)))
        value = (centre + self._inner_radius / self._smallest) * (1.0 + 1e3 * eps(self.y))
        return Constant(value, Source.DERIVED, "least-squares solution, smallest singular value")

    def infeasibility(self) -> str | None:
        # Above this size the factorisation costs more than many a solver does without; whoever projects
        # will find out. Data that are far away are not read for it.
        if min(self.A.shape) > _QUICKLY_FACTORED or not self.A.in_memory or not self.is_empty:
            return None
        return (
            f"no x has |A x - y| <= sigma: the least-squares residual is {self.misfit:.6g}, "
            f"sigma is {self.sigma:.6g}"
        )

    @cached_property
    def as_matrix(self) -> ResidualBall:
        """The same ball with a matrix, where A is an operator with few columns: that takes a product each."""
        if (
            self.A.explicit
            or self.A.shape[1] > FEW_COLUMNS
            or not isinstance(self.like, np.ndarray)
        ):
            return self
        return self.with_matrix()

    def with_matrix(self) -> ResidualBall:
        """Return the same ball with all entries of A: those of an operator take many products."""
        A = CopiedMap(self.A.toarray(), self.A.name)
        return ResidualBall(A, self.y, self.sigma, self.form)

    @cached_property
    def in_double(self) -> ResidualBall | None:
        """The same ball in double precision (itself, where it is); None where A is large or not at hand.

        Rounding in a residual is as large as ``eps |A| |x|``. Where sigma is small beside that, or the
        least-squares residual close to sigma, single precision cannot tell where the boundary is.
        """
        A, y = self.A, self.y
        if not isinstance(A.like, np.ndarray) or (A.explicit and not A.in_memory):
            return None
        if not is_single(A.like) and not is_single(y):
            return self
        if math.prod(A.shape) > _HELD_TWICE or not self.as_matrix.A.explicit:
            return None
        return ResidualBall(widened(self.as_matrix.A.matrix), _widened(y), self.sigma, self.form)

    @property
    def _believes_double(self) -> bool:
        """Whether points are judged in double precision rather than in their own."""
        return self.A.explicit and self.in_double is not None and self.in_double is not self

    def violation(self, x: Array) -> float:
        return self.violation_at(x, () if self._believes_double else self.image(x))

    def violation_at(self, x: Array, image: Image) -> float:
        if self._believes_double and self.in_double is not None:
            return self.in_double.violation(_widened(x))
        excess = norm(image[0] - self._y.beside(image[0])) - self.sigma
        if excess <= 0.0:
            return 0.0
        size = ball_size(self.sigma, self._size_of_y, lambda: self._size_of_products(x, image[0]))
        return excess / size

    def absolute_violation(self, x: Array) -> float:
        image = self.A.forward(x)
        return max(0.0, norm(image - self._y.beside(image)) - self.sigma)

    def _size_of_products(self, x: Array, image: Array) -> float:
        """Return a size for ``A x = 0`` to be compared with: ``|x|`` times at most the norm of A."""
        return norm(x) * norm(self.A.adjoint(image)) / norm(image)

    @property
    def sizes_for_free(self) -> bool:
        return self.A.explicit and self.A.in_memory and self.A.nbytes <= _SMALL_BYTES

    def typical_size(self) -> float | None:
        pulled = norm(self.A.adjoint(self.y)) if self._size_of_y > 0.0 else 0.0
        # The square may be out of the range of numbers.
        return self._size_of_y * (self._size_of_y / pulled) if pulled > 0.0 else None

    def project(self, x: Array) -> Array:
        point = self._nearest_rounded(x)
        if point is not None:
            return point
        y = self._y.beside(x)
        return project_residual_ball(x, self.A, y, self.sigma, tight_frame=self.tight_frame)

    def _nearest_rounded(self, x: Array) -> Array | None:
        """Return a point of the set in the precision of ``x``, as near as rounding allows, by way of double.

        None where rounding keeps every attempt outside. The aim is inside by what the rounding of the last
        attempt put outside: measured, because its bound is often a hundred times as much.
        """
        ball, wide, unit = self.in_double, _widened(x), eps(x)
        if ball is None or ball is self:
            return None
        # An equation (sigma = 0) that holds to the last bit of y is left alone, and with it the zeros of x.
        if ball.violation(wide) <= (4.0 * unit if self.sigma == 0.0 else 0.0):
            return copy(x)
        aim, point = self.sigma, None
        for _ in range(_ATTEMPTS):
            try:
                exact = project_residual_ball(
                    wide, ball.A, ball.y, aim, tight_frame=self.tight_frame
                )
            except InfeasibleError:
                break  # the data may be rounded numbers: whether the ball is empty, single precision says
            point = _as_precise_as(x, exact)
            outside = norm(ball.A.forward(_widened(point)) - ball.y) - self.sigma
            aim -= 2.0 * outside
            if outside <= 0.0 or aim <= 0.0:
                break
        return (
            point if point is not None and ball.violation(_widened(point)) <= 32.0 * unit else None
        )

    def valid_inequality(self, x: Array, weight: float) -> ValidInequality:
        """Return the supporting half-space with the slope of ``weight * c`` at ``x``."""
        image = self.A.forward(x)
        r = image - self._y.beside(image)
        dual = (weight * self.form.slope(norm(r))) * r
        return ValidInequality(self.A.adjoint(dual), self.support_image((dual,)), (dual,))

    def project_image(self, image: Image) -> Image:
        (z,) = image
        y = self._y.beside(z)
        length = norm(z - y)
        return (y + (z - y) * (self.sigma / length),) if length > self.sigma else (1.0 * z,)

    def pullback(self, dual: Image) -> Array:
        return self.A.adjoint(dual[0])

    def support_image(self, dual: Image) -> float:
        """Return ``Re <y, nu> + sigma |nu|``, rounded up: lower bounds rest on it."""
        (nu,) = dual
        y = self._y.beside(nu)
        if isinstance(nu, np.ndarray) and isinstance(y, np.ndarray):
            # Exact numbers of single precision: nothing has to be lost between them.
            y, nu = widened(y), widened(nu)
        length = norm(nu)
        size = self.sigma * length
        value = inner(y, nu) + size
        blur = 8.0 * eps(nu) * (self._size_of_y * length + size)
        exactly = 1e-10 if eps(nu) < 1e-10 else 1e-4
        if blur > exactly * abs(value) and math.isfinite(blur):
            return support_of_ball(to_numpy(y), self.sigma, to_numpy(nu))
        return value + blur
