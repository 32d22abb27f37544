"""The residual ball ``{x : |A x - y| <= sigma}``, squared as in the paper or as a plain norm."""

from __future__ import annotations

import math
from functools import cached_property
from typing import Any, Self

import numpy as np

from lopro.certificates.violation import ball_size
from lopro.constraints.base import ValidInequality
from lopro.constraints.pulled_back import pulled_back
from lopro.constraints.residual_forms import ResidualForm, ResidualNorm, SquaredResidual
from lopro.constraints.residual_geometry import FEW_COLUMNS, ResidualGeometry
from lopro.constraints.residual_rows import ResidualRows
from lopro.constraints.shapes import checked_point_shape
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
    norm,
    to_numpy,
)
from lopro.core.exact import support_of_ball
from lopro.core.validation import check_array, check_number, check_shape
from lopro.functions import Image, Linearization, atoms
from lopro.functions.term import Term
from lopro.maps import linear_map
from lopro.maps.algebra import widened
from lopro.maps.host import host_vector
from lopro.projections.residual_ball import project_residual_ball
from lopro.projections.rounded import nearest_rounded

__all__ = ["FEW_COLUMNS", "ResidualBall"]


class ResidualBall(ResidualGeometry, ResidualRows):
    r"""The set ``{x : |A x - y|_2 <= sigma}``.

    Parameters
    ----------
    A : array, scipy.sparse matrix, LinearOperator or LinearMap
        For operators projections use a Krylov method, and the constants are estimates.
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
        ``c`` with ``A A^H = c I``, if an operator is known to have one: the projection is then a formula.

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

    Images near a given one:

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
        # The norm has a kink where A x = y, which is in the interior of the set for sigma > 0.
        self.smooth = self.form.smooth or self.sigma > 0.0
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

    def _with_data(self, A: Any, y: Any) -> Self:
        return type(self)(A, y, self.sigma, self.form, shape=self.shape)

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

    @property
    def _measured_in_double(self) -> bool:
        """Whether violations are computed in double precision for points in single precision."""
        return self.A.explicit and self.in_double is not None and self.in_double is not self

    def violation(self, x: Array) -> float:
        return self.violation_at(x, () if self._measured_in_double else self.image(x))

    def violation_at(self, x: Array, image: Image) -> float:
        if self._measured_in_double and self.in_double is not None:
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
        """Return ``|x|`` times a lower bound of the norm of A, the unit of violations of ``A x = 0``."""
        return norm(x) * norm(self.A.adjoint(image)) / norm(image)

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
        """Return the projection of a point in single precision on this set in double precision.

        None where the rounded result of every attempt is outside.
        """
        wide, unit = widened(to_numpy(x)), eps(x)
        # Where an equation (sigma = 0) holds to the rounding of y, x is returned: its zeros stay zeros.
        if self.violation(wide) <= (4.0 * unit if self.sigma == 0.0 else 0.0):
            return copy(x)
        nearest = nearest_rounded(self._vector(x), self.A, self.y, self.sigma)
        if nearest is None:
            return None
        point = self._point(nearest)
        return None if self.violation(widened(to_numpy(point))) > 32.0 * unit else point

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
        """Return ``Re <y, nu> + sigma |nu|``, rounded up, because lower bounds rest on it."""
        (nu,) = dual
        y = self._y.beside(nu)
        if isinstance(nu, np.ndarray) and isinstance(y, np.ndarray):
            # Products of numbers in single precision are exact in double precision.
            y, nu = widened(y), widened(nu)
        length = norm(nu)
        size = self.sigma * length
        value = inner(y, nu) + size
        blur = 8.0 * eps(nu) * (self._size_of_y * length + size)
        exactly = 1e-10 if eps(nu) < 1e-10 else 1e-4
        if blur > exactly * abs(value) and math.isfinite(blur):
            return support_of_ball(to_numpy(y), self.sigma, to_numpy(nu))
        return value + blur
