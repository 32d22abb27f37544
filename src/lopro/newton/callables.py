"""Users' smooth functions for Newton's method, with their own second derivatives or those of L-BFGS."""

from __future__ import annotations

import math

import numpy as np

from lopro.core.arrays import eps
from lopro.core.counting import count
from lopro.functions.atoms import Opaque
from lopro.linalg.dense import EPS, Array, norm
from lopro.linalg.rounding import Enclosure, Estimate
from lopro.newton import curvature
from lopro.newton.curvature import Diagonal, LowRank, Piece, Product
from lopro.newton.smooth import Image, Slope

__all__ = ["Secants", "SmoothCallable"]

#: Number of differences that are kept: with one, the callable of ``python -m benchmarks.constants newton``
#: takes 24 % more steps, with a hundred the same number.
_MEMORY = 10
#: Differences with ``s'y`` below this multiple of ``|s| |y|`` are dropped as rounding: 1e-11 and 1e-9 change
#: nothing in ``python -m benchmarks.constants newton``.
_FLAT = 1e-10


class Secants:
    """The L-BFGS matrix B of the last steps ``s`` and changes ``y`` of the gradient.

    ``B s = y`` for the last pair.
    ``B = sigma I - [sigma S, Y] M^-1 [sigma S, Y]'`` with ``M = [[sigma S'S, L], [L', -diag(S'Y)]]``, ``L``
    the part of ``S'Y`` below the diagonal and ``sigma = y'y / s'y``: positive definite where all ``s'y`` are.

    References
    ----------
    R. H. Byrd, J. Nocedal, R. B. Schnabel, "Representations of quasi-Newton matrices and their use in
    limited memory methods", Math. Program. 63 (1994).

    Examples
    --------
    >>> import numpy as np
    >>> from lopro.newton import curvature
    >>> from lopro.newton.callables import Secants
    >>> secants = Secants(2)
    >>> secants.add(np.array([1.0, 0.0]), np.array([3.0, 1.0]))
    >>> curvature.apply(secants.pieces(), np.array([1.0, 0.0])).round(12)
    array([3., 1.])
    """

    def __init__(self, size: int) -> None:
        self.size = size
        self._steps: list[Array] = []
        self._changes: list[Array] = []
        self._pieces: tuple[Piece, ...] | None = None

    def __len__(self) -> int:
        return len(self._steps)

    def add(self, s: Array, y: Array) -> None:
        """Add a step and the change of the gradient, unless its curvature is zero or rounding."""
        curvature = float(s @ y)
        if not curvature > _FLAT * float(np.sqrt((s @ s) * (y @ y))):
            return
        self._steps = [*self._steps, s][-_MEMORY:]
        self._changes = [*self._changes, y][-_MEMORY:]
        self._pieces = None

    def pieces(self) -> tuple[Piece, ...]:
        """Return ``B`` as a diagonal and a matrix of low rank; zero before the first step."""
        if self._pieces is None:
            self._pieces = self._formed()
        return self._pieces

    def _formed(self) -> tuple[Piece, ...]:
        if not self._steps:
            nothing = LowRank(np.zeros((0, self.size)), np.zeros((0, 0)))
            return Diagonal(np.zeros(self.size)), nothing
        S, Y = np.stack(self._steps), np.stack(self._changes)
        products = S @ Y.T
        sigma = float(Y[-1] @ Y[-1]) / float(products[-1, -1])
        below = np.tril(products, -1)
        M = np.block([[sigma * (S @ S.T), below], [below.T, -np.diag(products.diagonal())]])
        rows = np.concatenate([sigma * S, Y])
        # Rows of norm one, so that the accuracy of the inverse does not depend on their units.
        norms = np.sqrt(np.einsum("ij,ij->i", rows, rows))
        core = -np.linalg.inv(M / norms[:, None] / norms)
        return Diagonal(np.full(self.size, sigma)), LowRank(rows / norms[:, None], core)


#: Assumed rounding error of a user's function, relative to its value and to each gradient entry, in rounding
#: units. A tenth and ten times as much change nothing in ``python -m benchmarks.constants newton``.
_ROUNDINGS = 64.0
#: Length of the first difference of gradients, relative to the norm of the point and absolute at zero. A
#: tenth and ten times as much change nothing in ``python -m benchmarks.constants newton``.
_PROBE = 1e-6


class SmoothCallable:
    """``factor * f`` for a user's function, whose derivatives are assumed to be right.

    If it has no second derivatives, those of L-BFGS are used, from the gradients that are computed.
    """

    images = 0

    def __init__(self, atom: Opaque, size: int, factor: float) -> None:
        self.f, self.size, self.factor = atom.function, size, factor
        self._secants = None if self.f.has_hessian else Secants(size)
        self._last: tuple[Array, Array] | None = None
        self._largest = 0.0
        #: The rounding unit of what the function computes.
        self._unit = EPS if self.f.like is None else eps(self.f.like)

    def value(self, x: Array) -> float:
        return self.factor * float(self.f.value(x))

    def image(self, x: Array) -> Image:
        return ()

    def gradient(self, x: Array, image: Image) -> Array:
        """Return the gradient; the last one is cached, and its change is added to the secants."""
        if self._last is not None and np.array_equal(self._last[0], x):
            return self._last[1]
        gradient = self._gradient(x)
        if self._secants is not None and self._last is not None:
            self._secants.add(x - self._last[0], gradient - self._last[1])
        self._last = (x.copy(), gradient)
        return gradient

    def _gradient(self, x: Array) -> Array:
        count("gradients")
        return np.asarray(self.factor * self.f.subgradient(x), dtype=np.float64)

    def sized_gradient(self, x: Array, image: Image) -> tuple[Array, float]:
        # The terms are unknown: the largest gradient so far serves as their scale.
        gradient = self.gradient(x, image)
        self._largest = max(self._largest, norm(gradient))
        return gradient, self._largest

    def curvature(self, x: Array, image: Image) -> tuple[Piece, ...]:
        if self._secants is not None:
            if len(self._secants) == 0:
                self._probe(x)
            return self._secants.pieces()
        H = self.f.hessian_at(x)
        signs = np.random.default_rng(0).choice([-1.0, 1.0], size=self.size)
        # The mean of s'Hs over random signs is the trace.
        mean = self.factor * float(signs @ H(signs)) / self.size
        return (Product(lambda s: self.factor * np.asarray(H(s)), max(mean, 0.0), self.size),)

    def _probe(self, x: Array) -> None:
        """Add a difference along the negative gradient, the first curvature."""
        assert self._secants is not None
        gradient = self.gradient(x, ())
        slope = norm(gradient)
        if slope > 0.0:
            share = max(_PROBE, math.sqrt(self._unit))
            s = (-share * (norm(x) or 1.0) / slope) * gradient
            self._secants.add(s, self._gradient(x + s) - gradient)

    def along(self, x: Array, image: Image, d: Array, direction: Image) -> Slope:
        model = None
        if self._secants is not None:
            model = float(d @ curvature.apply(self._secants.pieces(), d))

        def slope(t: float) -> tuple[float, float]:
            z = x + t * d
            first = float(self._gradient(z) @ d)
            if model is not None:
                return first, model
            return first, self.factor * float(d @ self.f.hessian_product(z, d))

        return slope

    def enclose(self, x: Array) -> Enclosure:
        value, gradient = self.value(x), self.gradient(x, ())
        error = _ROUNDINGS * self._unit * np.abs(gradient)
        slope_error = self.f.slope_error(x)
        if slope_error is not None:
            error = error + self.factor * slope_error
        return Enclosure(Estimate(value, _ROUNDINGS * self._unit * abs(value)), gradient, error)

    def strong_convexity(self) -> float:
        mu = self.f.strong_convexity()
        return 0.0 if mu is None else self.factor * float(mu.value)
