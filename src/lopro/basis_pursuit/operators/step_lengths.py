"""Step lengths of proximal gradient steps: one for each column of an operator, and an exact line search.

The lengths of the columns of an operator are estimated from a few products with random vectors: for ``w``
with independent entries of mean 0 and variance 1, ``|a_i^H w|^2`` has the mean ``|a_i|^2``. One product shows
whether the columns are equally long at all: then its entries are Gaussian, whose fourth moment is known. With
16 products the estimates have a standard deviation of ``sqrt(2 / 16)``, a third.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from lopro.basis_pursuit.operators.history import Point
from lopro.core.arrays import Array, asarray_like, inner, is_complex, namespace
from lopro.core.vectors import inners
from lopro.objectives import L1Norm, Objective

__all__ = ["Steps", "line_search", "step_lengths"]


@dataclass(frozen=True)
class Settings:
    """Settings of the estimates."""

    #: The number of products from which the lengths of columns are estimated: with a tenth and with ten times
    #: as many the 19 operators of `python -m benchmarks.constants basis_pursuit` take 1.09 and 1.02 times the
    #: products.
    products: int = 16
    #: The weight of the mean length in each estimate, in products (0.99, 1.06).
    prior: float = 2.0
    #: The columns count as equally long if the mean of ``|a_i|^4`` is at most this multiple of the squared
    #: mean of ``|a_i|^2`` (never: 2.67; always: 1.10).
    equal: float = 1.2


SETTINGS = Settings()


@dataclass(frozen=True, eq=False)
class Steps:
    """A step length for each entry: long ones for short columns.

    These are steps of length 1 in the variables ``x / root``.
    """

    lengths: Array  # relative to the common step length
    root: Array  # of the lengths
    norm: Objective  # f with its weights times the lengths: the prox for these steps

    @staticmethod
    def of(lengths: Array, weights: Array) -> Steps:
        """Return the steps with these lengths for an l1 norm with these weights."""
        root = namespace(lengths).sqrt(lengths)
        return Steps(lengths, root, L1Norm(weights=weights * lengths))


def step_lengths(adjoint: Callable[[Array], Array], y: Array) -> Array | None:
    """Return step lengths inverse to the squared lengths of the columns, relative to their mean.

    None where all columns are about equally long.

    Parameters
    ----------
    adjoint : callable
        The product with ``A^H``.
    y : array
        An array of the shape and kind of a residual.

    Examples
    --------
    >>> import numpy as np
    >>> from lopro.basis_pursuit.operators.step_lengths import step_lengths
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
    if not mean > 0.0 or _mean((squares / mean) ** 2) < of_gaussians * SETTINGS.equal:
        return None
    for _ in range(SETTINGS.products - 1):
        squares = squares + _squares(adjoint, y, rng)
    # By chance some of the sums are very small: each is averaged with `prior` products that show the mean.
    n, prior = SETTINGS.products, SETTINGS.prior
    return (n + prior) / (n * squares / _mean(squares) + prior)


def _squares(adjoint: Callable[[Array], Array], y: Array, rng: np.random.Generator) -> Array:
    w = rng.standard_normal(tuple(y.shape))
    if is_complex(y):
        w = (w + 1j * rng.standard_normal(tuple(y.shape))) / np.sqrt(2.0)
    size = namespace(y).abs(adjoint(asarray_like(w, y)))
    return size * size


def _mean(v: Array) -> float:
    return float(namespace(v).mean(v))


def line_search(
    f: Objective, base: Point, move: Array, q: Array, alpha: float, furthest: float
) -> float:
    """Return the ``tau <= furthest`` that minimises the objective at ``base + tau move``.

    ``q`` is the change of the residual for ``tau = 1``, so that no product is needed.
    """
    along, square = inners((base.r, q), (q, q))
    if base.nonzeros == 0 and square > 0.0:  # f is linear along a ray from zero
        return min(furthest, max(0.0, -(alpha * float(f.value(move)) + along) / square))

    def slope(tau: float) -> float:
        s = f.subgradient(base.x + tau * move)
        return alpha * inner(s, move) + along + tau * square

    low, high = 0.0, 1.0
    while high < furthest and slope(high) < 0.0:
        low, high = high, 2.0 * high
    while (
        low == 0.0 and high > 1e-40 and slope(high / 16.0) > 0.0
    ):  # the minimiser may be of any scale
        high /= 16.0
    for _ in range(30):  # bisection to nine digits
        middle = 0.5 * (low + high)
        low, high = (low, middle) if slope(middle) > 0.0 else (middle, high)
    return high
