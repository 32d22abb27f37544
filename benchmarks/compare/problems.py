"""The five problems, one seeded function each, with the constants that theorems may assume."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
from scipy.optimize import linprog

import lopro
from lopro.constraints import Polyhedron, ResidualBall
from lopro.functions import Ball
from lopro.methods.theory import ProblemConstants, constants_of
from lopro.metric.api import metric_problem
from lopro.metric.loss import PairLoss
from lopro.objectives import L1Norm, Logistic

__all__ = ["PROBLEMS", "Instance"]


@dataclass(frozen=True)
class Instance:
    """One problem with its known constants.

    ``constants`` are those that cannot be computed from the problem; ``sampled`` is the share of a full
    gradient that one stochastic gradient costs, and ``noise`` the root mean square of its error.
    """

    name: str
    title: str
    problem: lopro.Problem
    constants: ProblemConstants | None = None
    sampled: float | None = None
    noise: float = 0.0

    def prepare(self) -> None:
        """Compute factorisations and a bounding box of the set before any run is timed."""
        problem = self.problem
        x = problem.start(None)
        problem.constraint.infeasibility()
        problem.constraint.radius()
        problem.constraint.project(x + 1.0)
        problem.objective.smoothness()


def polyhedron(quick: bool) -> Instance:
    """The l1 norm over 200 random half-spaces around a sparse point, zero not among them."""
    d, m = (8, 30) if quick else (50, 200)
    rng = np.random.default_rng(0)
    C = _unit_rows(rng, m, d)
    inside = np.zeros(d)
    inside[: d // 8 + 1] = rng.uniform(1.0, 2.0, d // 8 + 1) * rng.choice([-1, 1], d // 8 + 1)
    set_ = Polyhedron(C, C @ inside + rng.uniform(0.2, 0.5, m))
    G = math.sqrt(d)
    return Instance(
        "polyhedron",
        f"The l1 norm over a polyhedron, {d} variables, {m} constraints",
        lopro.Problem(L1Norm(), set_),
        ProblemConstants(G=G, Gc=1.0, rho=slater_regularity(set_)),
    )


def fairness(quick: bool) -> Instance:
    """Logistic regression on breast cancer data whose mean scores may differ little between groups."""
    from sklearn.datasets import load_breast_cancer

    data = load_breast_cancer()
    names = [str(name) for name in data.feature_names]
    X, labels = data.data, np.where(data.target == 1, 1.0, -1.0)
    X = (X - X.mean(axis=0)) / X.std(axis=0)
    by = ("mean texture", "mean smoothness", "mean symmetry", "mean fractal dimension")
    sensitive = [X[:, names.index(name)] for name in by]
    if quick:
        X = X[:, :6]
    means = np.array([X[group].mean(axis=0) for s in sensitive for group in thirds(s)])
    set_ = _fair_set(means, allowed=0.2, bound=2.0)
    f = Logistic(X, labels)
    return Instance(
        "fairness",
        f"Logistic regression, breast cancer data, bounded mean scores of {len(means)} groups",
        lopro.Problem(f, set_),
        ProblemConstants(
            G=f.lipschitz().value, Gc=1.0, rho=slater_regularity(set_), Lf=f.smoothness().value
        ),
    )


def thirds(values: np.ndarray) -> list[np.ndarray]:
    """Return three groups of samples: the lowest, middle and highest third of the values."""
    return np.array_split(np.argsort(values, kind="stable"), 3)


def _fair_set(means: np.ndarray, allowed: float, bound: float) -> Polyhedron:
    """Return ``|mean score of a group| <= allowed`` (the mean over all is zero) and a box.

    Rows have length one, so that distances to the set and violations are of one size.
    """
    lengths = np.linalg.norm(means, axis=1)
    rows = means / lengths[:, None]
    limits = allowed / lengths
    box, d = np.eye(means.shape[1]), means.shape[1]
    C = np.vstack([rows, -rows, box, -box])
    return Polyhedron(C, np.concatenate([limits, limits, np.full(2 * d, bound)]))


def residual_ball(quick: bool) -> Instance:
    """Basis pursuit denoising by the paper's recipe: uniform matrix, sparse signal, uniform noise."""
    m, d, nonzeros = (12, 30, 2) if quick else (100, 400, 10)
    rng = np.random.default_rng(2)
    A = rng.uniform(-1, 1, (m, d))
    x = np.zeros(d)
    x[rng.choice(d, nonzeros, replace=False)] = rng.uniform(-1, 1, nonzeros)
    noise = rng.uniform(-0.05, 0.05, m)
    set_ = ResidualBall(A, A @ x + noise, float(np.linalg.norm(noise)))
    return Instance(
        "residual_ball",
        f"The l1 norm over a residual ball, {m} rows, {d} columns",
        lopro.Problem(L1Norm(), set_),
    )


def psd(quick: bool) -> Instance:
    """Sparse metric learning on the wine data: all pairs of samples, 13 features."""
    from sklearn.datasets import load_wine

    X, labels = load_wine(return_X_y=True)
    X = (X - X.mean(axis=0)) / X.std(axis=0)
    if quick:
        X, labels = X[::10, :5], labels[::10]
    first, second = np.array(list(itertools.combinations(range(len(X)), 2))).T
    targets = np.where(labels[first] == labels[second], 0.0, 2.0)
    X = X / math.sqrt(X.shape[1])
    problem = metric_problem(PairLoss(X, (first, second), targets), 0.01)
    mu = pair_convexity(X[first] - X[second])
    # f(A) <= f(0) bounds the fit, and the fit bounds A.
    R = 2.0 * math.sqrt(float(np.mean(targets**2)) / mu)
    problem = replace(problem, solution_norm=R)
    constants = constants_of(problem, Ball(problem.start(None), 3.0 * R))
    return Instance(
        "psd",
        f"Sparse metric on the wine data, {X.shape[1]} x {X.shape[1]} psd, {len(first)} pairs",
        problem,
        replace(constants, mu=mu),
    )


def pair_convexity(Z: np.ndarray) -> float:
    """Return mu of ``1/(2n) sum_e (t_e - z_e'A z_e)^2`` over symmetric matrices."""
    n, d = Z.shape
    i, j = np.triu_indices(d)
    # An orthonormal basis of the symmetric matrices: entries off the diagonal occur twice.
    image = np.where(i == j, 1.0, math.sqrt(2.0)) * Z[:, i] * Z[:, j]
    return float(np.linalg.svd(image, compute_uv=False)[-1] ** 2) / n


def stochastic(quick: bool) -> Instance:
    """Ridge logistic regression on 100 000 samples over 2000 half-spaces: projecting is costly."""
    n, d, m, batch = (400, 6, 30, 20) if quick else (100_000, 20, 2000, 100)
    rng = np.random.default_rng(4)
    X = rng.standard_normal((n, d)) * np.geomspace(2.0, 0.2, d)
    w = rng.standard_normal(d)
    labels = np.where(rng.uniform(size=n) < 1.0 / (1.0 + np.exp(-X @ w)), 1.0, -1.0)
    set_ = Polyhedron(_unit_rows(rng, m, d), rng.uniform(0.3, 0.5, m))
    f = Logistic(X, labels, l2=0.05, batch_size=batch)
    R = set_.radius().value
    # Theorems use the root mean square of sampled slopes, which is larger than the norm of their mean.
    rms = math.sqrt(float((X**2).sum()) / n)
    G = max(rms, f.lipschitz(Ball(np.zeros(d), 0.0)).value) + f.l2 * 3.0 * R
    constants = ProblemConstants(
        G=G, Gc=1.0, rho=slater_regularity(set_), Lf=f.smoothness().value, mu=f.l2
    )
    return Instance(
        "stochastic",
        f"Logistic regression, {n} samples, {d} variables, {m} constraints",
        lopro.Problem(f, set_),
        constants,
        sampled=batch / n,
        noise=rms / math.sqrt(batch),
    )


def _unit_rows(rng: np.random.Generator, m: int, d: int) -> np.ndarray:
    rows = rng.standard_normal((m, d))
    return rows / np.linalg.norm(rows, axis=1, keepdims=True)


def slater_regularity(set_: Polyhedron) -> float:
    """Return a regularity constant of a bounded polyhedron with unit rows and a point z deep inside.

    With ``c(z) = -s`` and ``|p - z| <= R`` for all feasible p, convexity puts the point
    ``z + s / (s + c(x)) (x - z)`` in the set, so that ``dist(x) <= (c(x) / s) R``: rho is at least s / R.
    """
    C, b = set_.C.matrix, set_.b
    m, d = C.shape
    # The largest ball inside: its centre and radius.
    found = linprog(
        np.append(np.zeros(d), -1.0),
        A_ub=np.column_stack([C, np.ones(m)]),
        b_ub=b,
        bounds=[(None, None)] * d + [(0, None)],
    )
    z, s = found.x[:d], found.x[d]
    reach = Polyhedron(C, b - C @ z).radius()
    if reach is None or s <= 0.0:
        raise ValueError("the polyhedron is not bounded, or it has no interior")
    return float(s) / reach.value


PROBLEMS: dict[str, Callable[[bool], Instance]] = {
    "polyhedron": polyhedron,
    "fairness": fairness,
    "residual_ball": residual_ball,
    "psd": psd,
    "stochastic": stochastic,
}
