"""Recognition: whether a problem is basis pursuit denoising, a LASSO or sparse logistic regression."""

from __future__ import annotations

import math

import numpy as np

from lopro.basis_pursuit.block_norm import BlockNorm, Repeated
from lopro.basis_pursuit.columns.pieces import Vector
from lopro.basis_pursuit.losses.sparse_loss import SparseLoss
from lopro.basis_pursuit.penalised import PenalisedProblem, SquareRootProblem, unscaled
from lopro.basis_pursuit.problem import NORMS, SparseForm, SparseProblem, residual_ball_of
from lopro.constraints import Box, WholeSpace
from lopro.core.arrays import Array, is_array, is_complex, namespace, to_numpy
from lopro.functions import atoms
from lopro.maps import ArrayMap, LinearMap
from lopro.objectives import L1Norm, LeastSquares, Objective, OfAtom, SquaredDistance, Sum
from lopro.problem import Problem

__all__ = ["in_blocks", "passes_are_expensive", "searches_blocks", "sparse_form", "sparse_loss"]

#: Columns for each row from which on products take most of the time of a search in memory. A tenth and ten
#: times as many take 0.99 and 1.00 times the products of all instances of `benchmarks.constants`, and 3.1
#: times those of a penalised one of 60 x 6000.
_WIDE = 50
#: Smooth losses with positive second derivatives whose conjugates have bounds of their rounding errors.
_LOSSES = (atoms.Logistic,)


def sparse_form(problem: Problem, like: Array | None = None) -> SparseForm | None:
    """Return a problem as one with a norm and a residual; None where it is not of this form.

    Examples
    --------
    >>> import numpy as np, lopro
    >>> from lopro.basis_pursuit.recognition import sparse_form
    >>> f = lopro.objectives.LeastSquares(np.eye(2), np.ones(2)) + 0.5 * lopro.objectives.L1Norm()
    >>> sparse_form(lopro.Problem(f)).lam
    0.5
    """
    if isinstance(problem.objective, NORMS):
        if residual_ball_of(problem.constraint)[0] is None:
            return None
        return SparseProblem.of(problem, problem.start(None) if like is None else like)
    return _penalised(problem, like)


def _penalised(problem: Problem, like: Array | None) -> PenalisedProblem | None:
    f = problem.objective
    if not isinstance(f, Sum):
        return None
    parts = [(s, _as_block_norm(g, problem)) for s, g in map(unscaled, f.parts)]
    fits = [(s, g) for s, g in parts if isinstance(g, LeastSquares) or _is_norm_of_residual(g)]
    norms = [(s, g) for s, g in parts if isinstance(g, NORMS)]
    ridges = [rho for rho in map(_ridge, f.parts) if isinstance(rho, float)]
    if len(fits) != 1 or len(norms) != 1 or 2 + len(ridges) != len(parts):
        return None
    (scale, fit), (weight, g), ridge = fits[0], norms[0], sum(ridges)
    required = _nonnegative(problem)
    if required is None or required.any() != required.all():
        return None
    assert isinstance(fit, LeastSquares | OfAtom)
    square = isinstance(fit, LeastSquares)
    if min(scale, weight, g.least_weight) <= 0.0 or not (square or ridge == 0.0):
        return None
    if ridge > 0.0 and (isinstance(g, BlockNorm) or is_complex(problem.start(None))):
        return None
    kind = PenalisedProblem if square else SquareRootProblem
    weights = g.weights_like(problem.start(None) if like is None else like)
    lam, rho, nonneg = weight / scale, ridge / scale, bool(required.any())
    return kind(g, fit, f.parts, weights, nonneg, lam, rho, scale)


def sparse_loss(problem: Problem) -> SparseLoss | None:
    """Return a problem as a smooth loss with an l1 norm; None where it is not of this form.

    Examples
    --------
    >>> import numpy as np, lopro
    >>> from lopro.basis_pursuit.recognition import sparse_loss
    >>> loss = lopro.objectives.Logistic(np.eye(2), np.array([1, -1]))
    >>> sparse_loss(lopro.Problem(loss + 0.1 * lopro.objectives.L1Norm())).weights
    array([0.1, 0.1])
    """
    f = problem.objective
    if not isinstance(f, Sum) or problem.shape is None or len(problem.shape) != 1:
        return None
    losses, d = [p for p in f.parts if isinstance(p.terms[0].atom, _LOSSES)], problem.shape[0]
    norms = [p for p in f.parts if isinstance(unscaled(p)[1], L1Norm)]
    others = [p for p in f.parts if p not in losses and p not in norms]
    squares = [rho for rho in map(_ridge, others) if rho is not None]
    if len(losses) != 1 or len(norms) != 1 or len(squares) < len(others):
        return None
    loss, *own = losses[0].terms
    ridges = np.full(d, sum(term.scale for term in own))
    for rho in squares:
        ridges = ridges + rho
    required = _nonnegative(problem)
    if required is None or loss.map is None or is_complex(loss.D.like):
        return None
    scale, norm = unscaled(norms[0])
    assert isinstance(norm, L1Norm)
    weights = scale * to_numpy(norm.weights_like(np.zeros(d))).astype(np.float64)
    free = np.flatnonzero(weights == 0.0)
    if free.size > 1 or bool((ridges[free] > 0.0).any()) or bool(required[free].any()):
        return None
    if required.any() and np.count_nonzero(required) + free.size < d:
        return None
    weights[free] = math.inf
    at = int(free[0]) if free.size else None
    return SparseLoss(f.parts, loss, weights, ridges, norm, bool(required.any()), at)


def _nonnegative(problem: Problem) -> Vector | None:
    """Return for each entry whether it must be nonnegative; None where there are other constraints."""
    members, shape = problem.constraint.members(), problem.shape or (0,)
    if all(isinstance(m, WholeSpace) for m in members):
        return np.zeros(shape, dtype=bool)
    box = members[0]
    if len(members) != 1 or not isinstance(box, Box) or is_complex(problem.start(None)):
        return None
    if box.is_orthant:
        return np.ones(shape, dtype=bool)
    bounds = (to_numpy(v) if is_array(v) else v for v in (box.lower, box.upper))
    lower, upper = (np.broadcast_to(v, shape) for v in bounds)
    if not np.isposinf(upper).all() or not (np.isneginf(lower) | (lower == 0.0)).all():
        return None
    return np.asarray(lower == 0.0)


def _ridge(f: Objective) -> float | Vector | None:
    """Return the weights of a sum of squares of the coefficients: one, or one each; None for others."""
    scale, g = unscaled(f)
    if not isinstance(g, SquaredDistance) or bool(namespace(g.z).any(g.z != 0.0)):
        return None
    return scale if g.weights is None else scale * to_numpy(g.weights).astype(np.float64)


def _as_block_norm(f: Objective, problem: Problem) -> Objective:
    """Return the atom of the norms of groups of ``x`` as a `BlockNorm`; other functions as they are."""
    if not isinstance(f, OfAtom) or not isinstance(f.atom, atoms.GroupNorm):
        return f
    if f.D is not None or f.offset is not None or problem.shape is None:
        return f
    x = problem.start(None)
    if not isinstance(x, np.ndarray) or x.ndim != 1:
        return f
    return BlockNorm(np.arange(x.size) // f.atom.group_size, f.atom.weight)


def _is_norm_of_residual(f: Objective) -> bool:
    """Whether a function is the Euclidean norm of ``D x - b``."""
    if not isinstance(f, OfAtom) or not isinstance(f.atom, atoms.GroupNorm) or f.D is None:
        return False
    alone = f.atom.group_size == f.D.shape[0] and f.atom.weight == 1.0
    return alone and f.terms[0].offset is not None


def in_blocks(form: SparseForm) -> bool:
    """Whether coefficients have directions instead of signs: complex numbers, groups, rows."""
    return is_complex(form.like) or isinstance(form.objective, BlockNorm)


def searches_blocks(form: SparseForm) -> bool:
    """Whether the search over blocks takes a problem: its matrix is one of NumPy or SciPy."""
    base = form.A.base if isinstance(form.A, Repeated) else form.A
    return base.in_memory and isinstance(base.like, np.ndarray)


def passes_are_expensive(A: LinearMap) -> bool:
    """Whether fewer products with all columns are worth more work on a few.

    For stored and distributed data, and in memory for matrices with many more columns than rows.
    """
    return not A.in_memory or (isinstance(A, ArrayMap) and A.shape[1] >= _WIDE * A.shape[0])
