"""Symmetric matrices: the nearest positive semidefinite one, and the smallest eigenpairs."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy  # parts of it load when first used

from lopro.core.arrays import Array, eps, is_complex, is_single, namespace, norm
from lopro.core.counting import count
from lopro.core.deadline import EIGH, current_deadline
from lopro.errors import ProjectionError

__all__ = [
    "eigenvalues",
    "full_spectrum",
    "project_psd",
    "smallest_eigenpairs",
    "symmetric_part",
]

#: Number of rows from which, and share of the rows up to which, eigenpairs are computed by Lanczos's
#: method. One pair takes 1.1 ms by Lanczos and 0.7 ms densely at 100 rows, 1.4 and 2.8 ms at 200; 0.06 of
#: the pairs take 11 and 16 ms at 400 rows, 65 and 88 ms at 800; 0.12 of them 135 and 88 ms.
_LANCZOS_FROM = 200
_LANCZOS_SHARE = 0.06


def adjoint(X: Array) -> Array:
    """Return the conjugate transpose."""
    return namespace(X).conj(X).T if is_complex(X) else X.T


def symmetric_part(X: Array) -> Array:
    """Return ``(X + X^H) / 2``.

    Examples
    --------
    >>> import numpy as np
    >>> from lopro.projections.psd import symmetric_part
    >>> symmetric_part(np.array([[1.0, 2.0], [0.0, 1.0]]))
    array([[1., 1.],
           [1., 1.]])
    """
    return 0.5 * (X + adjoint(X))


def full_spectrum(X: Array) -> tuple[Array, Array]:
    """Return all eigenvalues (ascending) and eigenvectors of a symmetric matrix.

    Examples
    --------
    >>> import numpy as np
    >>> from lopro.projections.psd import full_spectrum
    >>> full_spectrum(np.diag([2.0, -1.0]))[0]
    array([-1.,  2.])
    """
    count("eigendecompositions")
    values, vectors = _decomposed("eigh", X)
    return values, vectors


def eigenvalues(X: Array) -> Array:
    """Return all eigenvalues of a symmetric matrix, ascending.

    Examples
    --------
    >>> import numpy as np
    >>> from lopro.projections.psd import eigenvalues
    >>> eigenvalues(np.diag([2.0, -1.0]))
    array([-1.,  2.])
    """
    count("eigendecompositions")
    return _decomposed("eigvalsh", X)


def _need_spectrum(X: Array) -> None:
    """Raise `OutOfTime` unless there is time to decompose a matrix of this size on the host."""
    if isinstance(X, np.ndarray):
        current_deadline().need(EIGH * float(X.shape[0]) ** 3)


def _decomposed(name: str, X: Array) -> Any:
    """Call an eigenvalue solver of the array library, in double precision where single precision fails.

    In single precision LAPACK may not converge for matrices with many equal eigenvalues.
    """
    _need_spectrum(X)
    xp = namespace(X)
    solver = getattr(xp.linalg, name)
    try:
        return solver(X)
    except (np.linalg.LinAlgError, RuntimeError) as error:  # PyTorch's error is a RuntimeError
        if not is_single(X):
            raise ProjectionError(f"the eigenvalue solver failed: {error}") from error
        found = solver(xp.astype(X, xp.complex128 if is_complex(X) else xp.float64))
    if name == "eigvalsh":
        return xp.astype(found, xp.float32)
    return xp.astype(found[0], xp.float32), xp.astype(found[1], X.dtype)


def project_psd(X: Array) -> Array:
    """Return the positive semidefinite matrix nearest to the symmetric part of ``X``.

    The result is computed from the positive or from the negative eigenpairs, whichever are
    fewer.

    Examples
    --------
    >>> import numpy as np
    >>> from lopro.projections.psd import project_psd
    >>> project_psd(np.diag([2.0, -1.0]))
    array([[2., 0.],
           [0., 0.]])
    """
    _need_spectrum(X)  # before the first pass over a large matrix
    X = symmetric_part(X)
    values, vectors = full_spectrum(X)
    xp = namespace(X)
    negative = int(xp.count_nonzero(values < 0.0))
    if negative == 0:
        return X
    if 2 * negative <= X.shape[0]:
        V = vectors[:, :negative]
        return symmetric_part(X - (V * values[:negative]) @ adjoint(V))
    V = vectors[:, negative:]
    return symmetric_part((V * values[negative:]) @ adjoint(V))


def smallest_eigenpairs(X: Array, k: int, start: Array | None = None) -> tuple[Array, Array]:
    """Return the ``k`` smallest eigenvalues (ascending) and eigenvectors of a symmetric matrix.

    Parameters
    ----------
    X : array
        Symmetric or Hermitian; only its products and, in dense decompositions, one triangle are used.
    k : int
        Number of pairs.
    start : ndarray, optional
        Start of a Lanczos run: a vector near the eigenvectors saves time. The result depends on it
        only by rounding.

    Notes
    -----
    Large NumPy matrices are passed to ARPACK. The residual of each pair is checked; if one is too
    large, the dense decomposition is used.

    Examples
    --------
    >>> import numpy as np
    >>> from lopro.projections.psd import smallest_eigenpairs
    >>> smallest_eigenpairs(np.diag([2.0, -1.0, 5.0]), 2)[0]
    array([-1.,  2.])
    """
    d = X.shape[0]
    if isinstance(X, np.ndarray) and d >= _LANCZOS_FROM and k <= _LANCZOS_SHARE * d:
        pairs = _lanczos(X, k, start)
        if pairs is not None:
            return pairs
    values, vectors = full_spectrum(X)
    return values[:k], vectors[:, :k]


def _lanczos(
    X: np.ndarray[Any, Any], k: int, start: Array | None
) -> tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]] | None:
    """Run ARPACK and check the residuals; None if the check fails."""
    count("eigenpairs", k)
    unit = eps(X)
    try:
        values, vectors = scipy.sparse.linalg.eigsh(
            X,
            k=k,
            which="SA",
            v0=_perturbed(start, X),
            ncv=max(3 * k + 1, 40),
            maxiter=40,
            tol=4.0 * unit**0.75,
        )
    except scipy.sparse.linalg.ArpackError:
        return None
    order = np.argsort(values)
    values, vectors = values[order], vectors[:, order]
    residuals = np.linalg.norm(X @ vectors - vectors * values, axis=0)
    drift = np.abs(np.linalg.norm(vectors, axis=0) - 1.0)
    accurate = residuals.max() <= 1e3 * unit**0.75 * norm(X) and drift.max() <= 1e-4
    return (values, vectors) if accurate else None


def _perturbed(start: Array | None, X: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """Add a fixed random vector to the start, so that no eigenvector is orthogonal to it."""
    rng = np.random.default_rng(X.shape[0])
    noise = rng.standard_normal(X.shape[0]).astype(X.dtype)
    noise /= np.linalg.norm(noise)
    if start is None:
        return np.asarray(noise)
    return np.asarray(start / norm(start) + 0.1 * noise, dtype=X.dtype)
