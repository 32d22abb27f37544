"""An objective made of plain callables."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from lopro.core.arrays import Array, asarray_like, copy, is_array, is_complex, isfinite
from lopro.core.validation import (
    as_float,
    check_array,
    check_callable,
    check_shape,
    checked_shape,
)
from lopro.errors import MissingCapabilityError, NonFiniteError
from lopro.functions import Ball, Constant
from lopro.objectives.base import Objective

__all__ = ["FunctionObjective"]


class FunctionObjective(Objective):
    """A convex function given by callables, which determine its abilities.

    Each callable receives a copy of the point. Its result is checked (a finite number, an array of the
    shape of the point) and copied, so that callables may reuse their memory. Convexity and the
    correctness of slopes and constants are not checked.

    Parameters
    ----------
    value : callable
        ``value(x)``, a finite real number.
    gradient : callable, optional
        ``gradient(x)`` declares the function smooth, with a gradient that is Lipschitz continuous
        at least on bounded sets. Subgradients of other functions are given as ``subgradient``.
    subgradient : callable, optional
        ``subgradient(x)``, any subgradient; needed only without ``gradient``.
    prox : callable, optional
        ``prox(x, step)``, the minimiser of ``f(u) + |u - x|^2 / (2 step)``.
    stochastic_subgradient : callable, optional
        ``stochastic_subgradient(x, rng)``, an unbiased estimate of a subgradient.
    hess : callable, optional
        ``hess(x)``, the matrix of second derivatives; vectors and smooth functions only. With it, or with
        ``hessp``, sets given by rows are solved by Newton's method.
    hessp : callable, optional
        ``hessp(x, p)``, the product of that matrix with a vector.
    shape : tuple of int, optional
        Shape of the points.
    lipschitz, smoothness, strong_convexity : float, optional
        Constants that hold everywhere: of ``f``, of its gradient, and ``mu``.
    like : array, optional
        The callables receive points in the library and dtype of this array, on its device. By default they
        receive points as the method stores them: NumPy arrays from methods that compute on the host.
    slope_error : callable, optional
        ``slope_error(x)``, a NumPy array of bounds of the errors of the entries of the slope at ``x``. Lower
        bounds are reduced accordingly. Zero by default.

    Examples
    --------
    >>> import numpy as np
    >>> from lopro.objectives import FunctionObjective
    >>> f = FunctionObjective(lambda x: float(np.sum(np.cosh(x))), gradient=np.sinh)
    >>> f.smooth, f.proximable
    (True, False)
    >>> f.subgradient(np.zeros(2))
    array([0., 0.])
    """

    def __init__(
        self,
        value: Callable[[Array], Any],
        gradient: Callable[[Array], Any] | None = None,
        subgradient: Callable[[Array], Any] | None = None,
        prox: Callable[[Array, float], Any] | None = None,
        *,
        stochastic_subgradient: Callable[[Array, np.random.Generator], Any] | None = None,
        hess: Callable[[Array], Any] | None = None,
        hessp: Callable[[Array, Array], Any] | None = None,
        shape: tuple[int, ...] | None = None,
        lipschitz: float | None = None,
        smoothness: float | None = None,
        strong_convexity: float | None = None,
        like: Array | None = None,
        slope_error: Callable[[Array], Any] | None = None,
    ) -> None:
        slopes = {"gradient": gradient, "subgradient": subgradient}
        second = {"hess": hess, "hessp": hessp}
        others = {"prox": prox, "stochastic_subgradient": stochastic_subgradient}
        _check_callables(value, slopes, second, others)
        if smoothness is not None and gradient is None:
            raise ValueError("smoothness is a constant of the gradient, but no gradient is given")
        self._value = value
        self._slope_name = "subgradient" if gradient is None else "gradient"
        self._slope: Any = subgradient if gradient is None else gradient
        self._prox = prox
        self._stochastic = stochastic_subgradient
        self._hess, self._hessp = hess, hessp
        self.shape = None if shape is None else checked_shape(shape)
        self.smooth = gradient is not None
        self.proximable = prox is not None
        self.stochastic = stochastic_subgradient is not None
        self._G = _given("lipschitz", lipschitz)
        self._L = _given("smoothness", smoothness)
        self._mu = _given("strong_convexity", strong_convexity)
        self.like = like
        self._slope_error = slope_error

    def _own(self, x: Array) -> Array:
        """Return a copy of a point in the library of the callables."""
        return copy(x if self.like is None else asarray_like(x, self.like))

    def value(self, x: Array) -> float:
        number = as_float("value(x)", self._value(self._own(x)))
        if not math.isfinite(number):
            raise NonFiniteError(f"value(x) must be finite, got {number}")
        return number

    def subgradient(self, x: Array) -> Array:
        return _checked_like(f"{self._slope_name}(x)", self._slope(self._own(x)), x)

    def slope_error(self, x: Array) -> np.ndarray[Any, Any] | None:
        if self._slope_error is None:
            return None
        error = np.asarray(self._slope_error(self._own(x)), dtype=np.float64)
        return error if error.any() else None

    def prox(self, x: Array, step: float) -> Array:
        if self._prox is None:
            raise MissingCapabilityError("FunctionObjective has no prox: give prox=")
        return _checked_like("prox(x, step)", self._prox(self._own(x), step), x)

    def stochastic_subgradient(self, x: Array, rng: np.random.Generator) -> Array:
        if self._stochastic is None:
            raise MissingCapabilityError(
                "FunctionObjective has no stochastic_subgradient: give stochastic_subgradient="
            )
        g = self._stochastic(self._own(x), rng)
        return _checked_like("stochastic_subgradient(x, rng)", g, x)

    @property
    def has_hessian(self) -> bool:
        """Whether there are second derivatives."""
        return self._hess is not None or self._hessp is not None

    def hessian_product(self, x: Array, p: Array) -> Array:
        """Return the product of the second derivatives at ``x`` with ``p``; only where there are some."""
        return self.hessian_at(x)(p)

    def hessian_at(self, x: Array) -> Callable[[Array], Array]:
        """Return the product with the Hessian at ``x``; a matrix is computed once for all products."""
        if self._hess is not None:
            H = check_array("hess(x)", self._hess(self._own(x)), ndim=2, allow_complex=False)
            check_shape("hess(x)", H, (x.shape[0], x.shape[0]))
            if self.like is None:
                return lambda p: H @ p
            return lambda p: asarray_like(H @ asarray_like(p, H), x)
        if self._hessp is None:
            raise MissingCapabilityError("FunctionObjective has no hess: give hess= or hessp=")
        hessp = self._hessp
        return lambda p: _checked_like("hessp(x, p)", hessp(self._own(x), self._own(p)), x)

    def lipschitz(self, ball: Ball | None = None) -> Constant | None:
        return self._G

    def smoothness(self) -> Constant | None:
        return self._L

    def strong_convexity(self) -> Constant | None:
        return self._mu if self._mu is not None and self._mu.value > 0.0 else None


def _check_callables(
    value: Any, slopes: dict[str, Any], second: dict[str, Any], others: dict[str, Any]
) -> None:
    """Check the callables of a function: a value, a slope, and no Hessian without a gradient."""
    check_callable("value", value)
    for name, function in (slopes | second | others).items():
        if function is not None:
            check_callable(name, function)
    if all(slope is None for slope in slopes.values()):
        raise MissingCapabilityError(
            "FunctionObjective needs a gradient or a subgradient, which every method uses. Give "
            "gradient= if the function is smooth, and otherwise subgradient= with any subgradient"
        )
    if slopes["gradient"] is None and any(f is not None for f in second.values()):
        raise ValueError("hess and hessp are derivatives of the gradient, but none is given")


def _given(name: str, value: float | None) -> Constant | None:
    return None if value is None else Constant.given(name, value)


def _checked_like(name: str, output: Any, x: Array) -> Array:
    """Return a copy of the result of a callable in the library and dtype of ``x``, after checks."""
    array = output if is_array(output) else check_array(name, output)
    if tuple(array.shape) != tuple(x.shape):
        raise ValueError(
            f"{name} must return an array of shape {tuple(x.shape)}, got {tuple(array.shape)}"
        )
    if is_complex(array) and not is_complex(x):
        raise TypeError(f"{name} must return a real array for a real point, got {array.dtype}")
    if not isfinite(array):
        raise NonFiniteError(f"{name} must return finite numbers, but it contains NaN or inf")
    return copy(asarray_like(array, x))
