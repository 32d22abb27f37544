"""Sizes in the units of a problem: what first penalties are made of."""

from __future__ import annotations

import numpy as np

from lopro.functions.atoms import Ball, Interval, Step
from lopro.functions.term import Term
from lopro.newton import curvature
from lopro.newton.arrays import norm
from lopro.newton.lagrangian import Point
from lopro.newton.problem import Composite

__all__ = ["mean_curvature", "squared_norms"]


def squared_norms(term: Term) -> Step:
    """Return the squared norms of the rows, their mean where the part has one penalty for all."""
    norms = term.row_norms
    squares = norms * norms
    if term.separable:
        return np.where(squares > 0.0, squares, 1.0)
    mean = float(squares.mean()) if squares.size else 1.0
    return mean if mean > 0.0 else 1.0


def mean_curvature(problem: Composite, point: Point) -> float:
    """Return a scale in units of ``f`` over those of ``x`` squared: from the Hessian, else the gradient."""
    pieces = problem.smooth.curvature(point.x, point.image)
    mean = curvature.trace(pieces, problem.size) / problem.size
    if mean > 0.0:
        return mean
    own = norm(problem.smooth.gradient(point.x, point.image))
    slope = max(own, problem.steepness())
    length = max([norm(point.x), *(_length(term) for term in problem.terms)])
    if length == 0.0:  # zero is feasible: the bounds still tell in which units x is
        length = max((_farthest_bound(term) for term in problem.terms), default=0.0)
    return slope / length if slope > 0.0 and length > 0.0 else 1.0


def _length(term: Term) -> float:
    """Return the size of x that the data of a term suggest: how far its rows are from zero."""
    zero = np.zeros(term.size)
    offset = term.prox(zero, 1.0 / np.ones(term.size) if term.separable else 1.0)
    return float((np.abs(offset) / np.sqrt(squared_norms(term))).max(initial=0.0))


def _farthest_bound(term: Term) -> float:
    """Return how far from zero the farthest row of an interval or point of a ball is; 0 for other terms."""
    if isinstance(term.atom, Ball):
        centre = 0.0 if term.offset is None else norm(term.offset)
        return (centre + term.atom.radius) / float(np.sqrt(squared_norms(term)))
    if not isinstance(term.atom, Interval):
        return 0.0
    bounds = np.abs(np.stack([term.atom.lower, term.atom.upper]))
    bounds = np.where(np.isfinite(bounds), bounds, 0.0)
    return float((bounds / np.sqrt(squared_norms(term))).max(initial=0.0))
