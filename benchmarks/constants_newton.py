"""Problems of Newton's methods and of their linear algebra for `benchmarks.constants`."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import scipy.sparse

import lopro
from lopro.constraints import Affine, Box, Intersection, Polyhedron, ResidualBall
from lopro.methods.semidefinite import semidefinite_form
from lopro.newton.sdp import SemidefiniteProgram, solve
from lopro.objectives import HingeLoss, L1Norm, LeastSquares, Linear, Logistic, Quadratic

__all__ = ["over_factors", "over_matrices", "over_vectors", "programs"]


def over_matrices() -> Iterator[tuple[str, Callable[[], Any]]]:
    """Yield semidefinite programs and nearest matrices."""
    rng, n = np.random.default_rng(1), 24
    C, G = rng.standard_normal((n, n)), np.corrcoef(rng.standard_normal((n, 12)))
    C, G = C + C.T, G + 0.3 * (np.triu(C, 1) + np.triu(C, 1).T) / n
    cone, at = lopro.constraints.PSDCone(n), np.arange(n)
    ones = Affine.entries((at, at), 1.0, 1.0, shape=(n, n))
    i, j = np.triu_indices(n, 1)
    zero = Affine.entries((i[::9], j[::9]), 0.0, 0.0, shape=(n, n))
    trace = Affine(np.eye(n).reshape(1, -1), 1.0, 1.0, shape=(n, n))
    rows = np.stack([M + M.T for M in rng.standard_normal((10, n, n))])
    inside = np.einsum("kij,ij->k", rows, np.eye(n))
    dense = Affine(rows.reshape(10, -1), inside, inside, shape=(n, n))
    W = scipy.sparse.random_array((60, 60), density=0.1, rng=rng).toarray()
    near = lopro.objectives.SquaredDistance(C)
    sets = {
        "diagonal": (Linear(C), Intersection(cone, ones), None),
        "entries of zero": (
            Linear(C),
            Intersection(cone, trace, zero),
            None,
        ),
        "dense rows": (Linear(C @ C / n), Intersection(cone, dense), None),
        "nearest, diagonal": (near, Intersection(cone, ones), lopro.NearestSemidefinite()),
        "nearest, dense rows": (near, Intersection(cone, dense), lopro.NearestSemidefinite()),
    }
    for name, (f, c, method) in sets.items():
        problem = lopro.Problem(f, c)
        if method is None:
            program = semidefinite_form(problem).program
            yield name, lambda program=program: solve(program, engines=("newton",), seconds=10.0)
        else:
            yield name, lambda p=problem, m=method: lopro.solve(p, method=m)
    flat = [R for R in rows if abs(np.trace(R)) < 8.0]
    free = SemidefiniteProgram.dense(C @ C / n, flat, [float(np.trace(R)) for R in flat])
    yield "traces without a bound", lambda: solve(free, engines=("newton",), seconds=10.0)
    dense = [M + M.T for M in rng.standard_normal((30, 40, 40))]
    program = SemidefiniteProgram.dense(np.eye(40), dense, [float(np.trace(R)) for R in dense])
    yield "engines by their sizes", lambda: solve(program, seconds=10.0)
    off = [(i[k], j[k]) for k in range(0, len(i), 9)]
    kept = np.eye(n, dtype=bool)
    kept[tuple(np.transpose(off))] = kept[tuple(np.transpose(off))[::-1]] = True
    middle = 0.5 * G + 0.5 * np.eye(n)
    yield "correlation, fixed entries", lambda: lopro.nearest_correlation(middle, fixed=kept)
    sides = Affine.entries((i[::3], j[::3]), -0.05, 0.05, shape=(n, n))
    between = lopro.Problem(near, Intersection(cone, ones, sides))
    yield (
        "nearest, bounds of entries",
        lambda: lopro.solve(between, method=lopro.NearestSemidefinite()),
    )
    yield "low rank", lambda: lopro.fixed_diagonal((W + W.T) / 4)
    yield "correlation", lambda: lopro.nearest_correlation(G)
    yield "correlation, far", lambda: lopro.nearest_correlation(np.clip(2.0 * C, -1.0, 1.0))


def over_factors() -> Iterator[tuple[str, Callable[[], Any]]]:
    """Yield problems over matrices with a given diagonal: sparse linear costs, and weighted distances."""
    rng = np.random.default_rng(3)
    for n, density in ((80, 0.05), (120, 0.3)):
        W = scipy.sparse.random_array((n, n), density=density, rng=rng).toarray()
        W = np.sign(rng.standard_normal((n, n))) * W
        yield f"linear, {n}", lambda C=W + W.T: lopro.fixed_diagonal(C)
    n = 40
    at, (i, j) = np.arange(n), np.triu_indices(n, 1)
    ones = Affine.entries((at, at), 1.0, 1.0, shape=(n, n))
    for name, scale, step in (
        ("near", 0.3, 0),
        ("far", 2.0, 0),
        ("entries", 0.3, 7),
        ("many", 0.3, 3),
    ):
        G = scale * rng.standard_normal((n, n))
        weights = rng.random((n, n)) + 0.1
        f = lopro.objectives.SquaredDistance(G + G.T, weights=weights + weights.T)
        members = [lopro.constraints.PSDCone(n), ones]
        if step:
            members.append(Affine.entries((i[::step], j[::step]), 0.1, 0.1, shape=(n, n)))
        problem = lopro.Problem(f, Intersection(*members))
        yield f"weighted, {name}", lambda p=problem: lopro.solve(p, method=lopro.LowRankFactors())


def over_vectors() -> Iterator[tuple[str, Callable[[], Any]]]:
    """Yield problems of each kind for Newton's method over vectors."""
    rng = np.random.default_rng(0)
    newton = lopro.NewtonMultipliers()
    X, y = rng.standard_normal((200, 20)), np.sign(rng.standard_normal(200))
    A, b = rng.standard_normal((60, 20)), rng.standard_normal(60)
    G = rng.standard_normal((40, 20))
    rows = Polyhedron(G, 0.1 + rng.random(40))
    n, m = 30, 60
    C = rng.standard_normal((m, n))
    side = C @ rng.standard_normal(n) + rng.random(m)
    sides = Polyhedron(
        np.vstack([C, np.eye(n), -np.eye(n)]), np.concatenate([side, np.full(2 * n, 5.0)])
    )
    D = scipy.sparse.diags_array(
        [-np.ones(199), np.ones(199)], offsets=[0, 1], shape=(199, 200)
    ).tocsr()
    eye, cube = scipy.sparse.eye_array(200, format="csr"), Box(-np.ones(80), np.ones(80))
    wide = rng.standard_normal((30, 80))
    found = {
        "least squares, rows": (LeastSquares(A, b), rows),
        "logistic, rows": (Logistic(X, y), rows),
        "logistic, box": (Logistic(X, y), Box(-np.full(20, 0.05), np.full(20, 0.05))),
        "logistic, columns 1e-6 to 1e6": (Logistic(X * np.logspace(-6, 6, 20), y), None),
        "quadratic, equations": (Quadratic(A.T @ A), Affine(G[:8], lower=1.0, upper=1.0)),
        "linear, many rows": (Linear(rng.standard_normal(n)), sides),
        "linear, degenerate": (Linear(np.ones(n)), Polyhedron(np.vstack([C, C, -np.eye(n)]), np.zeros(150))),
        "sparse differences": (Quadratic(eye, -rng.standard_normal(200)), Affine(D, lower=-0.1, upper=0.1)),
        "wide least squares, box": (LeastSquares(wide, rng.standard_normal(30)), cube),
        "l1, rows": (L1Norm(shape=(20,)), Polyhedron(-G, -np.abs(G @ rng.standard_normal(20)))),
        "hinge, ridge": (HingeLoss(X, y) + 0.5 * Quadratic(np.eye(20)), None),
        "ball and rows": (Linear(rng.standard_normal(20)), Intersection(rows, ResidualBall(A, b, 8.0))),
        "a callable, box": (
            lopro.objectives.FunctionObjective(
                lambda x: float(np.sum(np.cosh(x - b[:20]))),
                gradient=lambda x: np.sinh(x - b[:20]), shape=(20,), smoothness=20.0,
            ),
            Box(-np.ones(20), np.ones(20)),
        ),
        "empty": (LeastSquares(A, b), Intersection(rows, Polyhedron(-G[:1], np.array([-50.0])))),
    }  # fmt: skip
    for name, (f, c) in found.items():
        problem = lopro.Problem(f) if c is None else lopro.Problem(f, c)
        yield name, lambda problem=problem: lopro.solve(problem, method=newton, max_iter=300)


def programs() -> Iterator[tuple[str, Callable[[], Any]]]:
    """Yield linear programs, quadratic programs and large sparse systems, solved as `lopro.solve` does."""
    rng = np.random.default_rng(2)
    for bins in (30, 60):
        ones, eye = np.ones((1, bins)), scipy.sparse.eye_array(bins)
        A = scipy.sparse.vstack(
            [scipy.sparse.kron(eye, ones), scipy.sparse.kron(ones, eye)], format="csr"
        )
        mass = np.concatenate([p / p.sum() for p in rng.random((2, bins))])
        sets = Intersection(Affine(A, mass, mass), Box(np.zeros(bins**2), np.full(bins**2, np.inf)))
        for f in (Linear(rng.random(bins**2)), Quadratic(scipy.sparse.eye_array(bins**2))):
            problem = lopro.Problem(f, sets)
            yield (
                f"{type(f).__name__}, marginals {bins}",
                lambda p=problem: lopro.solve(p, time_limit=20.0),
            )
    newton = lopro.NewtonMultipliers()
    for name, A in (
        ("grid", scipy.sparse.csr_array(_grid(30))),
        (
            "random graph",
            scipy.sparse.random_array((400, 600), density=0.005, rng=rng, format="csr"),
        ),
        ("dense rows", rng.standard_normal((120, 300))),
    ):
        n = A.shape[1]
        b = A @ rng.standard_normal(n)
        rows = Affine(A, b - 0.1, b + 0.1)
        near = lopro.objectives.SquaredDistance(rng.standard_normal(n))
        problem = lopro.Problem(near, rows)
        yield (
            f"nearest point, {name}",
            lambda p=problem: lopro.solve(p, method=newton, max_iter=300),
        )
    wild = rng.standard_normal((60, 20)) * np.logspace(-4, 4, 20)
    side = wild @ rng.standard_normal(20) + rng.random(60)
    problem = lopro.Problem(Linear(wild.T @ np.ones(60) * -1.0), Polyhedron(-wild, side))
    yield "linear, columns 1e-4 to 1e4", lambda: lopro.solve(problem, time_limit=20.0)


def _grid(size: int) -> Any:
    """Return the differences of neighbours on a square grid."""
    step = scipy.sparse.diags_array(
        [-np.ones(size - 1), np.ones(size - 1)], offsets=[0, 1], shape=(size - 1, size)
    )
    eye = scipy.sparse.eye_array(size)
    return scipy.sparse.vstack([scipy.sparse.kron(step, eye), scipy.sparse.kron(eye, step)])
