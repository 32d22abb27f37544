"""Objectives as second-order methods take them: smooth functions, and norms of linear images."""

from __future__ import annotations

import math
from functools import singledispatch
from typing import TypeAlias

import numpy as np
import scipy  # parts of it load when first used

from lopro.errors import MissingCapabilityError
from lopro.methods.second_order.callables import SmoothCallable
from lopro.methods.second_order.form_data import (
    MapOrNone,
    host,
    matrix,
    matrix_or_operator,
    on_device,
    scaled,
)
from lopro.newton import smooth as kernel
from lopro.newton.parts import L1, GroupNorms, Part
from lopro.newton.smooth import Smooth
from lopro.objectives import (
    FunctionObjective,
    GroupNorm,
    Huber,
    L1Norm,
    LeastSquares,
    Linear,
    Logistic,
    Objective,
    Quadratic,
    Scaled,
    SquaredDistance,
    Sum,
)

__all__ = [
    "Norm",
    "callables",
    "has_second_derivatives",
    "norm_form",
    "objective_form",
    "smooth_form",
]

#: A norm and the map whose values it takes; None is the identity.
Norm: TypeAlias = tuple[Part, MapOrNone]


def objective_form(f: Objective, size: int) -> tuple[Smooth, list[Norm]]:
    """Return an objective as a smooth function and norms.

    Examples
    --------
    >>> import lopro
    >>> from lopro.methods.second_order.form_objectives import objective_form
    >>> smooth, [(norm, D)] = objective_form(
    ...     lopro.objectives.Scaled(2.0, lopro.objectives.L1Norm()), 3
    ... )
    >>> norm.weights, D
    (array([2., 2., 2.]), None)
    """
    parts = Sum(f).parts  # multiples of sums are taken apart, too
    norms = [norm_form(part, 1.0, size) for part in parts]
    smooth = [smooth_form(p, 1.0) for p, norm in zip(parts, norms, strict=True) if norm is None]
    found = [norm for norm in norms if norm is not None]
    if not smooth:
        return kernel.Linear(np.zeros(size)), found
    return (smooth[0] if len(smooth) == 1 else kernel.Sum(smooth)), found


def callables(f: Objective) -> list[FunctionObjective]:
    """Return the parts of an objective that are functions of a user."""
    if isinstance(f, Sum):
        return [found for part in f.parts for found in callables(part)]
    if isinstance(f, Scaled):
        return callables(f.f)
    return [f] if isinstance(f, FunctionObjective) else []


def has_second_derivatives(f: Objective) -> bool:
    """Whether no part of an objective is a callable without second derivatives."""
    return all(part.has_hessian for part in callables(f))


@singledispatch
def norm_form(f: Objective, factor: float, size: int) -> Norm | None:
    """Return ``factor * f`` for a norm of a linear image, None for others."""
    return None


@norm_form.register
def _(f: L1Norm, factor: float, size: int) -> Norm | None:
    return L1(factor * f.weights_like(np.zeros(size))), None


@norm_form.register
def _(f: GroupNorm, factor: float, size: int) -> Norm | None:
    D = matrix_or_operator(f.D)
    if f.group_size == 1:
        return L1(factor, f.groups), D
    return GroupNorms(factor, f.groups, f.group_size), D


@norm_form.register
def _(f: Scaled, factor: float, size: int) -> Norm | None:
    # Nothing times a norm is no norm: the smooth zero is simpler.
    return norm_form(f.f, factor * f.factor, size) if f.factor > 0.0 else None


@singledispatch
def smooth_form(f: Objective, factor: float) -> Smooth:
    """Return ``factor * f`` with its second derivatives; register a type of your own with ``register``."""
    raise MissingCapabilityError(
        f"the objective {f!r} has no second derivatives at hand; lopro.Auto() needs none"
    )


@smooth_form.register
def _(f: LeastSquares, factor: float) -> Smooth:
    root = float(np.sqrt(factor))
    kind = kernel.LeastSquaresOnDevice if on_device(f.A) else kernel.LeastSquares
    return kind(scaled(root, matrix_or_operator(f.A)), root * host(f.b))


@smooth_form.register
def _(f: Quadratic, factor: float) -> Smooth:
    if on_device(f.P):
        there = scaled(factor, matrix_or_operator(f.P))
        return kernel.QuadraticOnDevice(there, factor * host(f.q), factor * f.constant)
    P, q = matrix(f.P), host(f.q)
    P = P if factor == 1.0 else factor * P
    return kernel.Quadratic(P, factor * q, factor * f.constant)


@smooth_form.register
def _(f: Linear, factor: float) -> Smooth:
    return kernel.Linear(factor * host(f.a))


@smooth_form.register
def _(f: SquaredDistance, factor: float) -> Smooth:
    return kernel.SquaredDistance(host(f.z), factor)


@smooth_form.register
def _(f: Logistic, factor: float) -> Smooth:
    n, d = f.X.shape
    kind = kernel.LogisticOnDevice if on_device(f.X) else kernel.Logistic
    loss = kind(matrix_or_operator(f.X), host(f.labels), factor / n)
    if f.l2 == 0.0:
        return loss
    return kernel.Sum([loss, kernel.SquaredDistance(np.zeros(d), factor * f.l2)])


@smooth_form.register
def _(f: Huber, factor: float) -> Smooth:
    if f.shape is None:
        raise MissingCapabilityError("second-order methods take vectors of a known size")
    D = scipy.sparse.eye_array(math.prod(f.shape), format="csr") if f.D is None else matrix(f.D)
    b = np.zeros(D.shape[0]) if f.b is None else host(f.b)
    return kernel.Huber(D, b, f.delta, factor)


@smooth_form.register
def _(f: FunctionObjective, factor: float) -> Smooth:
    if not f.smooth or f.shape is None:
        raise MissingCapabilityError("the objective has no gradient, or points of unknown size")
    return SmoothCallable(f, f.shape[0], factor)


@smooth_form.register
def _(f: Scaled, factor: float) -> Smooth:
    return smooth_form(f.f, factor * f.factor)


@smooth_form.register
def _(f: Sum, factor: float) -> Smooth:
    parts = [smooth_form(part, factor) for part in f.parts]
    return parts[0] if len(parts) == 1 else kernel.Sum(parts)
