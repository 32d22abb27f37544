"""Polyhedra, rows on matrices, boxes and second-order cones for the catalogue of constraints."""

from __future__ import annotations

from typing import Any

import numpy as np
from support.catalogue_objectives import Convert
from support.constraint_case import ConstraintCase, Draw

from lopro.constraints import (
    Affine,
    Constraint,
    MaxForm,
    Polyhedron,
    SecondOrderCone,
)

ROWS = np.random.default_rng(20).standard_normal((5, 4))
BOUNDS = 0.5 + np.random.default_rng(21).random(5)
#: Duplicate rows, a row of zeros, and rows of very different length.
ODD_ROWS = np.vstack([ROWS[:3] * np.array([[1e-2], [1.0], [30.0]]), ROWS[:1], np.zeros((1, 4))])
ODD_BOUNDS = np.concatenate([BOUNDS[:3], BOUNDS[:1], [0.5]])


def inside(C: Any, b: Any) -> Draw:
    """Points on rays from the origin, which every system here contains."""

    def draw(rng: np.random.Generator) -> Any:
        u = rng.standard_normal(C.shape[1])
        reach = b / np.maximum(C @ u, 1e-300)
        return 0.95 * rng.random() * min(2.0, float(reach[C @ u > 0].min(initial=2.0))) * u

    return draw


def polyhedron(name: str, C: Any, b: Any, form: Any, wrap: Any = None) -> ConstraintCase:
    def build(of: Convert) -> Constraint:
        return Polyhedron(of(C) if wrap is None else wrap(of, C), of(b), form)

    return ConstraintCase(name, build, inside(C, b))


def affine(name: str, form: Any, wrap: Any = None) -> ConstraintCase:
    """Rows with two sides, with an upper one only, and with a lower one only."""
    upper = BOUNDS.copy()
    lower = np.where(np.arange(5) < 3, -0.7 * BOUNDS, -np.inf)
    lower[4], upper[4] = -BOUNDS[4], np.inf
    sides = np.vstack([ROWS[:4], -ROWS[:3], -ROWS[4:]])
    limits = np.concatenate([BOUNDS[:4], 0.7 * BOUNDS[:3], BOUNDS[4:]])

    def build(of: Convert) -> Constraint:
        return Affine(of(ROWS) if wrap is None else wrap(of, ROWS), lower, upper, form=form)

    return ConstraintCase(name, build, inside(sides, limits))


def on_matrices(name: str, wrap: Any = None) -> ConstraintCase:
    """The same rows, on matrices with two rows and two columns."""
    flat = affine(name, MaxForm())

    def build(of: Convert) -> Constraint:
        M = of(ROWS) if wrap is None else wrap(of, ROWS)
        set_ = flat.numpy
        assert isinstance(set_, Affine)
        return Affine(M, set_.lower, set_.upper, shape=(2, 2))

    return ConstraintCase(name, build, lambda rng: flat.feasible(rng).reshape(2, 2))


def entries() -> ConstraintCase:
    """Four of six entries: one fixed, one with both sides, one with an upper and one with a lower side."""
    lower, upper = np.array([0.5, -1.0, -np.inf, 2.0]), np.array([0.5, 1.0, 3.0, np.inf])
    index = np.array([0, 1, 1, 0]), np.array([0, 2, 0, 1])

    def draw(rng: np.random.Generator) -> Any:
        x = rng.standard_normal((2, 3))
        x[index] = np.minimum(np.maximum(x[index], lower), upper)
        return x

    return ConstraintCase(
        "affine-entries",
        lambda of: Affine.entries(index, of(lower), of(upper), shape=(2, 3)),
        draw,
    )


def box_of_matrices() -> ConstraintCase:
    low = np.array([[-1.0, 0.0, -np.inf], [0.0, 0.0, -2.0]])
    high = np.array([[1.0, 0.5, 2.0], [np.inf, 3.0, -1.0]])
    span = np.where(np.isfinite(high - low), high - low, 2.0)

    def draw(rng: np.random.Generator) -> Any:
        corner = np.where(np.isfinite(low), low, high)
        sign = np.where(np.isfinite(low), 1.0, -1.0)
        return corner + sign * span * rng.random((2, 3))

    return ConstraintCase(
        "box-matrix", lambda of: Polyhedron.box(of(low), of(high), MaxForm()), draw
    )


def second_order(
    name: str, c: Any, wrap: Any = None, b: Any = None, d: float = 1.0
) -> ConstraintCase:
    """``|A x + b| <= c'x + d`` with the origin, or the apex at ``x = 0``, among its points."""
    A, c = ROWS[:3], np.asarray(c, dtype=float)
    b = np.zeros(3) if b is None else np.asarray(b)

    def draw(rng: np.random.Generator) -> Any:
        u = rng.standard_normal(4)
        u = u if c @ u >= 0.0 else -u
        inside = [
            t
            for t in np.geomspace(1e-3, 10.0, 60)
            if np.linalg.norm(t * A @ u + b) <= t * c @ u + d
        ]
        return u * (max(inside, default=0.0) * rng.random())

    def build(of: Convert) -> Constraint:
        return SecondOrderCone(of(A) if wrap is None else wrap(of, A), of(b), of(c), d)

    return ConstraintCase(name, build, draw)


def ice_cream() -> ConstraintCase:
    """The cone itself, ``|(x_2, x_3)| <= x_1``, with both sides multiplied by 3."""
    A, c = 3.0 * np.eye(3)[1:], 3.0 * np.eye(3)[0]

    def draw(rng: np.random.Generator) -> Any:
        u = rng.standard_normal(2)
        return np.array([float(np.linalg.norm(u)) * (1.0 + rng.random()), *u])

    return ConstraintCase("cone-closed-form", lambda of: SecondOrderCone(of(A), None, of(c)), draw)


def box(form: Any) -> ConstraintCase:
    low, high = np.array([-1.0, 0.0, -np.inf]), np.array([1.0, 0.5, 2.0])
    return ConstraintCase(
        f"box-{type(form).__name__}",
        lambda of: Polyhedron.box(of(low), of(high), form),
        lambda rng: np.array([-1.0, 0.0, -3.0]) + np.array([2.0, 0.5, 5.0]) * rng.random(3),
    )
