"""The l1 ball, whose corners are the signed unit vectors."""

from __future__ import annotations

import math
from functools import cached_property
from typing import Any

from lopro.constraints.compact import CompactSet
from lopro.core.arrays import Array, is_complex, namespace, zeros
from lopro.core.validation import check_count, check_number, check_shape
from lopro.functions import Ball, Constant, Source, atoms
from lopro.functions.simplex import project_l1_ball
from lopro.functions.term import Term

__all__ = ["L1Ball"]


class L1Ball(CompactSet):
    """The set ``{x : sum |x_i| <= size}``, through ``c(x) = sum |x_i| - size``.

    Parameters
    ----------
    dim : int
        Length of the vectors, real or complex.
    size : float
        Positive.

    Notes
    -----
    ``c`` is the distance to the ball in the l1 norm, which is never below the Euclidean one: rho = 1,
    attained along the axes.

    Examples
    --------
    >>> import numpy as np, lopro.constraints as lc
    >>> ball = lc.L1Ball(2)
    >>> ball.value(np.array([2.0, -1.0])), ball.project(np.array([2.0, -1.0]))
    (2.0, array([ 1., -0.]))
    >>> ball.linear_minimizer(np.array([1.0, -3.0]))
    array([0., 1.])
    """

    has_vertices = True  # complex vectors have a circle of them for each axis

    def __init__(self, dim: int, size: float = 1.0) -> None:
        self.dim = check_count("dim", dim)
        self.size = check_number("size", size, minimum=0.0, exclusive=True)
        self.shape = (self.dim,)

    def __repr__(self) -> str:
        return f"L1Ball({self.dim}, {self.size:g})"

    @cached_property
    def terms(self) -> tuple[Term, ...]:
        return (Term(atoms.L1Ball(self.size)),)

    def value(self, x: Array) -> float:
        check_shape("x", x, (self.dim,))
        xp = namespace(x)
        return float(xp.sum(xp.abs(x))) - self.size

    def subgradient(self, x: Array) -> Array:
        check_shape("x", x, (self.dim,))
        return phases(x)

    def violation(self, x: Array) -> float:
        return max(0.0, self.value(x)) / self.size

    def typical_size(self) -> float | None:
        return self.size

    def project(self, x: Array) -> Array:
        check_shape("x", x, (self.dim,))
        return project_l1_ball(x, self.size)

    def linear_minimizer(self, direction: Array) -> Array:
        xp = namespace(direction)
        i = int(xp.argmax(xp.abs(direction)))
        corner = zeros((self.dim,), direction)
        corner[i] = -self.size * phases(direction[i : i + 1])[0]
        return corner

    def lipschitz(self, ball: Ball | None = None) -> Constant | None:
        return Constant(math.sqrt(self.dim), Source.DERIVED, "the l1 norm")

    def regularity(self) -> Constant | None:
        return Constant(1.0, Source.DERIVED, "c is the distance in the l1 norm")

    def infimum(self) -> Constant | None:
        return Constant(-self.size, Source.DERIVED, "a norm is not negative")

    def radius(self) -> Constant | None:
        return Constant(self.size, Source.DERIVED, "the corners")


def phases(x: Array) -> Any:
    """Return the sign of each entry, ``x / |x|`` for complex ones, and 0 for 0."""
    xp = namespace(x)
    if not is_complex(x):
        return xp.sign(x)
    sizes = xp.abs(x)
    return x / xp.astype(xp.where(sizes > 0.0, sizes, sizes + 1.0), x.dtype)
