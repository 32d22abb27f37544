"""Steps of shrinkage: line searches, and a length for each entry from the lengths of columns.

How long the columns of an operator are is estimated from a few products with random vectors: for ``w`` with
independent entries of mean 0 and variance 1, ``|a_i^H w|^2`` has the mean ``|a_i|^2``. One such product tells
whether the columns are equally long at all: then its entries are Gaussian, whose fourth moment is known. A
dozen of them tell the lengths well enough to choose steps by.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np

from lopro.basis_pursuit.history import History, Point
from lopro.basis_pursuit.mixing import Mixture
from lopro.core.arrays import Array, asarray_like, inner, inners, is_complex, namespace
from lopro.objectives import L1Norm, Objective

__all__ = ["ShrinkageState", "Steps", "at_rank", "line_search", "step_lengths"]

#: Products that lengths are estimated from, and how many more would have told that all are equal.
_PRODUCTS, _PRIOR = 16, 2.0
#: Columns are as good as equally long where the mean square of ``|a_i|^2`` is so many times the squared mean.
_EQUAL = 1.2


@dataclass(frozen=True, eq=False)
class Steps:
    """Steps of a length of its own for each entry: short columns ask for long ones.

    They are those of unit length in the variables ``x / root``.
    """

    lengths: Array  # relative to the one that all share
    root: Array  # of the lengths
    norm: Objective  # f with weights times the lengths: its prox with one parameter shrinks as it should

    @staticmethod
    def of(lengths: Array, weights: Array) -> Steps:
        """Return the steps with these lengths for an l1 norm with these weights."""
        root = namespace(lengths).sqrt(lengths)
        return Steps(lengths, root, L1Norm(weights=weights * lengths))


@dataclass(slots=True)
class ShrinkageState:
    """Where the path following stands."""

    history: History
    mix: Mixture  # where the next step starts
    length: float  # of the next step
    lengths: list[float] = field(default_factory=list)  # that recent pairs of points suggest
    plain: bool = True  # whether the next step is one from the last point alone, with a line search
    left: list[float] = field(default_factory=list)  # residuals that the recent mixtures had
    steps: Steps | None = None  # all of the same length

    @property
    def points(self) -> list[Point]:
        """Iterates that may be mixed."""
        return self.history.points

    @property
    def last(self) -> Point:
        """The latest iterate."""
        return self.points[-1]

    @property
    def proofs(self) -> tuple[Point | Mixture, ...]:
        """Points whose correlations are known."""
        return self.last, self.mix

    @property
    def proposals(self) -> tuple[Point | Mixture, ...]:
        """Points to choose a solution from, where they are inside the ball."""
        return self.last, self.mix


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
    >>> from lopro.basis_pursuit.steps import step_lengths
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


def at_rank(sizes: Array, rank: int) -> float:
    """Return the number that so many are not below; 0 stands for the ones that are missing."""
    if rank >= sizes.shape[0]:
        return 0.0
    if isinstance(sizes, np.ndarray):
        return float(np.partition(sizes, sizes.size - rank)[sizes.size - rank])
    return float(namespace(sizes).sort(sizes)[sizes.shape[0] - rank])


def line_search(
    f: Objective, base: Point, move: Array, q: Array, alpha: float, furthest: float
) -> float:
    """Return ``tau <= furthest`` for which the objective at ``base + tau move`` is least.

    ``q`` is what the move does to the residual, so no product is needed.
    """
    along, square = inners((base.r, q), (q, q))
    if base.nonzeros == 0 and square > 0.0:  # f grows evenly from zero
        return min(furthest, max(0.0, -(alpha * float(f.value(move)) + along) / square))

    def slope(tau: float) -> float:
        s = f.subgradient(base.x + tau * move)
        return alpha * inner(s, move) + along + tau * square

    low, high = 0.0, 1.0
    while high < furthest and slope(high) < 0.0:
        low, high = high, 2.0 * high
    while low == 0.0 and high > 1e-40 and slope(high / 16.0) > 0.0:  # the scale may be any
        high /= 16.0
    for _ in range(30):
        middle = 0.5 * (low + high)
        low, high = (low, middle) if slope(middle) > 0.0 else (middle, high)
    return high
