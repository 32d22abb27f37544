"""Data of the LASSO family and of basis pursuit around their solution."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from fuzz.judge.points import Known

__all__ = ["ENTRIES", "Array", "Sample", "draw"]

Array = np.ndarray[Any, Any]
Rng = np.random.Generator

#: The calls: ``lasso`` with lam, tau, a ridge or the root of the square; ``bpdn`` and joint sparsity; paths.
ENTRIES = ("lam", "tau", "ridge", "root", "path", "bpdn", "joint", "bpdn_path")


@dataclass(frozen=True)
class Sample:
    """``A``, ``y`` (a matrix for joint sparsity), weights of groups, a number, and the solution.

    The number is lam, tau or sigma. ``groups`` holds the group of each coefficient.
    """

    entry: str
    A: Array
    y: Array
    weights: Array
    groups: Array
    number: float
    solution: Array
    ridge: float = 0.0
    nonneg: bool = False

    @property
    def in_ball(self) -> bool:
        """Whether the residual is a constraint."""
        return self.entry in ("bpdn", "joint", "bpdn_path")

    def norm(self, x: Array) -> float:
        """Return the sum of the weights times the lengths of groups."""
        squares = np.zeros(len(self.weights))
        np.add.at(squares, self.groups, (x * x).reshape(len(x), -1).sum(axis=1))
        return float(self.weights @ np.sqrt(squares))

    def residual(self, x: Array) -> float:
        return float(np.linalg.norm(self.A @ x - self.y))

    def value(self, x: Array, number: float | None = None) -> float:
        """Return the objective of the call, for another weight of the penalty where one is given."""
        lam = self.number if number is None else number
        if self.in_ball:
            return self.norm(x)
        r = self.residual(x)
        if self.entry == "tau":
            return r
        fit = r if self.entry == "root" else 0.5 * r * r
        return fit + lam * self.norm(x) + 0.5 * self.ridge * float(x @ x)

    def excess(self, x: Array, number: float | None = None) -> float:
        """Return the largest relative violation."""
        side = self.number if number is None else number
        size = float(np.abs(x).max(initial=0.0))
        below = float(-x.min(initial=0.0) / size) if self.nonneg and size > 0.0 else 0.0
        if self.entry == "tau":
            return max(below, (self.norm(x) - side) / side)
        if not self.in_ball:
            return below
        length = float(np.linalg.norm(self.y))
        products = float(np.linalg.norm(np.abs(self.A) @ np.abs(x)))
        scale = max(side, 1e-6 * length) if side > 0.0 else length or products or 1.0
        # A product with x is rounded: what that may be is no violation.
        return max(below, (self.residual(x) - side - 1e-14 * products) / scale)

    def known(self, others: list[Array], number: float | None = None) -> Known:
        """Return the known properties of the problem; other points count where they are feasible."""
        points = [x for x in (self.solution, *others) if self.excess(x, number) <= 1e-14]
        typical = max(self.value(x, number) for x in (self.solution, 0.0 * self.solution))

        def value(x: Any) -> float:
            return self.value(x, number)

        def excess(x: Any) -> float:
            return self.excess(x, number)

        return Known(value, excess, value, points, typical, self.solution.shape, rounding=1e-12)


def draw(rng: Rng) -> Sample:
    """Return a sample; units of columns and of y are powers of two."""
    entry = str(rng.choice(ENTRIES))
    m, d = int(rng.integers(2, 16)), int(rng.integers(2, 31))
    A = rng.integers(-4, 5, (m, d)).astype(float)
    k = int(rng.integers(1, 4)) if entry == "joint" else 1
    nonneg = entry != "joint" and rng.random() < 0.2
    grouped = not nonneg and entry in ("lam", "root", "bpdn", "joint") and rng.random() < 0.4
    groups = np.sort(rng.integers(0, max(1, d // 3), d)) if grouped else np.arange(d)
    groups = np.unique(groups, return_inverse=True)[1]
    r = rng.integers(-3, 4, (m, k)).astype(float)
    r[0] += 7.0 - r[0] * (r[0] == -7.0)
    if entry in ("bpdn", "bpdn_path") and not grouped and rng.random() < 0.3:
        _free_columns(rng, A, r[:, 0])
    slope = A.T @ r
    X = _solution(rng, slope, groups, nonneg)
    sizes = _lengths(slope if not nonneg else np.maximum(slope, 0.0), groups)
    zero = rng.random() < 0.1
    X = 0.0 * X if zero else X
    active = _lengths(X, groups) > 0.0
    ridge, lam = 0.0, float(2.0 ** rng.integers(-3, 4))
    if entry == "ridge":
        ridge = float(0.5 * np.min(sizes[active] / _lengths(X, groups)[active], initial=1.0))
        sizes = sizes - ridge * _lengths(X, groups)
    y = A @ X + r
    room = np.where(active, 0.0, rng.integers(0, 4, len(sizes)).astype(float))
    fixed = entry in ("bpdn", "bpdn_path", "joint") and rng.random() < 0.3
    weights = (sizes + room) / lam
    if entry == "root":
        weights = weights / math.sqrt(float((r * r).sum()))
    if fixed:  # an equation: any multiplier will do
        y = A @ X
    free = weights <= 1e-12
    if free.any() and not (entry in ("bpdn", "bpdn_path") and not grouped):
        weights = np.where(free, 1.0, weights)
    number = {"tau": 0.0}.get(entry, lam)
    if entry in ("bpdn", "bpdn_path", "joint"):
        number = 0.0 if fixed else float(np.nextafter(np.linalg.norm(A @ X - y), np.inf))
    X, y = (X, y) if entry == "joint" else (X[:, 0], y[:, 0])
    found = Sample(entry, A, y, weights, groups, number, X, ridge, nonneg)
    if entry == "tau":
        tau = float(np.nextafter(found.norm(X), np.inf))
        found = Sample(entry, A, y, weights, groups, tau or 1.0, X, ridge, nonneg)
    return found if grouped or ridge or entry == "joint" else _in_units(rng, found)


def _free_columns(rng: Rng, A: Array, r: Array) -> None:
    """Make one or two columns orthogonal to the residual: their weights are 0."""
    for j in rng.choice(A.shape[1], 2):
        A[:, j] = A[:, j] * (r @ r) - (A[:, j] @ r) * r


def _lengths(X: Array, groups: Array) -> Array:
    squares = np.zeros(int(groups.max()) + 1)
    np.add.at(squares, groups, (X * X).sum(axis=1))
    return np.sqrt(squares)


def _solution(rng: Rng, slope: Array, groups: Array, nonneg: bool) -> Array:
    """Return a multiple of the slope in some groups, 0 in the others."""
    count = int(groups.max()) + 1
    share = rng.integers(1, 5, count) * (rng.random(count) < float(rng.choice([0.1, 0.3, 0.6])))
    sizes = np.abs(slope) if count == len(groups) and slope.shape[1] == 1 else 1.0
    X = share[groups][:, None] * slope / np.where(np.asarray(sizes) > 0.0, sizes, 1.0)
    return np.maximum(X, 0.0) if nonneg else X


def _in_units(rng: Rng, s: Sample) -> Sample:
    """Return the sample with some columns, and y, in other units."""
    if rng.random() < 0.5:
        return s
    d = s.A.shape[1]
    u = np.where(rng.random(d) < 0.5, 2.0 ** rng.integers(-20, 21, d), 1.0)
    return Sample(
        s.entry, s.A * u, s.y, s.weights * u, s.groups, s.number, s.solution / u, 0.0, s.nonneg
    )
