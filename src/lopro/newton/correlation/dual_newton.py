"""Newton's method for the dual of a projection on a spectrahedron.

Qi and Sun, A quadratically convergent Newton method for computing the nearest correlation matrix, 2006.
The dual function ``1/2 |P_+(T + A*y)|^2 - b'y`` is differentiable with a semismooth gradient, so that
Newton steps by conjugate gradients converge quadratically: six or seven eigendecompositions, whatever the
size.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from lopro.linalg.conjugate_gradients import conjugate_gradients
from lopro.newton.arrays import EPS, Array, norm
from lopro.newton.correlation.problem import Target
from lopro.newton.spectral import Spectrum

__all__ = ["DualPoint", "Run", "newton"]

_ARMIJO = 1e-4
_HALVINGS = 10


@dataclass(frozen=True)
class DualPoint:
    """Multipliers, the spectrum of ``T + A*y``, the value of the dual function and its gradient."""

    y: Array
    spectrum: Spectrum
    Z: Array
    value: float
    gradient: Array

    @staticmethod
    def of(target: Target, y: Array) -> DualPoint:
        """Evaluate the dual function: one eigendecomposition."""
        spectrum = Spectrum(target.rows.add_adjoint(y, target.T))
        positive = spectrum.positive[0]
        value = 0.5 * float(positive @ positive) - float(target.b @ y)
        Z = spectrum.positive_part()
        return DualPoint(y, spectrum, Z, value, target.rows.forward(Z) - target.b)


@dataclass(frozen=True)
class Run:
    """The last point of a run and what it took."""

    point: DualPoint
    decompositions: int
    products: int
    solved: bool


def newton(
    target: Target,
    start: Array | DualPoint,
    accuracy: float,
    stopped: Callable[[], bool],
    max_decompositions: int = 50,
) -> Run:
    """Minimise the dual function until ``|A Z - b| <= accuracy |b|``, or nothing but rounding is left.

    Parameters
    ----------
    target : Target
        The problem.
    start : array or DualPoint
        Where to begin; a point of the same problem saves its eigendecomposition.
    accuracy : float
        The residual to reach, relative to ``b``.
    stopped : callable
        Whether time is up; asked before every eigendecomposition.
    max_decompositions : int
        At most so many.
    """
    given = isinstance(start, DualPoint)
    point = start if isinstance(start, DualPoint) else DualPoint.of(target, start)
    made, products = 0 if given else 1, 0
    size = norm(target.b)
    while True:
        residual = norm(point.gradient)
        if residual <= max(accuracy * size, 8.0 * EPS * norm(point.Z)):
            return Run(point, made, products, True)
        if made >= max_decompositions or stopped():
            return Run(point, made, products, False)
        step, k = _direction(target, point, residual / size, stopped)
        products += k
        following, tried = _search(target, point, step, max_decompositions - made, stopped)
        made += tried
        if following is None:
            return Run(point, made, products, residual <= 1e-9 * size)
        point = following


def _direction(
    target: Target, point: DualPoint, relative: float, stopped: Callable[[], bool]
) -> tuple[Array, int]:
    """Return the Newton direction, by conjugate gradients with a small proximal term."""
    diagonal = target.rows.diagonal(point.spectrum)
    shift = min(1e-3, 0.1 * relative)

    def product(h: Array) -> Array:
        return target.rows.product(point.spectrum, h) + shift * h

    accuracy = min(0.05, relative)
    return conjugate_gradients(
        product, -point.gradient, accuracy, 1.0 / (diagonal + shift), 200, stopped
    )


def _search(
    target: Target, point: DualPoint, step: Array, budget: int, stopped: Callable[[], bool]
) -> tuple[DualPoint | None, int]:
    """Return the point after a step that lowers the dual function or, near the end, the residual."""
    slope = float(point.gradient @ step)
    t = 1.0
    for tried in range(1, min(_HALVINGS, max(budget, 1)) + 1):
        if stopped():
            return None, tried - 1
        following = DualPoint.of(target, point.y + t * step)
        blur = 16.0 * EPS * (abs(point.value) + float(np.abs(target.b * point.y).sum()))
        if following.value <= point.value + _ARMIJO * t * slope + blur:
            # Within the blur only the residual tells whether the step was good.
            if abs(t * slope) > blur or norm(following.gradient) < norm(point.gradient):
                return following, tried
            return None, tried
        t *= 0.5
    return None, tried
