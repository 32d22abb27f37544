"""A constraint from plain callables, with a projection that uses only these."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from lopro.constraints.base import Constraint
from lopro.core.arrays import Array, copy, eps, is_array, is_single, isfinite
from lopro.core.validation import check_callable, check_number, check_shape, checked_shape
from lopro.errors import ProjectionError
from lopro.functions import Ball, Constant
from lopro.projections.generic import project_sublevel

__all__ = ["FunctionConstraint"]


class FunctionConstraint(Constraint):
    """The set ``{x : c(x) <= 0}`` of a convex function given by callables.

    Parameters
    ----------
    value : callable
        ``c(x)``, a finite real number for every ``x``.
    subgradient : callable
        One subgradient of ``c`` at ``x``, of the shape of ``x``; the gradient where ``smooth``.
    project : callable, optional
        The exact projection on the set. Without it a generic method projects by values and
        subgradients alone.
    rho : float, optional
        A regularity constant: ``dist(x, set) <= max(c(x), 0) / rho`` for every ``x``.
    smooth : bool
        Whether ``c`` is differentiable with a locally Lipschitz gradient.
    shape : tuple of int, optional
        The shape of points.
    lipschitz, smoothness, infimum : float, optional
        Global constants of ``c``: of its values, of its gradient, and a lower bound.
    x_scale : float, optional
        A length that is typical of the points of the set; tolerances are relative to it near zero.

    Examples
    --------
    >>> import numpy as np, lopro.constraints as lc
    >>> disc = lc.FunctionConstraint(
    ...     lambda x: float(x @ x) - 1.0,
    ...     lambda x: 2.0 * x,
    ...     smooth=True,
    ...     smoothness=2.0,
    ...     infimum=-1.0,
    ... )
    >>> disc.project(np.array([3.0, 4.0])).round(9)
    array([0.6, 0.8])
    """

    def __init__(
        self,
        value: Callable[[Array], float],
        subgradient: Callable[[Array], Array],
        project: Callable[[Array], Array] | None = None,
        rho: float | None = None,
        smooth: bool = False,
        shape: tuple[int, ...] | None = None,
        lipschitz: float | None = None,
        smoothness: float | None = None,
        infimum: float | None = None,
        x_scale: float | None = None,
    ) -> None:
        check_callable("value", value)
        check_callable("subgradient", subgradient)
        if project is not None:
            check_callable("project", project)
        self._value, self._subgradient, self._project = value, subgradient, project
        self.smooth = bool(smooth)
        self.shape = None if shape is None else checked_shape(shape)
        self._rho = _given("rho", rho)
        if self._rho is not None and self._rho.value == 0.0:
            raise ValueError("rho must be positive, got 0")
        self._lipschitz = _given("lipschitz", lipschitz)
        self._smoothness = _given("smoothness", smoothness)
        self._infimum = _given("infimum", infimum, minimum=-math.inf)
        if x_scale is not None:
            check_number("x_scale", x_scale, minimum=0.0, exclusive=True)
        self._x_scale = x_scale

    def __repr__(self) -> str:
        return f"FunctionConstraint(value={self._value!r}, smooth={self.smooth})"

    def value(self, x: Array) -> float:
        result: Any = self._value(x)
        if is_array(result) and math.prod(result.shape) != 1:
            raise ValueError(f"value must return a scalar, got shape {tuple(result.shape)}")
        try:
            return float(result)
        except (TypeError, ValueError):
            raise TypeError(f"value must return a real number, got {result!r}") from None

    def subgradient(self, x: Array) -> Array:
        return self._checked("subgradient", self._subgradient(x), x)

    def projector(self) -> Callable[[Array], Array]:
        """Return the projection for a sequence of nearby points; each starts from the previous result."""
        last: Array | None = None

        def project(x: Array) -> Array:
            nonlocal last
            last = self._nearest(x, last)
            return last

        return project

    def project(self, x: Array) -> Array:
        return self._nearest(x, None)

    def _nearest(self, x: Array, near: Array | None) -> Array:
        if not math.isfinite(self.value(x)):
            raise ValueError(f"value must return a finite number, got {self.value(x)}")
        if self._project is None:
            return project_sublevel(x, self.value, self.subgradient, smooth=self.smooth, near=near)
        z = self._checked("project", self._project(x), x)
        if not isfinite(z):
            raise ProjectionError("project returned NaN or inf")
        left = self.violation(z)
        if left > max(1e-7, 1e2 * eps(z)):
            raise ProjectionError(
                f"project must return a feasible point, but it leaves a relative violation of "
                f"{left:.3g}"
            )
        return z

    def cuts_by_slopes(self, x: Array) -> bool:
        """Whether a projection of this point requires many values and subgradients.

        In single precision rounding prevents Newton's method on smooth functions from converging.
        """
        return self._project is None and (not self.smooth or is_single(x))

    def _checked(self, name: str, result: Any, x: Array) -> Array:
        """Return a copy of the result of a callable after checks; no array is shared with the caller."""
        if not is_array(result):
            raise TypeError(f"{name} must return an array, got {result!r}")
        if tuple(result.shape) != tuple(x.shape):
            check_shape(f"the result of {name}", result, tuple(x.shape))
        return copy(result)

    def lipschitz(self, ball: Ball | None = None) -> Constant | None:
        return self._lipschitz

    def smoothness(self) -> Constant | None:
        return self._smoothness

    def regularity(self) -> Constant | None:
        return self._rho

    def typical_size(self) -> float | None:
        return self._x_scale

    def infimum(self) -> Constant | None:
        return self._infimum


def _given(name: str, value: float | None, minimum: float = 0.0) -> Constant | None:
    return None if value is None else Constant.given(name, value, minimum=minimum)
