"""Calls of everything that takes arrays, for every array library: tests/contracts runs them.

A case is a function of a conversion: it converts the data, solves the problem and returns the points and
the value. Arrays of array-api-strict on its second device stand in for those of a GPU: they
refuse to be mixed with others, and to be read by NumPy unless they are copied.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import array_api_strict
import numpy as np
import pytest

import lopro
import lopro.constraints as lc
import lopro.objectives as lo
from lopro import baselines

Convert = Callable[[Any], Any]
N = 6
RNG = np.random.default_rng(0)
A, B, WIDE = RNG.standard_normal((9, N)), RNG.standard_normal(9), RNG.standard_normal((4, N))
LABELS, Q = np.sign(RNG.standard_normal(9)), RNG.standard_normal(N)
C, H = RNG.standard_normal((5, N)), np.abs(RNG.standard_normal(5))
S = RNG.standard_normal((4, 4))
S = 0.5 * (S + S.T)
#: Symmetric with a diagonal of ones, and an eigenvalue of -0.55.
NEARLY = np.array([[1.0, 0.9, -0.9], [0.9, 1.0, 0.5], [-0.9, 0.5, 1.0]])
SPARSE = RNG.standard_normal((20, 40))
Y = SPARSE[:, :3] @ np.array([1.0, -2.0, 1.5])
POINTS, CLASSES = RNG.standard_normal((20, 4)), np.arange(20) % 2
POINTS[:, 1] += 2.0 * CLASSES
DIAGONAL = (np.arange(4), np.arange(4))

OBJECTIVES: dict[str, Callable[[Convert], lo.Objective]] = {
    "least squares": lambda of: lo.LeastSquares(of(A), of(B)),
    "quadratic": lambda of: lo.Quadratic(of(A.T @ A), of(Q)),
    "linear": lambda of: lo.Linear(of(Q)),
    "distance": lambda of: lo.SquaredDistance(of(Q)),
    "logistic": lambda of: lo.Logistic(of(A), of(LABELS), l2=0.1),
    "huber": lambda of: lo.Huber(of(A), of(B)),
    "l1": lambda of: lo.L1Norm(of(np.ones(N))),
    "lasso": lambda of: lo.LeastSquares(of(A), of(B)) + 0.5 * lo.L1Norm(of(np.ones(N))),
    "variation": lambda of: lo.TotalVariation(N) + 0.1 * lo.SquaredDistance(of(Q)),
    "groups": lambda of: lo.GroupNorm(of(np.eye(N)), 3) + lo.LeastSquares(of(A), of(B)),
    "largest": lambda of: lo.LInfNorm() + lo.LeastSquares(of(A), of(B)),
    "hinge": lambda of: lo.HingeLoss(of(A), of(LABELS), l2=0.1),
    "squared hinge": lambda of: lo.SquaredHingeLoss(of(A), of(LABELS), l2=0.1),
    "pinball": lambda of: lo.PinballLoss(of(A), of(B), 0.3),
    "poisson": lambda of: lo.Poisson(of(0.3 * A), of(np.arange(9.0))),
}
SETS: dict[str, Callable[[Convert], lc.Constraint | None]] = {
    "none": lambda of: None,
    "box": lambda of: lc.Polyhedron.box(of(-np.ones(N)), of(np.ones(N))),
    "rows": lambda of: lc.Polyhedron(of(C), of(H)),
    "equations": lambda of: lc.Affine(of(C[:2]), 0.1, 0.1),
    "simplex": lambda of: lc.Simplex(N),
    "l1 ball": lambda of: lc.L1Ball(N, 0.7),
    "ball": lambda of: lc.ResidualBall(of(A), of(B), 3.0),
    "second-order cone": lambda of: lc.SecondOrderCone(of(A), of(B), of(0.2 * Q), 3.0),
    "rows and ball": lambda of: lc.Intersection(
        lc.Polyhedron(of(C), of(H)), lc.ResidualBall(of(np.eye(N)), of(np.zeros(N)), 2.0)
    ),
}
MATRIX_SETS: dict[str, Callable[[Convert], lc.Constraint]] = {
    "cone": lambda of: lc.PSDCone(4),
    "spectrahedron": lambda of: lc.Spectrahedron(4, 1.0),
    "cone and diagonal": lambda of: lc.Intersection(
        lc.PSDCone(4), lc.Affine.entries(DIAGONAL, 1.0, 1.0, shape=(4, 4))
    ),
}
#: NumPy's own run is not proved within 20 s, or the optimum is 0 and no bound is known.
UNPROVED = {("variation", "l1 ball"), ("linear", "cone")}


@dataclass(frozen=True)
class Answer:
    """The answer of a call: point, value, status and lower bound."""

    x: Any
    fun: float
    status: str
    bound: float = -np.inf


@dataclass(frozen=True)
class Case:
    """A call for data of any library; ``rough`` ones end before they reach a solution."""

    call: Callable[[Convert, float], Any]
    rough: bool = False


def answer_of(result: Any) -> Answer:
    """Return the answer of a result, of the first one if there are several."""
    first = result[0] if isinstance(result, (list, lopro.batch.Results)) else result
    value = getattr(first, "fun", None)
    bound = float(first.certificate.lower_bound)
    return Answer(first.x, float(value), first.status.name, bound)


def solved(f: Any, s: Any, method: Any = None, **options: Any) -> Case:
    """Return the case of an objective over a set."""

    def call(of: Convert, tol: float) -> Answer:
        given = {"tol": tol, "time_limit": 120.0} | options
        return answer_of(lopro.solve(lopro.Problem(f(of), s(of)), method=method, **given))

    return Case(call, rough=bool(options))


def called(entry: Callable[..., Any], **options: Any) -> Case:
    """Return the case of an application."""
    return Case(lambda of, tol: answer_of(entry(of, tol, **options)))


def pairs() -> dict[str, Case]:
    """Return every objective over every set."""
    cases = {
        f"{f} over {s}": solved(OBJECTIVES[f], SETS[s])
        for f in OBJECTIVES
        for s in SETS
        if (f, s) not in UNPROVED
    }
    slope, distance = (
        (lambda of: lo.Linear(of(S @ S + np.eye(4)))),
        lambda of: lo.SquaredDistance(of(S)),
    )
    for s, make in MATRIX_SETS.items():
        if ("linear", s) not in UNPROVED:
            cases[f"linear over {s}"] = solved(slope, make)
        cases[f"distance over {s}"] = solved(distance, make)
    fixed = lambda of: lc.Affine.entries(DIAGONAL, 1.0, 1.0, shape=(4, 4))  # noqa: E731
    cases["nuclear over diagonal"] = solved(
        lambda of: lo.NuclearNorm((4, 4)) + 0.1 * lo.SquaredDistance(of(S)), fixed
    )
    return cases


def methods() -> dict[str, Case]:
    """Return every method on a problem that it takes; short runs where it takes long to converge."""
    f, box, rows = OBJECTIVES["least squares"], SETS["box"], SETS["rows"]
    near, ball = OBJECTIVES["distance"], SETS["ball"]
    short = {"tol": 0.0}
    own = {
        "LoPGD": (f, rows, lopro.LoPGD(), {"max_iter": 300}),
        "LoPNAG": (f, ball, lopro.LoPNAG(), {"max_iter": 300}),
        "MultiplierMethod": (f, rows, lopro.MultiplierMethod(), {}),
        "NewtonMultipliers": (f, rows, lopro.NewtonMultipliers(), {}),
        "ProgramEngines": (OBJECTIVES["quadratic"], rows, lopro.ProgramEngines(), {}),
        "NearestPoint": (near, SETS["simplex"], lopro.NearestPoint(), {}),
        "OneProjection": (
            near, box,
            lopro.OneProjection(
                lopro.inner.AcceleratedGradient(), lopro.penalties.Softplus(4.0, 0.1), iterations=200
            ), short,
        ),
        "NearestSemidefinite": (
            lambda of: lo.SquaredDistance(of(S)), MATRIX_SETS["cone and diagonal"],
            lopro.NearestSemidefinite(), {},
        ),
        "LowRankFactors": (
            lambda of: lo.Linear(of(S)), MATRIX_SETS["cone and diagonal"], lopro.LowRankFactors(), {},
        ),
        "ADMM": (OBJECTIVES["variation"], SETS["box"], lopro.ADMM(), {}),
        "AlternatingDirections": (near, box, lopro.AlternatingDirections(), {}),
        "SemidefiniteEngines": (
            lambda of: lo.Linear(of(S)), MATRIX_SETS["cone and diagonal"],
            lopro.SemidefiniteEngines(), {},
        ),
        "LoPGD on the cone": (
            lambda of: lo.SquaredDistance(of(S)), MATRIX_SETS["cone"], lopro.LoPGD(),
            {"max_iter": 300},
        ),
    }  # fmt: skip
    theirs = [
        baselines.OPGD(lam=2.0, iterations=100), baselines.RSG(steps=20, stages=4),
        baselines.R2SG(steps=10, stages=3, rounds=2), baselines.EproSGD(iterations=100),
        baselines.EproORDA(iterations=100), baselines.LogTProjections(stages=4),
        baselines.ProjectedGradient(iterations=50), baselines.ProjectedSubgradient(iterations=100),
        baselines.FrankWolfe(), baselines.AugmentedLagrangian(), baselines.SwitchingSubgradient(),
    ]  # fmt: skip
    cases = {name: solved(g, s, method, **options) for name, (g, s, method, options) in own.items()}
    for method in theirs:
        cases[type(method).__name__] = solved(near, box, method, max_iter=200)
    return cases


def applications() -> dict[str, Case]:
    """Return the entries beside `lopro.solve`."""

    def bpdn(of: Convert, tol: float, y: Any = Y, sigma: float = 0.1, **options: Any) -> Any:
        return lopro.bpdn(of(SPARSE), of(y), sigma, tol=tol, **options)

    two = np.stack([Y, 2.0 * Y], axis=1)
    return {
        "bpdn": called(bpdn),
        "bpdn, MatrixFree": called(bpdn, method=lopro.MatrixFree()),
        "bpdn, WorkingSet": called(bpdn, method=lopro.WorkingSet()),
        "bpdn, equations": called(bpdn, sigma=0.0),
        "bpdn, nonneg": called(bpdn, y=np.abs(SPARSE[:, :3]) @ np.ones(3), sigma=2.0, nonneg=True),
        "bpdn, weights": Case(
            lambda of, tol: answer_of(
                lopro.bpdn(of(SPARSE), of(Y), 0.1, weights=of(np.linspace(0.5, 2.0, 40)), tol=tol)
            )
        ),
        "bpdn, weights of 0": Case(
            lambda of, tol: answer_of(
                lopro.bpdn(of(SPARSE), of(Y), 0.1, weights=of(np.arange(40.0) / 20.0), tol=tol)
            )
        ),
        "bpdn, two sides": called(bpdn, y=two),
        "bpdn, joint": called(bpdn, y=two, joint=True),
        "bpdn_path": Case(
            lambda of, tol: answer_of(list(lopro.bpdn_path(of(SPARSE), of(Y), [1.0, 0.5], tol=tol)))
        ),
        "lasso": Case(lambda of, tol: answer_of(lopro.lasso(of(SPARSE), of(Y), tau=2.0, tol=tol))),
        "lasso, lam": Case(lambda of, tol: answer_of(lopro.lasso(of(SPARSE), of(Y), lam=2.0, tol=tol))),
        "nearest_correlation": Case(
            lambda of, tol: answer_of(lopro.nearest_correlation(of(NEARLY), tol=tol))
        ),
        "max-cut": Case(
            lambda of, tol: answer_of(
                lopro.solve(
                    lopro.Problem(lo.Linear(of(S)), MATRIX_SETS["cone and diagonal"](of)), tol=tol
                )
            )
        ),
        "learn_metric": Case(
            lambda of, tol: answer_of(lopro.learn_metric(of(POINTS), CLASSES, l1=0.1, tol=tol))
        ),
        "minimize": Case(
            lambda of, tol: answer_of(
                lopro.minimize(
                    lambda x: 0.5 * float(((x - of(Q)) ** 2).sum() if hasattr(x, "sum") else _sum(x, of)),
                    of(np.zeros(N)), lambda x: x - of(Q), constraint=SETS["box"](of), tol=tol,
                )
            )
        ),
        "minimize, differences": Case(
            lambda of, tol: answer_of(
                lopro.minimize(
                    lambda x: 0.5 * float(((x - of(Q)) ** 2).sum() if hasattr(x, "sum") else _sum(x, of)),
                    of(np.zeros(N)), constraint=SETS["box"](of), tol=max(tol, 1e-5),
                )
            )
        ),
        "solve_many": Case(
            lambda of, tol: answer_of(
                lopro.solve_many(
                    [lopro.Problem(OBJECTIVES["least squares"](of), SETS["rows"](of))] * 2, tol=tol
                )
            )
        ),
    }  # fmt: skip


def _sum(x: Any, of: Convert) -> Any:
    """Return the sum of squares where arrays have no such method."""
    return array_api_strict.sum((x - of(Q)) ** 2)


def every() -> dict[str, dict[str, Case]]:
    """Return all cases by kind."""
    return {"pairs": pairs(), "methods": methods(), "applications": applications()}


def strict(data: Any, dtype: Any = np.float64) -> Any:
    device = array_api_strict.Device("device1")
    return array_api_strict.asarray(np.asarray(data, dtype=dtype), device=device)


def torch(data: Any, device: str = "cpu", dtype: Any = np.float64) -> Any:
    library = pytest.importorskip("torch", reason="PyTorch is not installed")
    return library.asarray(np.asarray(data, dtype=dtype), device=device)


def jax(data: Any, dtype: Any = np.float64) -> Any:
    library = pytest.importorskip("jax", reason="JAX is not installed")
    library.config.update("jax_enable_x64", True)
    return library.numpy.asarray(np.asarray(data, dtype=dtype))


single = functools.partial(functools.partial, dtype=np.float32)
#: Conversions, and the relative accuracy that is required.
LIBRARIES: dict[str, tuple[Convert, float]] = {
    "numpy-single": (single(np.asarray), 1e-3),
    "strict": (strict, 1e-6),
    "strict-single": (single(strict), 1e-3),
    "torch": (torch, 1e-6),
    "torch-single": (single(torch), 1e-3),
    "jax": (jax, 1e-6),
    "jax-single": (single(jax), 1e-3),
}
