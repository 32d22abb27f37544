"""The (weighted) l1 norm."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from lopro.core.arrays import Array, Companion, copy, is_array, is_complex, namespace, norm
from lopro.core.validation import check_array, check_number, check_shape, checked_shape
from lopro.functions import Ball, Constant, Source
from lopro.objectives.base import Objective

__all__ = ["L1Norm"]


class L1Norm(Objective):
    """``f(x) = sum_i w_i |x_i|``, with the modulus where ``x`` is complex.

    Parameters
    ----------
    weights : float or array, optional
        Nonnegative; one number for all entries (default 1) or one for each.
    shape : tuple of int, optional
        Shape of the points; any shape will do if neither this nor an array of weights is given,
        but then the Lipschitz constant, which is ``|w|_2``, is not known.

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
    """

    proximable = True

    def __init__(self, weights: Any = None, shape: tuple[int, ...] | None = None) -> None:
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
        """Return the weights as an array of the shape and kind of ``x``."""
        return 0.0 * abs(x) + self._beside(x)

    def value(self, x: Array) -> float:
        w = self._beside(x)
        if isinstance(x, np.ndarray):
            modulus = np.abs(x)
            return float((w * modulus).sum() if self._number is None else w * modulus.sum())
        xp = namespace(x)
        return float(xp.sum(w * xp.abs(x)))

    def subgradient(self, x: Array) -> Array:
        return self._beside(x) * unit_phase(x)

    def prox(self, x: Array, step: float) -> Array:
        bound = float(step) * self._beside(x)
        if isinstance(x, np.ndarray) and x.dtype.kind == "c" and x.ndim == 1:
            return _shrunk(x, bound)
        clipped = clip_modulus(x, bound)
        if isinstance(x, np.ndarray) and clipped.dtype == x.dtype:
            return np.subtract(
                x, clipped, out=clipped
            )  # fresh memory costs more than the difference
        return x - clipped

    def minorant(self, x: Array, target: Array) -> tuple[float, Array]:
        # Every slope in the dual ball touches f at 0: the nearest one to the target is a clip.
        return 0.0, clip_modulus(target, self._beside(target))

    def scale_into_domain(self, v: Array) -> float:
        xp = namespace(v)
        modulus, w = xp.abs(v), self._beside(v)
        if not bool(xp.any(modulus > w)):
            return 1.0
        # Only entries beyond their weight are divided: none of them is zero.
        ratio = w / xp.where(modulus > w, modulus, xp.ones_like(modulus))
        return float(xp.min(xp.where(modulus > w, ratio, xp.ones_like(modulus))))

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


def _shrunk(x: np.ndarray[Any, Any], bound: float | Array) -> Array:
    """Return complex entries less ``bound`` of their modulus; most of them vanish, and take no time."""
    modulus = np.abs(x)
    (kept,) = np.nonzero(modulus > bound)
    of_kept = bound if isinstance(bound, float) else bound[kept]
    shrunk = np.zeros_like(x)
    shrunk[kept] = x[kept] * (1.0 - of_kept / modulus[kept])
    return shrunk


def unit_phase(x: Array) -> Array:
    """Return ``x / |x|`` entry by entry, and 0 where ``x`` is 0."""
    if isinstance(x, np.ndarray):
        return np.sign(x)
    xp = namespace(x)
    if not is_complex(x):
        return xp.sign(x)
    # Not every library's sign knows complex numbers, or keeps quiet about 0 / 0.
    modulus = xp.abs(x)
    return x / xp.where(modulus > 0.0, modulus, xp.ones_like(modulus))


def clip_modulus(x: Array, bound: float | Array) -> Array:
    """Return ``x`` with every entry of modulus above ``bound`` pulled back to it."""
    if is_complex(x):
        xp = namespace(x)
        modulus = xp.abs(x)
        beyond = modulus > bound
        factor = bound / xp.where(beyond, modulus, xp.ones_like(modulus))
        return x * xp.where(beyond, factor, xp.ones_like(modulus))
    if isinstance(x, np.ndarray):
        if isinstance(bound, float):
            return x.clip(-bound, bound)
        clipped = np.maximum(x, -bound)
        return np.minimum(clipped, bound, out=clipped)
    return namespace(x).clip(x, -bound, bound)
