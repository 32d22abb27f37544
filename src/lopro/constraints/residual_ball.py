"""The residual ball ``{x : |A x - y| <= sigma}``, squared as in the paper or as a plain norm."""

from __future__ import annotations

import math
from functools import cached_property
from typing import Any

import numpy as np
import scipy  # parts of it load when first used

from lopro.certificates.violation import ball_size
from lopro.constraints.base import ValidInequality
from lopro.constraints.pulled_back import pulled_back
from lopro.constraints.residual_forms import ResidualForm, ResidualNorm, SquaredResidual
from lopro.constraints.residual_geometry import ResidualGeometry
from lopro.constraints.shapes import ShapedPoints, checked_point_shape
from lopro.core.arrays import (
    Array,
    Companion,
    as_complex,
    asarray_like,
    copy,
    eps,
    from_numpy,
    inner,
    is_complex,
    is_single,
    norm,
    to_numpy,
)
from lopro.core.exact import support_of_ball
from lopro.core.real_vectors import Vector, to_real_vector
from lopro.core.validation import check_array, check_number, check_shape
from lopro.engines.cones import ConeRows, Zero, active_cone, ball_rows
from lopro.errors import InfeasibleError
from lopro.functions import Ball, Constant, Image, Linearization, MappedFunction, Source, atoms
from lopro.functions.cone_program import real_matrix, real_vector
from lopro.functions.term import Term
from lopro.maps import SparseMap, linear_map
from lopro.maps.algebra import widened
from lopro.maps.copied import CopiedMap
from lopro.maps.host import host_vector
from lopro.projections.halfspaces import HalfSpaces
from lopro.projections.newton import Equation
from lopro.projections.residual_ball import project_residual_ball
from lopro.projections.rounded import nearest_rounded

__all__ = ["FEW_COLUMNS", "ResidualBall"]

#: A product with a matrix of this size takes less than a millisecond.
_SMALL_BYTES = 2**20
#: Columns of an operator that may all be computed, and rows or columns up to which a matrix is factorised to
#: determine its geometry: 20 * 300^3 operations, 5 ms.
FEW_COLUMNS = 300
#: Entries of a matrix in single precision that is held in double precision as well.
_HELD_TWICE = 10**6

#: Equations with up to so many entries are projected on as rows.
_SMALL_EQUATIONS = 100_000


class ResidualBall(ResidualGeometry, MappedFunction, ShapedPoints):
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
    shape : tuple of int, optional
        Shape of the points where they are not vectors, as of matrices and images: ``A`` acts on
        ``x.ravel()``, and ``y`` may have any shape with one number for each row.
    tight_frame : float, optional
        ``c`` where ``A A^H = c I`` is known of an operator: the projection becomes one formula.

    Notes
    -----
    With the least-squares residual ``e`` and the smallest nonzero singular value ``s``, rho is
    ``2 s sqrt(sigma^2 - e^2)`` for the square and ``s sqrt(sigma^2 - e^2) / sigma`` for the norm.
    Both are attained at the boundary, along the singular direction of ``s``.

    Departures
    ----------
    The paper prints half of the first constant and requires full row rank.

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

    Images near another one:

    >>> near = lc.ResidualBall(np.eye(4), np.zeros((2, 2)), 1.0, shape=(2, 2))
    >>> near.project(np.array([[3.0, 0.0], [0.0, 4.0]])).round(9)
    array([[0.6, 0. ],
           [0. , 0.8]])
    """

    has_image_set = True

    def __init__(
        self,
        A: Any,
        y: Any,
        sigma: float,
        form: ResidualForm | None = None,
        *,
        shape: Any = None,
        tight_frame: float | None = None,
    ) -> None:
        self.A = linear_map(A, "A")
        given = to_numpy(check_array("y", y, ndim=1 if shape is None else None))
        self.y = copy(from_numpy(given.reshape(-1), self.A.like))
        check_shape("y", self.y, (self.A.shape[0],))
        self.sigma = check_number("sigma", sigma, minimum=0.0)
        self.form: ResidualForm = SquaredResidual() if form is None else form
        if not isinstance(self.form, (SquaredResidual, ResidualNorm)):
            raise TypeError(f"form must be SquaredResidual() or ResidualNorm(), got {form!r}")
        # The norm has a kink where A x = y, the centre of the set, and nowhere else.
        self.smooth = isinstance(self.form, SquaredResidual) or self.sigma > 0.0
        self.shape = checked_point_shape(shape, self.A)
        self._y = Companion(self.y)
        self._size_of_y = norm(self.y)
        # Points are complex as soon as either A or y is.
        self.like = as_complex(self.A.like) if is_complex(self.y) else self.A.like
        self.tight_frame = tight_frame
        if tight_frame is not None:
            self.tight_frame = check_number("tight_frame", tight_frame, minimum=0.0, exclusive=True)
            self._check_tight_frame(self.tight_frame)

    def __repr__(self) -> str:
        return f"ResidualBall(A={self.A!r}, sigma={self.sigma:g}, form={self.form!r})"

    def _check_tight_frame(self, c: float) -> None:
        """Check ``A A^H u = c u`` for one random ``u``: a wrong factor would give wrong projections."""
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
        return (self.A.forward(self._vector(x)),)

    def linearize_at(self, image: Image) -> Linearization:
        r = image[0] - self._y.beside(image[0])
        length = norm(r)
        c = self.form.value(length, self.sigma)
        return c, lambda: self._point(self.A.adjoint(self.form.slope(length) * r))

    def lipschitz(self, ball: Ball | None = None) -> Constant | None:
        largest = self.largest_singular_value
        if isinstance(self.form, ResidualNorm):
            return largest
        if ball is None:
            return None
        r = norm(self.image(ball.center)[0] - self._y.beside(ball.center))
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
        if isinstance(self.A, SparseMap) and min(self.A.shape) > FEW_COLUMNS:
            return None  # its spectrum would be that of a dense matrix
        if not (tall and self.A.explicit and self.A.full_column_rank and self._smallest > 0.0):
            return None
        s, U = self.A.left_spectrum
        centre = norm(self.A.adjoint(U @ (self._coordinates() / s)))
        value = (centre + self._inner_radius / self._smallest) * (1.0 + 1e3 * eps(self.y))
        return Constant(value, Source.DERIVED, "least-squares solution, smallest singular value")

    def infeasibility(self) -> str | None:
        # Above this size the factorisation costs more than many solves without it; a projection
        # finds an empty set, if there is one. Data that are not in memory are not read for it.
        if min(self.A.shape) > FEW_COLUMNS or not self.A.in_memory or not self.is_empty:
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
        return ResidualBall(A, self.y, self.sigma, self.form, shape=self.shape)

    @property
    def in_double(self) -> ResidualBall | None:
        """The same ball in double precision (itself, where it is); None where A is large or not in memory.

        Rounding in a residual is as large as ``eps |A| |x|``. Where sigma is small beside that, or the
        least-squares residual close to sigma, single precision cannot locate the boundary.
        """
        A = self.A
        if not isinstance(A.like, np.ndarray) or (A.explicit and not A.in_memory):
            return None
        if not is_single(A.like) and not is_single(self.y):
            return self
        return self._widened

    @cached_property
    def _widened(self) -> ResidualBall | None:
        """A copy in double precision; None where A is large or not in memory."""
        A, y = self.A, self.y
        if math.prod(A.shape) > _HELD_TWICE or not self.as_matrix.A.explicit:
            return None
        return ResidualBall(
            widened(self.as_matrix.A.matrix),
            widened(to_numpy(y)),
            self.sigma,
            self.form,
            shape=self.shape,
        )

    @property
    def _judged_in_double(self) -> bool:
        """Whether points are judged in double precision rather than in their own."""
        return self.A.explicit and self.in_double is not None and self.in_double is not self

    def violation(self, x: Array) -> float:
        return self.violation_at(x, () if self._judged_in_double else self.image(x))

    def violation_at(self, x: Array, image: Image) -> float:
        if self._judged_in_double and self.in_double is not None:
            return self.in_double.violation(widened(to_numpy(x)))
        excess = norm(image[0] - self._y.beside(image[0])) - self.sigma
        if excess <= 0.0:
            return 0.0
        size = ball_size(self.sigma, self._size_of_y, lambda: self._size_of_products(x, image[0]))
        return excess / size

    def absolute_violation(self, x: Array) -> float:
        (image,) = self.image(x)
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
        if self.in_double is not None and self.in_double is not self:
            point = self.in_double.project_rounded(x)
            if point is not None:
                return point
        v, y = self._vector(x), self._y.beside(x)
        return self._point(
            project_residual_ball(v, self.A, y, self.sigma, tight_frame=self.tight_frame)
        )

    def project_rounded(self, x: Array) -> Array | None:
        """Return the projection in the precision of ``x``, where this set is in double precision.

        None where rounding keeps every attempt outside.
        """
        wide, unit = widened(to_numpy(x)), eps(x)
        # An equation (sigma = 0) that holds to the last bit of y is left alone, and with it the zeros of x.
        if self.violation(wide) <= (4.0 * unit if self.sigma == 0.0 else 0.0):
            return copy(x)
        nearest = nearest_rounded(self._vector(x), self.A, self.y, self.sigma)
        if nearest is None:
            return None
        point = self._point(nearest)
        return None if self.violation(widened(to_numpy(point))) > 32.0 * unit else point

    @property
    def cone_rows(self) -> ConeRows | None:
        """Rows of a ball with a matrix; equations and complex balls have none."""
        if is_complex(self.like) or self.sigma == 0.0 or not self.A.explicit:
            return None
        A = self.A.matrix if scipy.sparse.issparse(self.A.matrix) else to_numpy(self.A.matrix)
        return ball_rows(A.astype(np.float64), to_real_vector(self.y), self.sigma)

    def conic_form(self, complex_points: bool = False) -> list[ConeRows]:
        A, y = real_matrix(self.A, complex_points), real_vector(self.y, complex_points)
        if self.sigma == 0.0:
            return [ConeRows(scipy.sparse.csc_matrix(A), y, Zero(len(y)))]
        return [ball_rows(A, y, self.sigma)]

    @property
    def as_halfspaces(self) -> HalfSpaces | None:
        """Rows of equations with a small matrix."""
        if self.sigma > 0.0 or is_complex(self.like) or not self.A.explicit:
            return None
        if math.prod(self.A.shape) > _SMALL_EQUATIONS:
            return None
        matrix, y = to_numpy(self.A.toarray()), to_numpy(self.y)
        try:
            return HalfSpaces.from_system(np.vstack([matrix, -matrix]), np.concatenate([y, -y]))
        except InfeasibleError:  # a row of zeros; other proofs say how far from empty that is
            return None

    def boundary(self, near: Vector, slack: Vector, multiplier: Vector) -> list[Equation]:
        """Return ``|A z - y|^2 = sigma^2``, divided by ``2 sigma`` to give the slope the size of A."""
        if not active_cone(slack, multiplier):
            return []
        A, y = to_numpy(self.A.toarray()), to_real_vector(self.y)
        scale = 1.0 / (2.0 * self.sigma)

        def value(z: Vector) -> float:
            length = float(np.linalg.norm(A @ z - y))
            return scale * (length - self.sigma) * (length + self.sigma)

        return [Equation(value, lambda z: (2.0 * scale) * (A.T @ (A @ z - y)))]

    def valid_inequality(self, x: Array, weight: float) -> ValidInequality:
        """Return the supporting half-space with the slope of ``weight * c`` at ``x``."""
        (image,) = self.image(x)
        r = image - self._y.beside(image)
        dual = (weight * self.form.slope(norm(r))) * r
        return pulled_back(self, (dual,), x, (image,))

    def project_image(self, image: Image) -> Image:
        (z,) = image
        y = self._y.beside(z)
        length = norm(z - y)
        return (y + (z - y) * (self.sigma / length),) if length > self.sigma else (1.0 * z,)

    def pullback(self, dual: Image) -> Array:
        return self._point(self.A.adjoint(dual[0]))

    def support_image(self, dual: Image) -> float:
        """Return ``Re <y, nu> + sigma |nu|``, rounded up: lower bounds rest on it."""
        (nu,) = dual
        y = self._y.beside(nu)
        if isinstance(nu, np.ndarray) and isinstance(y, np.ndarray):
            # Products of single precision numbers are exact in double precision.
            y, nu = widened(y), widened(nu)
        length = norm(nu)
        size = self.sigma * length
        value = inner(y, nu) + size
        blur = 8.0 * eps(nu) * (self._size_of_y * length + size)
        exactly = 1e-10 if eps(nu) < 1e-10 else 1e-4
        if blur > exactly * abs(value) and math.isfinite(blur):
            return support_of_ball(to_numpy(y), self.sigma, to_numpy(nu))
        return value + blur
