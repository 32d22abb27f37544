"""Programs, steps and matrices for `benchmarks.scale.device_targets`.

Each target yields its cases one after the other; the data of a case are freed before the next one.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from time import perf_counter
from typing import Any

import numpy as np
import torch

import lopro
from benchmarks.scale.devices import Case, Place
from lopro.constraints import Affine, Intersection, Polyhedron, PSDCone, ResidualBall
from lopro.metric.api import metric_problem
from lopro.metric.loss import PairLoss
from lopro.objectives import LeastSquares, Linear, Logistic, SquaredDistance, TotalVariation
from paper.experiments.colon import load_colon


def batches(place: Place, limit: float) -> Iterator[Case]:
    """Random quadratic programs with interior points, stacked; about half of the rows are active."""
    for count, n, m, goal in ((100_000, 16, 32, 400_000), (50_000, 50, 100, 150_000)):
        count = place.of(count, 40)
        B, G, q = place.normal(count, n, n), place.normal(count, m, n), place.normal(count, n)
        P = B.mT @ B / n + 0.1 * torch.eye(n, dtype=B.dtype, device=B.device)
        P = 0.5 * (P + P.mT)
        inside = place.normal(count, n)
        h = (G @ inside[..., None])[..., 0] + 0.3 * abs(place.normal(count, m))
        stacks = lopro.QuadraticPrograms(
            place.given(q), place.given(P), place.given(G), upper=place.given(h)
        )
        del B, G, P
        yield Case(
            f"{count} quadratic programs {n} x {m}",
            f"{goal} a second, 99.9 % proved to 1e-6",
            partial(lopro.solve_many, stacks, time_limit=limit),
            _rate,
        )


def _rate(found: Any, seconds: float) -> dict[str, Any]:
    return {
        "a_second": len(found) / seconds,
        "proved": float(np.mean(found.success)),
        "steps": float(np.median([found[i].iterations for i in range(20)])),
    }


def steps(place: Place, limit: float) -> Iterator[Case]:
    """Steps of the paper's methods over positive semidefinite matrices, with their default options."""
    d = place.of(2000, 60)
    G = place.normal(d, d)
    G = 0.5 * (G + G.T)
    X, labels = place.normal(40, d), np.repeat([0, 1], 20)
    first, second = np.triu_indices(40, 1)
    targets = np.where(labels[first] == labels[second], 0.0, 2.0)
    metric = metric_problem(PairLoss(place.given(X), (first, second), targets), 1e-3)
    nearest = lopro.Problem(SquaredDistance(place.given(G)), PSDCone(d))
    for label, problem in (("metric learning", metric), ("nearest matrix", nearest)):
        call = partial(lopro.solve, problem, method=lopro.LoPGD(), time_limit=limit, tol=1e-12)
        yield Case(
            f"LoPGD, {label} {d} x {d}",
            "3 ms a step (the difference of 400 and 100 steps)",
            partial(call, max_iter=100),
            partial(_each_step, place, partial(call, max_iter=400)),
        )


def _each_step(place: Place, call: Any, short: Any, seconds: float) -> dict[str, Any]:
    place.wait()
    begin = perf_counter()
    found = call()
    place.wait()
    more = max(1, found.iterations - short.iterations)
    return {
        "ms_a_step": 1e3 * (perf_counter() - begin - seconds) / more,
        "steps": found.iterations,
        "projections": found.counts.projections,
        "eigenpairs": found.counts.eigenpairs,
    }


def logistic(place: Place, limit: float) -> Iterator[Case]:
    """Logistic regression with 20 rows bounded on both sides, with a ridge and without."""
    for samples, features in place.of(((100_000, 50), (2_000_000, 1000)), ((300, 8),)):
        X, C = place.normal(samples, features), place.normal(20, features)
        if place.small:
            C = C[:3]
        labels = torch.sign(X @ C[0] / features**0.5 + place.normal(samples))
        rows = Affine(place.given(C), -0.05, 0.05)
        for ridge in (0.0, 1e-3):
            f = Logistic(place.given(X), place.given(labels), l2=ridge)
            problem = lopro.Problem(f, rows)
            yield Case(
                f"logistic {samples} x {features}, 20 rows, ridge {ridge:g}",
                "3 s at 2000000 x 1000, proved 1e-6",
                partial(lopro.solve, problem, tol=1e-6, time_limit=limit),
            )


def half_spaces(place: Place, limit: float) -> Iterator[Case]:
    """Least squares over random half-spaces."""
    for variables, rows in place.of(((500, 5000), (2000, 20_000)), ((8, 30),)):
        G, A = place.normal(rows, variables), place.normal(3 * variables // 2, variables)
        b, h = 10.0 * place.normal(len(A)), abs(place.normal(rows))
        f = LeastSquares(place.given(A), place.given(b))
        problem = lopro.Problem(f, Polyhedron(place.given(G), place.given(h)))
        yield Case(
            f"least squares, {variables} variables, {rows} half-spaces",
            "0.22 and 0.55 s",
            partial(lopro.solve, problem, tol=1e-6, time_limit=limit),
        )


def correlation(place: Place, limit: float) -> Iterator[Case]:
    """The nearest correlation matrix to uniform entries."""
    n = place.of(3000, 40)
    G = place.normal(n, n).uniform_(-1.0, 1.0, generator=place.generator)
    G = 0.5 * (G + G.T)
    G.fill_diagonal_(1.0)
    yield Case(
        f"nearest correlation matrix, n = {n}",
        "1 s",
        partial(lopro.nearest_correlation, place.given(G), time_limit=limit),
    )


def max_cut(place: Place, limit: float) -> Iterator[Case]:
    """The relaxation of max-cut, dense, on random graphs of mean degree 6."""
    for n, tol in place.of(((200, 1e-6), (2000, 1e-4)), ((20, 1e-6),)):
        i, j = np.random.default_rng(0).integers(0, n, (2, 3 * n))
        W = np.zeros((n, n))
        np.add.at(W, (i[i != j], j[i != j]), 1.0)
        W = W + W.T
        C = place.given(place.there((W - np.diag(W.sum(axis=1))) / 4.0))
        at, ones = np.arange(n), np.ones(n)
        cone = Intersection(PSDCone(n), Affine.entries((at, at), ones, ones, shape=(n, n)))
        for name, call in (
            ("solve", partial(lopro.solve, lopro.Problem(Linear(C), cone))),
            ("fixed_diagonal", partial(lopro.fixed_diagonal, C)),
        ):
            yield Case(
                f"max-cut, {name}, n = {n}, tol {tol:g}",
                "proved",
                partial(call, tol=tol, time_limit=limit),
            )


def metric(place: Place, limit: float) -> Iterator[Case]:
    """The metric of the paper's Table 2."""
    data = load_colon(download=False)
    d = place.of(2000, 30)
    X, labels = place.there(data.X[:40, :d]), data.labels[:40]
    for tol, goal in ((1e-2, "4 s"), (1e-3, "7 s")):
        yield Case(
            f"learn_metric, {data.name} 40 x {d}, tol {tol:g}",
            goal,
            partial(lopro.learn_metric, place.given(X), labels, l1=1e-3, tol=tol, time_limit=limit),
        )


def total_variation(place: Place, limit: float) -> Iterator[Case]:
    """Least total variation over a residual ball around a blurred image, with an operator."""
    side, noise = place.of(512, 12), 0.01
    blur = _Blur(side, 2.0, place.normal(1))
    image = torch.zeros(side, side, dtype=torch.float64, device=place.device)
    image[side // 5 : 3 * side // 5, side // 3 : 4 * side // 5] = 0.7
    y = blur.multiply(image.reshape(-1)) + noise * place.normal(side * side)
    ball = ResidualBall(blur, y, noise * side)
    problem = lopro.Problem(TotalVariation((side, side)), ball)
    for tol in (1e-3, 1e-4):
        yield Case(
            f"total variation {side} x {side}, tol {tol:g}",
            "proved",
            partial(lopro.solve, problem, tol=tol, time_limit=limit),
        )


class _Blur(lopro.maps.LinearMap):
    """A periodic Gaussian blur of images of a device; symmetric."""

    def __init__(self, side: int, width: float, like: Any) -> None:
        super().__init__(None, (side**2, side**2), like)
        waves = np.fft.fftfreq(side)[:, None] ** 2 + np.fft.rfftfreq(side)[None, :] ** 2
        self._kernel = torch.asarray(
            np.exp(-2.0 * (np.pi * width) ** 2 * waves), device=like.device
        )
        self._side = side

    def multiply(self, X: Any) -> Any:
        images = X.reshape(self._side, self._side, -1)
        waves = torch.fft.rfft2(images, dim=(0, 1)) * self._kernel[..., None]
        return torch.fft.irfft2(waves, s=images.shape[:2], dim=(0, 1)).reshape(X.shape)

    multiply_adjoint = multiply
