"""The (weighted) l1 norm."""

from __future__ import annotations

import math
from functools import cached_property
from typing import Any

import numpy as np

from lopro.core.arrays import Array, Companion, copy, is_array, namespace, norm
from lopro.core.validation import check_array, check_number, check_shape, checked_shape
from lopro.functions import Ball, Constant, Source, atoms
from lopro.functions.term import Term
from lopro.maps import linear_map
from lopro.objectives.base import OneTerm, scale_into
from lopro.objectives.of_atom import NormOfImage

__all__ = ["L1Norm", "L1NormOfImage"]


class L1Norm(OneTerm):
    """``f(x) = sum_i w_i |x_i|``, with the modulus where ``x`` is complex.

    With a map or an offset it is ``sum_i w_i |(D x - b)_i|``, an `L1NormOfImage`.

    Parameters
    ----------
    weights : float or array, optional
        Nonnegative; one number for all entries (1 by default) or one for each.
    shape : tuple of int, optional
        Shape of the points. Without it and without an array of weights any shape is accepted, but the
        Lipschitz constant ``|w|_2`` is not known.
    D : array, scipy.sparse matrix, LinearOperator or LinearMap of shape (m, d), optional
        Real. Not copied. With a map there is one weight for each of its rows.
    b : array, optional
        Subtracted before the norm; zero if not given. Copied.

    Examples
    --------
    >>> import numpy as np
    >>> from lopro.objectives import L1Norm
    >>> f = L1Norm(shape=(3,))
    >>> x = np.array([2.0, -0.5, 0.0])
    >>> f.value(x)
    2.5
    >>> f.prox(x, 1.0) + 0.0
    array([1., 0., 0.])
    >>> round(f.lipschitz().value, 4)
    1.7321

    The sum of absolute deviations:

    >>> L1Norm(D=np.ones((3, 1)), b=np.array([1.0, 2.0, 7.0])).value(np.array([2.0]))
    6.0
    """

    proximable = True

    def __new__(
        cls,
        weights: Any = None,
        shape: tuple[int, ...] | None = None,
        D: Any = None,
        b: Any = None,
        **of_subclass: Any,
    ) -> Any:
        # Methods for norms of the variables require this class; norms of images have another one.
        if cls is L1Norm and (D is not None or b is not None):
            return L1NormOfImage(weights, shape, D, b)
        return super().__new__(cls)

    def __init__(
        self,
        weights: Any = None,
        shape: tuple[int, ...] | None = None,
        D: Any = None,
        b: Any = None,
    ) -> None:
        self.shape = None if shape is None else checked_shape(shape)
        self._number: float | None = None
        if weights is None or getattr(weights, "ndim", np.ndim(weights)) == 0:
            number = 1.0 if weights is None else weights
            self._number = check_number("weights", number, minimum=0.0)
            self._least = self._number
            return
        w = check_array("weights", weights, allow_complex=False)
        xp = namespace(w)
        self._least = float(xp.min(w))
        if self._least < 0.0:
            raise ValueError(f"weights must be nonnegative, but one of them is {self._least:g}")
        if self.shape is not None:
            check_shape("weights", w, self.shape)
        self._set_weights(copy(w))
        if is_array(weights):
            self.like = self._weights.array

    def _set_weights(self, w: Array) -> None:
        self._weights = Companion(w, real=True)
        self.shape = tuple(w.shape)

    def _beside(self, x: Array) -> float | Array:
        """Return the weights in a form that can be combined with ``x``."""
        return self._weights.beside(x) if self._number is None else self._number

    def shaped(self, shape: tuple[int, ...]) -> L1Norm:
        return self if self.shape is not None else type(self)(self._number, shape)

    @property
    def least_weight(self) -> float:
        """The smallest weight."""
        return self._least

    def weights_like(self, x: Array) -> Array:
        """Return the weights as an array of the shape, library and dtype of ``x``."""
        return 0.0 * abs(x) + self._beside(x)

    @cached_property
    def terms(self) -> tuple[Term, ...]:
        return (Term(atoms.L1(self._weights.array if self._number is None else self._number)),)

    def minorant(self, x: Array, target: Array) -> tuple[float, Array]:
        # Every point of the dual ball is a subgradient at 0; clipping gives the one nearest to the target.
        return 0.0, self.terms[0].into_domain(target)

    def scale_into_domain(self, v: Array) -> float:
        return scale_into(self.terms[0].atom, v)

    def lipschitz(self, ball: Ball | None = None) -> Constant | None:
        if self._number is None:
            return Constant(norm(self._weights.array), Source.DERIVED, "Euclidean norm of weights")
        shape = self.shape if ball is None or self.shape is not None else tuple(ball.center.shape)
        if shape is None:
            return None
        value = self._number * math.sqrt(math.prod(shape))
        return Constant(value, Source.DERIVED, "weight times root of the dimension")

    def infimum(self) -> Constant:
        return Constant(0.0, Source.DERIVED, "a norm")

    def sublevel_radius(self, level: float) -> Constant | None:
        if self._least == 0.0:
            return None
        radius = max(level, 0.0) / self._least
        return Constant(radius, Source.DERIVED, "the 2-norm is below the 1-norm")


class L1NormOfImage(NormOfImage):
    """``f(x) = sum_i w_i |(D x - b)_i|``, the result of `L1Norm` with a map or an offset.

    Parameters
    ----------
    weights, shape, D, b
        As for `L1Norm`.

    Examples
    --------
    >>> import numpy as np
    >>> from lopro.objectives import L1Norm
    >>> f = L1Norm(2.0, b=np.array([1.0, 0.0]))
    >>> f.value(np.zeros(2)), f.prox(np.zeros(2), 0.25)
    (2.0, array([0.5, 0. ]))
    """

    def __init__(
        self, weights: Any = None, shape: Any = None, D: Any = None, b: Any = None
    ) -> None:
        D = None if D is None else linear_map(D, "D")
        #: The norm of the image.
        self.norm = L1Norm(weights, None if D is None else (D.shape[0],))
        super().__init__(self.norm.terms[0].atom, D, b, shape)
        if D is None:
            self.norm = self.norm.shaped(self.shape or ())

    def lipschitz(self, ball: Ball | None = None) -> Constant | None:
        own = self.norm.lipschitz()
        return None if own is None else self._times_map(own.value, own.note, own.source)

    def sublevel_radius(self, level: float) -> Constant | None:
        around = self.norm.sublevel_radius(level)
        if self.D is not None or self.offset is None or around is None:
            return None
        return Constant(around.value + norm(self.offset), Source.DERIVED, around.note)
