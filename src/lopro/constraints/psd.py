"""The cone of positive semidefinite matrices, through functions of its negative eigenvalues."""

from __future__ import annotations

from functools import cached_property
from typing import Any

import numpy as np
import scipy  # parts of it load when first used

from lopro.certificates import feasibility_tolerance
from lopro.certificates.violation import matrix_units
from lopro.constraints.base import ValidInequality
from lopro.constraints.compact import OwnImage
from lopro.constraints.psd_forms import MinEigenvalue, PSDForm
from lopro.constraints.semidefinite_rows import semidefinite_rows
from lopro.core.arrays import (
    Array,
    Companion,
    asarray_like,
    eps,
    namespace,
    norm,
    to_numpy,
)
from lopro.core.validation import check_count, check_number, check_shape
from lopro.core.vectors import inners, norms
from lopro.engines.cones import ConeRows
from lopro.functions import Ball, Constant, Image, Linearization, Source
from lopro.linalg.eigenvalues import is_above
from lopro.linalg.rounding import gamma
from lopro.projections.psd import (
    adjoint,
    eigenvalues,
    full_spectrum,
    project_psd,
    smallest_eigenpairs,
    symmetric_part,
)
from lopro.projections.tracking import EigenpairTracker, can_follow

__all__ = ["PSDCone"]

#: Number of rows from which a bound of rounding proved by a Cholesky factorisation may replace the least
#: eigenvalue in violations; at 500 rows the factorisation takes 3 ms, the eigenvalues 40 ms.
_LARGE = 1000
#: Accuracy of the eigenpairs that are followed in long loops, relative to the larger of the least
#: eigenvalue and the root mean square of all: one product for each step while matrices change little. Table
#: 2 of the paper is measured with it.
FOLLOWED = 0.1


class PSDCone(OwnImage):
    r"""The symmetric (or Hermitian) matrices without negative eigenvalues.

    Parameters
    ----------
    dim : int
        Number of rows.
    form : MinEigenvalue, KyFan, NegativeSum or Distance
        Which function ``c`` describes the set at points outside. Inside, every form is
        ``-lambda_min``, minus the distance to the boundary.
    accuracy : float
        0 requires exact eigenpairs. With a positive number below 1, forms that need few of them update those
        of the previous call for large matrices that change little (`EigenpairTracker`). The steps of the
        paper's methods do that in any case, unless a theorem makes a statement on the steps.

    Notes
    -----
    Points must be symmetric up to rounding; an asymmetry above ``1e-8`` relative is an error.
    The smallest eigenpairs of large NumPy matrices come from a Lanczos run that starts at those of
    the previous call.

    With ``accuracy > 0`` values and slopes depend on the calls before, within that accuracy. Values are
    then never above ``c``, and slopes are eps-subgradients (``-lambda_min(Y) >= -u'Y u`` for any unit ``u``):
    subgradient methods lose eps, certificates nothing. `violation` and `project` are exact in any case.

    Departures
    ----------
    The paper has the first form only, and its ``rho = 1/sqrt(r)`` holds uniformly with ``r = d``.
    Continuing the other forms by ``-lambda_min`` inside keeps them convex (each is the support
    function of ``{U psd : tr U >= 1, ...}`` at ``-X``) with the same constants, and gives them
    points with ``c < 0``.

    Examples
    --------
    >>> import numpy as np, lopro.constraints as lc
    >>> cone = lc.PSDCone(2)
    >>> cone.value(np.diag([2.0, -1.0])), cone.value(np.eye(2))
    (1.0, -1.0)
    >>> cone.project(np.diag([2.0, -1.0]))
    array([[2., 0.],
           [0., 0.]])
    """

    is_semidefinite = True

    def __init__(self, dim: int, form: PSDForm | None = None, accuracy: float = 0.0) -> None:
        self.dim = check_count("dim", dim)
        self.form: PSDForm = MinEigenvalue() if form is None else form
        if not isinstance(self.form, PSDForm):
            raise TypeError(
                f"form must be MinEigenvalue(), KyFan(k), NegativeSum() or Distance(), got {form!r}"
            )
        self.shape = (self.dim, self.dim)
        self.accuracy = check_number("accuracy", accuracy, minimum=0.0, maximum=1.0)
        self._start: Array | None = None
        k = self.form.pairs(self.dim)
        if k is not None and k > self.dim:
            raise ValueError(f"k must be at most dim={self.dim}, got {k}")
        follows = k is not None and self.accuracy > 0.0
        self._tracker = EigenpairTracker(k or 1, self.accuracy) if follows else None
        self.approximate = follows

    def __repr__(self) -> str:
        accuracy = f", accuracy={self.accuracy:g}" if self.accuracy > 0.0 else ""
        return f"PSDCone({self.dim}, form={self.form!r}{accuracy})"

    def followed(self) -> PSDCone:
        k = self.form.pairs(self.dim)
        if self.approximate or k is None or not can_follow(k, self.dim):
            return self
        return PSDCone(self.dim, self.form, FOLLOWED)

    # The function.

    def value(self, x: Array) -> float:
        return self.linearize_at((x,))[0]

    def subgradient(self, x: Array) -> Array:
        return self.linearize_at((x,))[1]()

    def linearize_at(self, image: Image) -> Linearization:
        (x,) = image
        self._check_symmetric(x)
        values, vectors = self._lowest(x)
        depths = -np.asarray(to_numpy(values), dtype=np.float64)
        if depths[0] <= 0.0:
            c, weights = float(depths[0]), np.ones(1)
        else:
            c, weights = self.form.weigh(depths[depths > 0.0])
        used = vectors[:, : len(weights)]
        scaled = used * asarray_like(-weights, used)
        one = len(weights) == 1  # the elementwise product is faster and has the same entries
        return c, lambda: scaled * adjoint(used) if one else scaled @ adjoint(used)

    def _lowest(self, x: Array) -> tuple[Array, Array]:
        k = self.form.pairs(self.dim)
        if k is None:
            return full_spectrum(symmetric_part(x))
        followed = self._tracker.smallest(x) if self._tracker is not None else None
        if followed is not None:
            return followed
        start = self._start if self._start is not None and self._start.dtype == x.dtype else None
        values, vectors = smallest_eigenpairs(x, k, start)
        # The start of the next run, which affects only its speed.
        if isinstance(vectors, np.ndarray):
            self._start = vectors.sum(axis=1)
        return values, vectors

    @cached_property
    def _probe(self) -> Companion:
        """A random vector whose products reveal asymmetry."""
        return Companion(np.random.default_rng(self.dim).standard_normal(self.dim))

    def _check_symmetric(self, x: Array) -> None:
        check_shape("x", x, (self.dim, self.dim))
        allowed = max(1e-8, 1e2 * eps(x))
        if self.dim <= 64:
            skew, whole = x - adjoint(x), x
        else:
            # (X - X^H) v has the expected length |X - X^H|_F for a random v. Two products take
            # the place of passes over whole matrices, which would dominate the time of a step.
            v = self._probe.beside(x)
            forward = x @ v
            skew, whole = forward - adjoint(adjoint(v[:, None]) @ x)[:, 0], forward
        # One transfer from a device, unless squares over- or underflow.
        square, of_whole = inners((skew, skew), (whole, whole))
        if 1e-20 < of_whole < 1e30 and square <= allowed**2 * of_whole:
            return
        asymmetry, size = norms(skew, whole)
        if asymmetry > allowed * size:
            raise ValueError(
                f"x must be symmetric (Hermitian), but |x - x^H| / |x| = {asymmetry / size:.3g}"
            )

    def lipschitz(self, ball: Ball | None = None) -> Constant | None:
        return Constant(self.form.lipschitz(self.dim), Source.DERIVED, f"{self.form!r}")

    def regularity(self) -> Constant | None:
        return Constant(self.form.regularity(self.dim), Source.DERIVED, f"{self.form!r}")

    # The geometry of the set.

    def violation(self, x: Array) -> float:
        """Return minus the least eigenvalue in units of the diagonal; a bound of rounding for large matrices.

        See `lopro.certificates.violation.matrix_units`. A Cholesky factorisation takes a tenth of the time
        of eigenvalues; it proves that none is negative, or none beyond rounding.
        """
        self._check_symmetric(x)
        S = symmetric_part(_without_zero_rows(x))
        host = isinstance(S, np.ndarray) and S.dtype == np.float64
        if host and is_above(S, 0.0):
            return 0.0
        xp = namespace(S)
        largest = float(xp.max(xp.abs(S)))
        if largest == 0.0:
            return 0.0
        d = asarray_like(matrix_units(to_numpy(xp.abs(xp.linalg.diagonal(S))), largest), S)
        S = S / (d[:, None] * d)
        if host and len(S) >= _LARGE:
            blur = 4.0 * gamma(len(S) + 2) * float(np.abs(S.diagonal()).sum())
            if blur <= feasibility_tolerance(x) and is_above(S, -blur):
                return blur
        return max(0.0, -float(eigenvalues(S)[0]))

    def rows_on_matrices(self, n: int) -> tuple[Any, Any, Any]:
        return scipy.sparse.csr_array((0, n * n)), np.zeros(0), np.zeros(0)

    def conic_form(self, complex_points: bool = False) -> list[ConeRows]:
        return semidefinite_rows(self.dim, complex_points)

    def project(self, x: Array) -> Array:
        self._check_symmetric(x)
        return project_psd(x)

    def project_image(self, image: Image) -> Image:
        # Symmetry is not checked: near the origin the image may be smaller than the rounding of the terms
        # it is the difference of. Its symmetric part is projected.
        return (project_psd(image[0]),)

    def valid_inequality(self, x: Array, weight: float) -> ValidInequality:
        """Return minus a psd matrix: its product with every member of the cone is at most 0."""
        return ValidInequality(weight * self.subgradient(x), 0.0)

    def into_domain(self, dual: Image) -> Image:
        """Return the dual minus a multiple of the identity that removes eigenvalues positive by rounding."""
        V = symmetric_part(dual[0])
        largest = -float(eigenvalues(-V)[0]) + (self.dim + 8) * eps(V) * norm(V)
        if largest <= 0.0:
            return dual
        return (V - largest * asarray_like(np.eye(self.dim), V),)

    def support_image(self, dual: Image) -> float:
        return 0.0


def _without_zero_rows(x: Array) -> Array:
    """Return a matrix without its zero rows and columns but one, which has the same set of eigenvalues."""
    if not isinstance(x, np.ndarray):
        return x
    rows = x.any(axis=1)
    if np.count_nonzero(rows) >= len(x) - 1:
        return x
    # Columns outside of these rows are zero: one pass over the matrix suffices.
    kept = np.flatnonzero(rows | x[rows].any(axis=0))
    if len(kept) >= len(x) - 1:
        return x
    dropped = np.setdiff1d(np.arange(len(x)), kept)[:1]
    kept = np.concatenate([kept, dropped])
    return x[np.ix_(kept, kept)]
