"""Random problems in two forms: as a problem of lopro, and in CVXPY.

Each maker of an objective or of a constraint returns the lopro object together with a function that
builds the same thing from a CVXPY variable. `cases` pairs them all, with sizes from 2 to 60.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import cvxpy as cp
import numpy as np

import lopro
from lopro import constraints as lc
from lopro import objectives as lo

Rng = np.random.Generator


@dataclass
class Model:
    """A lopro object and its CVXPY twin."""

    lopro: Any
    cvxpy: Callable[[cp.Expression], Any]
    coercive: bool = True  # objectives: are the sublevel sets bounded?
    bounded: bool = False  # constraints: is the set bounded?
    radius: float | None = None  # constraints: a bound that lopro cannot derive


@dataclass
class Case:
    """One problem, with its name and the kind of start it gets."""

    name: str
    problem: lopro.Problem
    variable: cp.Variable
    twin: cp.Problem
    at_optimum: bool


# Objectives on vectors.


def l1(rng: Rng, d: int) -> Model:
    return Model(lo.L1Norm(), cp.norm1)


def weighted_l1(rng: Rng, d: int) -> Model:
    w = rng.uniform(0.2, 3.0, d)
    return Model(lo.L1Norm(w), lambda x: cp.sum(cp.multiply(w, cp.abs(x))))


def linear(rng: Rng, d: int) -> Model:
    a = rng.standard_normal(d)
    return Model(lo.Linear(a), lambda x: a @ x, coercive=False)


def tall_least_squares(rng: Rng, d: int) -> Model:
    A, b = rng.standard_normal((2 * d + 3, d)), 3.0 * rng.standard_normal(2 * d + 3)
    return Model(lo.LeastSquares(A, b), lambda x: 0.5 * cp.sum_squares(A @ x - b))


def deficient_least_squares(rng: Rng, d: int) -> Model:
    r = max(1, d // 2)
    A = rng.standard_normal((d + 2, r)) @ rng.standard_normal((r, d)) / np.sqrt(d)
    b = 3.0 * rng.standard_normal(d + 2)
    return Model(lo.LeastSquares(A, b), lambda x: 0.5 * cp.sum_squares(A @ x - b), coercive=False)


def quadratic(rng: Rng, d: int) -> Model:
    B = rng.standard_normal((d, d))
    P, q = B @ B.T / d + 0.1 * np.eye(d), 2.0 * rng.standard_normal(d)
    return Model(lo.Quadratic(P, q), lambda x: 0.5 * cp.quad_form(x, cp.psd_wrap(P)) + q @ x)


def singular_quadratic(rng: Rng, d: int) -> Model:
    B = rng.standard_normal((d, max(1, d // 2)))
    P, q = B @ B.T / d, rng.standard_normal(d)
    twin = lambda x: 0.5 * cp.quad_form(x, cp.psd_wrap(P)) + q @ x  # noqa: E731
    return Model(lo.Quadratic(P, q), twin, coercive=False)


def logistic(rng: Rng, d: int, l2: float = 0.0) -> Model:
    X, y = rng.standard_normal((3 * d + 5, d)), np.sign(rng.standard_normal(3 * d + 5))

    def twin(w: cp.Expression) -> Any:
        return cp.sum(cp.logistic(cp.multiply(-y, X @ w))) / y.size + l2 / 2 * cp.sum_squares(w)

    return Model(lo.Logistic(X, y, l2=l2), twin, coercive=l2 > 0.0)


def ridge_logistic(rng: Rng, d: int) -> Model:
    return logistic(rng, d, l2=0.1)


def distance(rng: Rng, d: int) -> Model:
    z = 3.0 * rng.standard_normal(d)
    return Model(lo.SquaredDistance(z), lambda x: 0.5 * cp.sum_squares(x - z))


def lasso(rng: Rng, d: int) -> Model:
    ls = tall_least_squares(rng, d)
    return Model(ls.lopro + 2.0 * lo.L1Norm(), lambda x: ls.cvxpy(x) + 2.0 * cp.norm1(x))


def wide_lasso(rng: Rng, d: int) -> Model:
    A, b = rng.standard_normal((max(1, d // 2), d)), rng.standard_normal(max(1, d // 2))
    f = lo.LeastSquares(A, b) + 0.3 * lo.L1Norm()
    return Model(f, lambda x: 0.5 * cp.sum_squares(A @ x - b) + 0.3 * cp.norm1(x))


def pseudo_huber(rng: Rng, d: int) -> Model:
    z = 3.0 * rng.standard_normal(d)

    def value(x: Any) -> float:
        return float(np.sum(np.sqrt(1.0 + (x - z) ** 2) - 1.0))

    f = lo.FunctionObjective(
        value, gradient=lambda x: (x - z) / np.sqrt(1.0 + (x - z) ** 2), shape=(d,)
    )
    twin = lambda x: cp.sum(cp.norm(cp.vstack([x - z, np.ones(d)]), 2, axis=0)) - d  # noqa: E731
    return Model(f, twin, coercive=False)


def largest_affine(rng: Rng, d: int) -> Model:
    """The largest of some affine functions, known to lopro by its subgradients alone."""
    A, b = rng.standard_normal((d + 2, d)), rng.standard_normal(d + 2)
    f = lo.FunctionObjective(
        lambda x: float((A @ x + b).max()),
        subgradient=lambda x: A[int((A @ x + b).argmax())].copy(),
        shape=(d,),
    )
    return Model(f, lambda x: cp.max(A @ x + b), coercive=False)


VECTOR_OBJECTIVES = (
    l1,
    weighted_l1,
    linear,
    tall_least_squares,
    deficient_least_squares,
    quadratic,
    singular_quadratic,
    logistic,
    ridge_logistic,
    distance,
    lasso,
    wide_lasso,
    pseudo_huber,
)

# Constraints on vectors. All of them are shifted away from the origin or cut it off, so that they matter.


def polyhedron(rng: Rng, d: int, *, form: Any = None, duplicates: bool = False) -> Model:
    rows = int(rng.integers(1, 2 * d + 2))
    C, z = rng.standard_normal((rows, d)), rng.standard_normal(d)
    b = C @ z + rng.uniform(0.0, 0.5, rows)
    if duplicates:
        C, b = np.vstack([C, C[:1], 2.0 * C[:1]]), np.concatenate([b, b[:1], 2.0 * b[:1]])
    set_ = lc.Polyhedron(C, b) if form is None else lc.Polyhedron(C, b, form)
    return Model(set_, lambda x: [C @ x <= b])


def norm_polyhedron(rng: Rng, d: int) -> Model:
    return polyhedron(rng, d, form=lc.NormForm())


def duplicate_rows(rng: Rng, d: int) -> Model:
    return polyhedron(rng, d, duplicates=True)


def box(rng: Rng, d: int) -> Model:
    lower = rng.standard_normal(d) - 0.5
    upper = lower + rng.uniform(0.1, 2.0, d)
    return Model(lc.Polyhedron.box(lower, upper), lambda x: [x >= lower, x <= upper], bounded=True)


def inactive_box(rng: Rng, d: int) -> Model:
    return Model(
        lc.Polyhedron.box(-50.0 * np.ones(d), 50.0 * np.ones(d)),
        lambda x: [x >= -50.0, x <= 50.0],
        bounded=True,
    )


def thin_slab(rng: Rng, d: int) -> Model:
    a, offset, side = rng.standard_normal(d), rng.standard_normal(), 5.0
    C = np.vstack([a, -a, np.eye(d), -np.eye(d)])
    b = np.concatenate([[offset, 1e-4 - offset], np.full(2 * d, side)])
    return Model(lc.Polyhedron(C, b), lambda x: [C @ x <= b], bounded=True)


def simplex(rng: Rng, d: int) -> Model:
    C = np.vstack([-np.eye(d), np.ones(d), -np.ones(d)])
    b = np.concatenate([np.zeros(d), [1.0, -1.0]])
    return Model(lc.Polyhedron(C, b), lambda x: [x >= 0, cp.sum(x) == 1], bounded=True)


def residual_ball(
    rng: Rng, d: int, *, rows: int, rank: int | None = None, sigma: float = 0.5, form: Any = None
) -> Model:
    A = rng.standard_normal((rows, d))
    if rank is not None:
        A = rng.standard_normal((rows, rank)) @ rng.standard_normal((rank, d)) / np.sqrt(d)
    noise = rng.standard_normal(rows)
    y = A @ rng.standard_normal(d) + 0.7 * sigma * noise / np.linalg.norm(noise)
    set_ = lc.ResidualBall(A, y, sigma) if form is None else lc.ResidualBall(A, y, sigma, form)
    bounded = np.linalg.matrix_rank(A) == d
    return Model(set_, lambda x: [cp.norm(A @ x - y) <= sigma], bounded=bool(bounded))


def wide_ball(rng: Rng, d: int) -> Model:
    return residual_ball(rng, d, rows=max(1, d // 2))


def wide_ball_norm(rng: Rng, d: int) -> Model:
    return residual_ball(rng, d, rows=max(1, d // 2), form=lc.ResidualNorm())


def tall_ball(rng: Rng, d: int) -> Model:
    return residual_ball(rng, d, rows=d + 3)


def deficient_ball(rng: Rng, d: int) -> Model:
    return residual_ball(rng, d, rows=d, rank=max(1, d // 2))


def thin_ball(rng: Rng, d: int) -> Model:
    return residual_ball(rng, d, rows=max(1, d // 2), sigma=1e-3)


def ellipsoid_around(z: Any, w: Any) -> Model:
    """The set sum w_i (x_i - z_i)^2 <= 1, known to lopro as a smooth function."""
    set_ = lc.FunctionConstraint(
        lambda x: float(w @ (x - z) ** 2) - 1.0,
        lambda x: 2.0 * w * (x - z),
        smooth=True,
        shape=z.shape,
    )
    twin = lambda x: [cp.sum_squares(cp.multiply(np.sqrt(w), x - z)) <= 1.0]  # noqa: E731
    return Model(set_, twin, bounded=True)


def ellipsoid(rng: Rng, d: int) -> Model:
    w, z = rng.uniform(0.3, 3.0, d), rng.standard_normal(d)
    model = ellipsoid_around(z, w)
    model.radius = float(np.linalg.norm(z) + 1.0 / np.sqrt(w.min()))
    return model


def log_sum_exp(rng: Rng, d: int) -> Model:
    """The set log sum exp(+-(x - z)) <= log(2 d) + 1/2: smooth, bounded, no closed form."""
    z, level = rng.standard_normal(d), np.log(2.0 * d) + 0.5

    def weights(x: Any) -> tuple[Any, Any, float]:
        u = x - z
        top = np.abs(u).max()
        return np.exp(u - top), np.exp(-u - top), float(top)

    def value(x: Any) -> float:
        plus, minus, top = weights(x)
        return top + float(np.log(plus.sum() + minus.sum())) - level

    def gradient(x: Any) -> Any:
        plus, minus, _ = weights(x)
        return (plus - minus) / (plus.sum() + minus.sum())

    set_ = lc.FunctionConstraint(value, gradient, smooth=True, shape=(d,))
    twin = lambda x: [cp.log_sum_exp(cp.hstack([x - z, z - x])) <= level]  # noqa: E731
    return Model(set_, twin, bounded=True, radius=np.linalg.norm(z) + np.sqrt(d) * level)


def meet(first: Model, second: Model) -> Model:
    return Model(
        lc.Intersection(first.lopro, second.lopro),
        lambda x: first.cvxpy(x) + second.cvxpy(x),
        bounded=first.bounded or second.bounded,
        radius=first.radius if first.radius is not None else second.radius,
    )


def ball_and_halfspace(rng: Rng, d: int) -> Model:
    ball = residual_ball(rng, d, rows=d + 3, sigma=2.0)
    center = np.linalg.lstsq(ball.lopro.A.toarray(), ball.lopro.y, rcond=None)[0]
    a = rng.standard_normal((1, d))
    b = a @ center + 0.05
    return meet(ball, Model(lc.Polyhedron(a, b), lambda x: [a @ x <= b]))


def ellipsoid_and_box(rng: Rng, d: int) -> Model:
    z = 0.5 * rng.standard_normal(d)
    w = rng.uniform(0.3, 3.0, d)
    inside = Model(
        lc.Polyhedron.box(z - 0.4, z + 0.6), lambda x: [x >= z - 0.4, x <= z + 0.6], bounded=True
    )
    return meet(inside, ellipsoid_around(z, w))


def cross_polytope(rng: Rng, d: int) -> Model:
    """An l1 ball, known to lopro by the subgradients of its function alone."""
    z = rng.standard_normal(d)
    set_ = lc.FunctionConstraint(
        lambda x: float(np.abs(x - z).sum()) - 1.0, lambda x: np.sign(x - z), shape=(d,)
    )
    twin = lambda x: [cp.norm1(x - z) <= 1.0]  # noqa: E731
    return Model(set_, twin, bounded=True, radius=np.linalg.norm(z) + 1.0)


#: Pairs that only subgradient methods can take; they are few, as those cannot reach 1e-6.
SUBGRADIENT_PAIRS = (
    (largest_affine, box),
    (largest_affine, tall_ball),
    (linear, cross_polytope),
    (distance, cross_polytope),
)

VECTOR_CONSTRAINTS = (
    polyhedron,
    norm_polyhedron,
    duplicate_rows,
    box,
    inactive_box,
    thin_slab,
    simplex,
    wide_ball,
    wide_ball_norm,
    tall_ball,
    deficient_ball,
    thin_ball,
    ellipsoid,
    log_sum_exp,
    ball_and_halfspace,
    ellipsoid_and_box,
)

# Matrices: objectives and the four ways to state the PSD cone.


def _symmetric(rng: Rng, n: int) -> Any:
    M = rng.standard_normal((n, n))
    return M + M.T


def matrix_distance(rng: Rng, n: int) -> Model:
    M = _symmetric(rng, n)
    return Model(lo.SquaredDistance(M), lambda X: 0.5 * cp.sum_squares(X - M))


def sparse_matrix_distance(rng: Rng, n: int) -> Model:
    M, weight = _symmetric(rng, n), 0.3
    f = lo.SquaredDistance(M) + lo.OffDiagonalL1(n, weight)
    off = 1.0 - np.eye(n)
    twin = lambda X: 0.5 * cp.sum_squares(X - M) + weight * cp.sum(cp.abs(cp.multiply(off, X)))  # noqa: E731
    return Model(f, twin)


def matrix_linear(rng: Rng, n: int) -> Model:
    S = _symmetric(rng, n)
    return Model(lo.Linear(S), lambda X: cp.trace(S @ X), coercive=False)


def cone(rng: Rng, n: int) -> Model:
    forms = (lc.MinEigenvalue(), lc.KyFan(min(2, n)), lc.NegativeSum(), lc.Distance())
    return Model(lc.PSDCone(n, forms[rng.integers(4)]), lambda X: [X >> 0])


def cone_with_trace(rng: Rng, n: int) -> Model:
    trace = lc.FunctionConstraint(
        lambda X: float(np.trace(X)) - 1.0, lambda X: np.eye(n), smooth=True, shape=(n, n)
    )
    limit = Model(trace, lambda X: [cp.trace(X) <= 1.0])
    both = meet(cone(rng, n), limit)
    both.bounded, both.radius = True, 1.0
    return both


MATRIX_OBJECTIVES = (matrix_distance, sparse_matrix_distance, matrix_linear)
MATRIX_CONSTRAINTS = (cone, cone_with_trace)


def cases(round_: int) -> Iterator[Case]:
    """Yield every sensible pair of objective and constraint once, with data that depend on the round."""
    for i, f in enumerate(VECTOR_OBJECTIVES):
        for j, c in enumerate(VECTOR_CONSTRAINTS):
            rng = np.random.default_rng((round_, i, j))
            yield _case(rng, f, c, (_size(rng),))
    for i, (f, c) in enumerate(SUBGRADIENT_PAIRS):
        rng = np.random.default_rng((round_, 200 + i))
        yield _case(rng, f, c, (int(rng.integers(2, 9)),))
    for i, (f, c) in enumerate(itertools.product(MATRIX_OBJECTIVES, MATRIX_CONSTRAINTS)):
        if (f, c) == (matrix_linear, cone):
            continue  # unbounded below, or solved by zero
        for repeat in range(3):
            rng = np.random.default_rng((round_, 100 + i, repeat))
            n = int(rng.integers(2, 11))
            yield _case(rng, f, c, (n, n))


def _size(rng: Rng) -> int:
    return int(rng.choice([2, 3, 5, 8, 13, 21, 34, 60]))


def _case(rng: Rng, make_f: Any, make_c: Any, shape: tuple[int, ...]) -> Case:
    f, c = make_f(rng, shape[0]), make_c(rng, shape[0])
    if not (f.coercive or c.bounded):
        # The problem may have no solution: bound the set by a large box.
        d = shape[0]
        around = Model(
            lc.Polyhedron.box(-20.0 * np.ones(d), 20.0 * np.ones(d)),
            lambda x: [x >= -20.0, x <= 20.0],
            bounded=True,
        )
        c = meet(c, around)
    problem = lopro.Problem(f.lopro, c.lopro, solution_norm=c.radius)
    x = cp.Variable(shape, symmetric=True) if len(shape) == 2 else cp.Variable(shape)
    twin = cp.Problem(cp.Minimize(f.cvxpy(x)), c.cvxpy(x))
    name = f"{make_f.__name__}/{make_c.__name__}/{'x'.join(map(str, shape))}"
    return Case(name, problem, x, twin, at_optimum=bool(rng.random() < 0.1))
