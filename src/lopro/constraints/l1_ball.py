"""The l1 ball, whose corners are the signed unit vectors."""

from __future__ import annotations

from functools import cached_property
from typing import Any

from lopro.constraints.compact import NormDistance
from lopro.core.arrays import Array, copy, is_array, namespace, norm
from lopro.core.moduli import unit_phase
from lopro.core.validation import check_array, check_count, check_number, check_shape
from lopro.core.vectors import one_entry
from lopro.functions import Constant, Source, atoms
from lopro.functions.term import Term

__all__ = ["L1Ball"]


class L1Ball(NormDistance):
    """The set ``{x : sum |x_i - c_i| <= size}``, through the function ``sum |x_i - c_i| - size``.

    Parameters
    ----------
    dim : int
        Length of the vectors, real or complex.
    size : float
        Positive.
    center : array, optional
        The point ``c``; zero if not given. Copied.

    Notes
    -----
    Outside the ball ``c`` is the distance to it in the l1 norm, which is at least the Euclidean one: rho = 1,
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

    norm_name = "l1"
    has_vertices = True  # for complex vectors a circle of them on each axis

    def __init__(self, dim: int, size: float = 1.0, center: Any = None) -> None:
        self.dim = check_count("dim", dim)
        self.size = check_number("size", size, minimum=0.0, exclusive=True)
        self.shape = (self.dim,)
        self.center: Array | None = None if center is None else copy(check_array("center", center))
        if self.center is not None:
            check_shape("center", self.center, self.shape)
            self.like = self.center if is_array(center) else None

    def __repr__(self) -> str:
        around = "" if self.center is None else ", center=..."
        return f"L1Ball({self.dim}, {self.size:g}{around})"

    @cached_property
    def terms(self) -> tuple[Term, ...]:
        return (Term(atoms.L1Ball(self.size), offset=self.center),)

    def _from_center(self, x: Array) -> Array:
        check_shape("x", x, (self.dim,))
        return x - self.terms[0].offset_beside(x)

    def value(self, x: Array) -> float:
        away = self._from_center(x)
        xp = namespace(away)
        return float(xp.sum(xp.abs(away))) - self.size

    def subgradient(self, x: Array) -> Array:
        return unit_phase(self._from_center(x))

    @property
    def scale(self) -> float:
        return self.size

    def project(self, x: Array) -> Array:
        check_shape("x", x, (self.dim,))
        return self.terms[0].prox(x, 1.0)

    def linear_minimizer(self, direction: Array) -> Array:
        xp = namespace(direction)
        i = int(xp.argmax(xp.abs(direction)))
        corner = one_entry(self.dim, i, -self.size * unit_phase(direction[i : i + 1]), direction)
        return corner if self.center is None else corner + self.terms[0].offset_beside(corner)

    def infimum(self) -> Constant | None:
        return Constant(-self.size, Source.DERIVED, "a norm is not negative")

    def radius(self) -> Constant | None:
        away = 0.0 if self.center is None else norm(self.center) * (1.0 + 1e-15)
        return Constant(self.size + away, Source.DERIVED, "the corners")
