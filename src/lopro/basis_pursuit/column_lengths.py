"""How long the columns of an operator are, from a few products with random vectors.

For ``w`` with independent entries of mean 0 and variance 1, ``|a_i^H w|^2`` has the mean ``|a_i|^2``.
One such product tells whether the columns are equally long at all: then its entries are Gaussian, whose
fourth moment is known. A dozen of them tell the lengths well enough to choose steps by.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from lopro.core.arrays import Array, asarray_like, is_complex, namespace

__all__ = ["step_lengths"]

#: Products that lengths are estimated from, and how many more would have told that all are equal.
_PRODUCTS, _PRIOR = 16, 2.0
#: Columns are as good as equally long where the mean square of ``|a_i|^2`` is so many times the squared mean.
_EQUAL = 1.2


def step_lengths(adjoint: Callable[[Array], Array], y: Array) -> Array | None:
    """Return for each column what is to its squared length as 1 is to the mean of those.

    None where all columns are about equally long.

    Parameters
    ----------
    adjoint : callable
        The product with ``A^H``.
    y : array
        Of the shape and kind of what it is applied to.

    Examples
    --------
    >>> import numpy as np
    >>> from lopro.basis_pursuit.column_lengths import step_lengths
    >>> A = np.random.default_rng(0).standard_normal((50, 400))
    >>> step_lengths(lambda w: A.T @ w, np.zeros(50)) is None
    True
    >>> A[:, :200] *= 3.0
    >>> lengths = step_lengths(lambda w: A.T @ w, np.zeros(50))
    >>> round(float(lengths[:200].mean()), 1), round(float(lengths[200:].mean()), 1)
    (0.7, 3.7)
    """
    rng = np.random.default_rng(0)  # the same call has the same outcome
    squares = _squares(adjoint, y, rng)
    mean = _mean(squares)
    of_gaussians = 2.0 if is_complex(y) else 3.0
    if not mean > 0.0 or _mean((squares / mean) ** 2) < of_gaussians * _EQUAL:
        return None
    for _ in range(_PRODUCTS - 1):
        squares = squares + _squares(adjoint, y, rng)
    # Chance makes some of them very small.
    return (_PRODUCTS + _PRIOR) / (_PRODUCTS * squares / _mean(squares) + _PRIOR)


def _squares(adjoint: Callable[[Array], Array], y: Array, rng: np.random.Generator) -> Array:
    w = rng.standard_normal(tuple(y.shape))
    if is_complex(y):
        w = (w + 1j * rng.standard_normal(tuple(y.shape))) / np.sqrt(2.0)
    size = namespace(y).abs(adjoint(asarray_like(w, y)))
    return size * size


def _mean(v: Array) -> float:
    return float(namespace(v).mean(v))
