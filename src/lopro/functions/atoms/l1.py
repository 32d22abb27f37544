"""Weighted sums of absolute values, with separate weights for the two signs if required."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import scipy  # parts of it load when first used

from lopro.core.arrays import Array, Companion, is_complex, namespace, to_numpy
from lopro.core.moduli import clip_modulus, unit_phase
from lopro.functions.atoms.base import Atom, Step
from lopro.functions.complements import DiagonalComplement
from lopro.functions.cone_program import ConeBuilder, RealImage, place_rows
from lopro.linalg.rounding import Estimate

__all__ = ["L1"]


class L1(Atom):
    """``g(z) = sum_i w_i |z_i|``, or ``sum_i w_i [z_i]_+ + u_i [-z_i]_+`` with weights ``u`` for negatives.

    With the same weights for both signs entries may be complex. An entry of weight 0 is free. Different
    weights make quantile and hinge losses.

    Parameters
    ----------
    weights : float or array
        Nonnegative.
    negative : float or array, optional
        Weights of negative entries, nonnegative; `weights` by default.

    Examples
    --------
    >>> import numpy as np
    >>> from lopro.functions.atoms import L1
    >>> L1(1.0).prox(np.array([3.0, -0.5]), 1.0) + 0.0
    array([2., 0.])
    >>> L1(0.25, negative=0.75).value(np.array([4.0, -4.0]))
    4.0
    """

    proximable = True
    separable = True

    def __init__(self, weights: float | Array = 1.0, negative: float | Array | None = None) -> None:
        self.weights = _Weights(weights)
        self.negative = self.weights if negative is None else _Weights(negative)
        self.symmetric = negative is None
        self.steepness = max(self.weights.largest, self.negative.largest)

    def times(self, factor: float) -> L1:
        negative = None if self.symmetric else self.negative.times(factor)
        return L1(self.weights.times(factor), negative)

    def _sides(self, z: Array) -> tuple[float | Array, float | Array]:
        """Return the weights of negative and of positive entries."""
        up = self.weights.beside(z)
        return (up if self.symmetric else self.negative.beside(z)), up

    def _clip(self, z: Array, factor: Step = 1.0) -> Array:
        """Return ``z`` clipped to ``factor`` times the interval of slopes."""
        down, up = self._sides(z)
        if self.symmetric:
            return clip_modulus(z, factor * up)
        return namespace(z).clip(z, -(factor * down), factor * up)

    def linearize(self, z: Array) -> tuple[float, Callable[[], Array]]:
        return self.value(z), lambda: self.slope(z)

    def value(self, z: Array) -> float:
        down, up = self._sides(z)
        xp = namespace(z)
        if self.symmetric:
            size = xp.abs(z)
            # A common weight is taken out of the sum.
            return float(up * xp.sum(size) if isinstance(up, float) else xp.sum(up * size))
        return float(xp.sum(xp.where(z > 0.0, up * z, -(down * z))))

    def slope(self, z: Array) -> Array:
        down, up = self._sides(z)
        if self.symmetric:
            return up * unit_phase(z)
        xp = namespace(z)
        return xp.where(z > 0.0, up + 0.0 * z, xp.where(z < 0.0, 0.0 * z - down, 0.0 * z))

    def prox(self, w: Array, step: Step) -> Array:
        if isinstance(w, np.ndarray) and w.dtype.kind == "c" and w.ndim == 1:
            return _shrunk(w, step * self._sides(w)[1])
        clipped = self._clip(w, step)
        if isinstance(w, np.ndarray) and clipped.dtype == w.dtype:
            # Allocating memory would cost more than the subtraction.
            return np.subtract(w, clipped, out=clipped)
        return w - clipped

    def complement(self, w: Array, step: Step) -> DiagonalComplement:
        down, up = self._sides(w)
        inside = (w <= step * up) & (w >= -(step * down))
        return DiagonalComplement(inside.astype(np.float64))

    def conjugate(self, v: Array) -> float:
        xp, (down, up) = namespace(v), self._sides(v)
        if is_complex(v):
            return 0.0 if bool(xp.all(xp.abs(v) <= up)) else math.inf
        return 0.0 if bool(xp.all((v <= up) & (v >= -(0.0 * v + down)))) else math.inf

    def into_domain(self, v: Array) -> Array:
        return self._clip(v)

    def gauge(self, v: Array) -> float:
        xp, (down, up) = namespace(v), self._sides(v)
        size = xp.abs(v)
        allowed = 0.0 * size + (
            up if is_complex(v) else xp.where(v > 0.0, 0.0 * v + up, 0.0 * v + down)
        )
        if bool(xp.any((allowed == 0.0) & (size > 0.0))):
            return math.inf
        return float(xp.max(size / xp.where(allowed > 0.0, allowed, xp.ones_like(size))))

    def enclose_conjugate(self, v: Array) -> Estimate:
        return Estimate(self.conjugate(v))

    def add_to_cone_program(self, program: ConeBuilder, image: RealImage, scale: float) -> None:
        """Add ``w't`` with ``|z_i| <= t_i``, or with one ``t_i`` for each sign; weights of zero need none."""
        entries = image.rows // 2 if image.is_complex else image.rows
        if image.is_complex:
            self._add_moduli(program, image, scale, entries)
            return
        up, down = (_filled(w, entries) for w in (self.weights, self.negative))
        if not self.symmetric:
            for weights, sign in ((up, 1.0), (down, -1.0)):
                self._add_sides(program, image, scale * weights, (sign,), positive=True)
            return
        self._add_sides(program, image, scale * up, (1.0, -1.0))

    def _add_sides(
        self,
        program: ConeBuilder,
        image: RealImage,
        weights: Any,
        signs: tuple[float, ...],
        positive: bool = False,
    ) -> None:
        """Add ``weights't`` with ``sign z_i <= t_i``, and ``t_i >= 0`` if ``positive``."""
        used = np.flatnonzero(weights)
        if not len(used):
            return
        t = program.new_variables(len(used))
        program.add_linear(weights[used], t)
        D, b = scipy.sparse.csr_array(image.D)[used], image.b[used]
        bound = -scipy.sparse.eye_array(len(used), format="csr")
        for sign in signs:
            program.add_inequalities(sign * b, (sign * D, 0), (bound, t))
        if positive:
            program.add_inequalities(np.zeros(len(used)), (bound, t))

    def _add_moduli(
        self, program: ConeBuilder, image: RealImage, scale: float, entries: int
    ) -> None:
        """Add ``w't`` with the modulus of a complex ``z_i`` at most ``t_i``."""
        weights = _filled(self.weights, entries)
        used = np.flatnonzero(weights)
        if not len(used):
            return
        t = program.new_variables(len(used))
        program.add_linear(scale * weights[used], t)
        D, first = scipy.sparse.csr_array(image.D), 3 * np.arange(len(used))
        bound = -scipy.sparse.eye_array(len(used), format="csr")
        count = 3 * len(used)
        parts = place_rows(D[used], first + 1, count) + place_rows(
            D[used + entries], first + 2, count
        )
        bounds = np.zeros(count)
        bounds[first + 1], bounds[first + 2] = image.b[used], image.b[used + entries]
        program.add_second_order(3, bounds, (place_rows(bound, first, count), t), (parts, 0))


class _Weights:
    """One weight for all entries, or one for each."""

    def __init__(self, weights: float | Array) -> None:
        self.number: float | None = None
        if isinstance(weights, int | float):
            self.number = self.largest = float(weights)
            return
        self.array = Companion(weights, real=True)
        xp = namespace(weights)
        self.largest = float(xp.max(weights)) if math.prod(weights.shape) else 0.0

    def times(self, factor: float) -> float | Array:
        """Return the weights multiplied by a factor."""
        return factor * (self.array.array if self.number is None else self.number)

    def beside(self, z: Array) -> float | Array:
        """Return the weights in a form that can be combined with ``z``."""
        return self.array.beside(z) if self.number is None else self.number


def _shrunk(w: np.ndarray[Any, Any], bound: float | Array) -> Array:
    """Return complex entries with their modulus reduced by ``bound``; only the nonzero ones are computed."""
    modulus = np.abs(w)
    (kept,) = np.nonzero(modulus > bound)
    of_kept = bound if isinstance(bound, float) else bound[kept]
    shrunk = np.zeros_like(w)
    shrunk[kept] = w[kept] * (1.0 - of_kept / modulus[kept])
    return shrunk


def _filled(weights: _Weights, size: int) -> np.ndarray[Any, Any]:
    """Return weights as a vector on the host."""
    if weights.number is not None:
        return np.full(size, weights.number)
    return np.asarray(to_numpy(weights.array.array), dtype=np.float64).ravel()
