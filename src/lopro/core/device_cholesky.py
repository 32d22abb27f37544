"""Cholesky factors of matrices on a device, by the triangular solves of each library."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from array_api_compat import is_cupy_array, is_jax_array, is_torch_array

from lopro.core.arrays import Array, from_numpy, isfinite, namespace, to_numpy
from lopro.core.diagonals import diagonal_of

__all__ = [
    "DeviceFactor",
    "can_factor_on_device",
    "device_factor",
    "factor_of_definite",
    "inverses_of_definite",
    "solve_many_definite",
]


@dataclass(frozen=True)
class DeviceFactor:
    """The Cholesky factor of a matrix on a device; solves for vectors on the host.

    ``pivots``, the squares of the diagonal of the factor, are on the device; they are NaN where there is no
    factor, so that a factorisation and the test of its pivots take one device-to-host transfer.
    """

    matrix: Array
    pivots: Array
    _solve: Callable[[Array], Array]

    def solve(self, right: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
        """Return the solution for a vector, or for the columns of a block."""
        return to_numpy(self._solve(from_numpy(right, self.matrix)))

    def loses(self, share: float) -> bool:
        """Whether a pivot is NaN or below this share of its diagonal entry of the matrix."""
        return not bool(namespace(self.matrix).all(self.pivots > share * diagonal_of(self.matrix)))

    @property
    def spread(self) -> float:
        """The smallest pivot as a share of the largest; NaN without a factor."""
        xp = namespace(self.pivots)
        return float(xp.min(self.pivots) / xp.max(self.pivots))


def can_factor_on_device(G: Array) -> bool:
    """Whether `device_factor` supports the library of a matrix."""
    return is_torch_array(G) or is_jax_array(G) or is_cupy_array(G)


def device_factor(G: Array) -> DeviceFactor | None:
    """Return the Cholesky factor of a symmetric matrix; None for a library that is not supported.

    A matrix that is not definite has no factor, or one with a pivot that is NaN or small.

    Examples
    --------
    >>> import array_api_strict
    >>> from lopro.core.device_cholesky import device_factor
    >>> device_factor(array_api_strict.eye(2)) is None
    True
    """
    if is_torch_array(G):
        import torch

        factor, info = torch.linalg.cholesky_ex(G)
        return DeviceFactor(
            G,
            torch.where(info == 0, diagonal_of(factor) ** 2, torch.nan),
            lambda b: torch.cholesky_solve(b.reshape(len(b), -1), factor).reshape(b.shape),
        )
    if is_jax_array(G):
        import jax.scipy.linalg as linear

        factor = linear.cholesky(G, lower=True)
        pivots = diagonal_of(factor) ** 2
        return DeviceFactor(G, pivots, lambda b: linear.cho_solve((factor, True), b))
    if is_cupy_array(G):
        import cupy
        import cupyx
        from cupyx.scipy.linalg import solve_triangular

        try:
            with cupyx.errstate(linalg="raise"):
                factor = cupy.linalg.cholesky(G)
        except np.linalg.LinAlgError:
            return None
        return DeviceFactor(
            G,
            diagonal_of(factor) ** 2,
            lambda b: solve_triangular(
                factor, solve_triangular(factor, b, lower=True), lower=True, trans="T"
            ),
        )
    return None


def factor_of_definite(A: Array) -> Array | None:
    """Return the lower Cholesky factor of a symmetric matrix, or None if it is not positive definite.

    Examples
    --------
    >>> import numpy as np
    >>> from lopro.core.device_cholesky import factor_of_definite
    >>> factor_of_definite(np.array([[4.0]])), factor_of_definite(np.array([[-4.0]])) is None
    (array([[2.]]), True)
    """
    if is_torch_array(A):
        import torch

        factor, info = torch.linalg.cholesky_ex(A)
        return factor if int(info) == 0 else None
    try:
        found = namespace(A).linalg.cholesky(A)
    except np.linalg.LinAlgError:
        return None
    return found if isfinite(found) else None  # JAX returns NaN


def solve_many_definite(H: Array, right: Array) -> Array:
    """Return the solutions of many positive definite systems, each with the columns of a block.

    The result of a matrix that is not definite is NaN or meaningless.

    Examples
    --------
    >>> import numpy as np
    >>> from lopro.core.device_cholesky import solve_many_definite
    >>> solve_many_definite(np.array([[[2.0]], [[4.0]]]), np.ones((2, 1, 1)))[:, 0, 0]
    array([0.5 , 0.25])
    """
    if is_torch_array(H):
        import torch

        factor, info = torch.linalg.cholesky_ex(H)
        found = torch.cholesky_solve(right, factor)
        return torch.where((info == 0)[:, None, None], found, torch.nan)
    xp = namespace(H)
    try:
        return xp.linalg.solve(H, right)
    except np.linalg.LinAlgError:
        return xp.full_like(right, float("nan"))


def inverses_of_definite(K: Array, shift: float) -> Array:
    """Return the inverses of positive definite matrices, with ``shift`` on the diagonal of singular ones.

    PyTorch's own inverse exchanges rows: for 50,000 matrices of 50 rows its factors, solves and permutations
    took more than half of the time of an interior point step on an H200.

    Examples
    --------
    >>> import numpy as np
    >>> from lopro.core.device_cholesky import inverses_of_definite
    >>> inverses_of_definite(np.array([[[2.0]], [[4.0]]]), 1e-6)[:, 0, 0]
    array([0.5 , 0.25])
    """
    xp = namespace(K)
    eye = from_numpy(np.eye(K.shape[-1]), K)
    if is_torch_array(K):
        import torch

        factor, info = torch.linalg.cholesky_ex(K)
        if bool((info != 0).any()):
            shifted, _ = torch.linalg.cholesky_ex(K + shift * eye)
            factor = torch.where((info == 0)[:, None, None], factor, shifted)
        inverse = torch.linalg.solve_triangular(factor, eye.expand(K.shape), upper=False)
        return inverse.mT @ inverse
    try:
        return xp.linalg.inv(K)
    except np.linalg.LinAlgError:
        return xp.linalg.inv(K + shift * eye)
