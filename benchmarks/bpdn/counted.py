"""Some hundred small instances of all kinds for `counts`."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

import lopro
from benchmarks.bpdn.classes import (
    as_operator,
    close_to_y,
    gaussian,
    of_different_lengths,
    positive,
    transition,
)
from benchmarks.bpdn.counted_data import (
    blur,
    columns,
    complexly,
    correlated,
    cosine,
    free,
    groups,
    ill_conditioned,
    mapped,
    noisy,
    of_low_rank,
    on,
    operator,
    single,
    sparse,
    tensors,
    uniform,
    weights,
)
from benchmarks.lasso import polynomials
from lopro.maps import StoredMap

__all__ = ["INSTANCES", "calls"]


def bpdn(make: Callable[[], Any], of: Callable[[Any], Any] | None = None, **options: Any) -> Any:
    """Return a function that solves an instance."""

    def run() -> Any:
        instance = make()
        return lopro.bpdn(*instance, **(of(instance) if of else {}), **options)

    return run


def path(make: Callable[[], Any], shares: tuple[float, ...]) -> Any:
    """Return a function that solves an instance for several radii, given relative to y."""

    def run() -> Any:
        A, y, _ = make()
        size = float(np.linalg.norm(np.asarray(y)))
        return lopro.bpdn_path(A, y, [share * size for share in shares])

    return run


def lasso(make: Callable[[], Any], share: float, **options: Any) -> Any:
    """Return a function that solves the constrained form with a share of the norm of the solution."""

    def run() -> Any:
        A, y, sigma = make()
        tau = share * float(lopro.bpdn(A, y, sigma, **options).fun)
        return lopro.lasso(A, y, tau, **options)

    return run


def penalised(make: Callable[[], Any], share: float, **options: Any) -> Any:
    """Return a function that solves the LASSO or a variant; the penalty is a share of ``max |A^H y|``."""

    def run() -> Any:
        A, y = make()
        pulled = lopro.maps.linear_map(A).adjoint(y)
        return lopro.lasso(A, y, lam=share * float(abs(pulled).max()), **options)

    def in_units_of_y() -> Any:
        A, y = make()
        most = float(np.abs(A.T @ y).max()) / float(np.linalg.norm(y))
        return lopro.lasso(A, y, lam=share * most, **options)

    return in_units_of_y if options.get("square_root") else run


def penalties(make: Callable[[], Any]) -> Any:
    """Return a function that solves the LASSO for ten penalties down to a hundredth of the largest."""
    return lambda: list(lopro.lasso_path(*make(), count=10))


def logistic(make: Callable[[], Any], share: float, **options: Any) -> Any:
    """Return a function that solves sparse logistic regression of the signs of y."""

    def run() -> Any:
        A, y = make()
        labels = np.sign(y)
        lam = 0.5 * share * float(np.abs(lopro.maps.linear_map(A).adjoint(labels)).max())
        return lopro.sparse_logistic(A, labels, lam, **options)

    return run


RADII = (0.5, 0.2, 0.1, 0.05, 0.02)
INSTANCES: dict[str, Callable[[], Any]] = {
    "dense 20x50": bpdn(lambda: uniform(20, 50, 3)),
    "dense 40x200": bpdn(lambda: uniform(40, 200, 5)),
    "dense 200x600": bpdn(lambda: uniform(200, 600, 20)),
    "dense 200x600 tol 1e-10": bpdn(lambda: uniform(200, 600, 20), tol=1e-10),
    "dense 400x1600": bpdn(lambda: uniform(400, 1600, 40)),
    "dense 1000x5000": bpdn(lambda: uniform(1000, 5000, 100)),
    "dense 1000x5000 sigma/10": bpdn(lambda: uniform(1000, 5000, 100, 0.1)),
    "wide 60x6000": bpdn(lambda: uniform(60, 6000, 8)),
    "tall 300x200": bpdn(lambda: gaussian(300, 200, 10, 0.1, 1)),
    "close to y": bpdn(lambda: close_to_y(100, 400, 1e-3, 0)),
    "close to y 0.2": bpdn(lambda: close_to_y(100, 400, 0.2, 0)),
    "positive 200x800": bpdn(lambda: positive(200, 800, 10, 0.01, 0)),
    "correlated 100x400": bpdn(lambda: correlated(100, 400, 5)),
    "ill-conditioned 4": bpdn(lambda: ill_conditioned(100, 400, 4, 0.01)),
    "ill-conditioned 8": bpdn(lambda: ill_conditioned(60, 240, 8, 1e-4)),
    "lengths 200x800": bpdn(lambda: of_different_lengths(200, 800, 15, 0.01, 0)),
    "small sigma 300x1200 /3": bpdn(lambda: uniform(300, 1200, 20, 1 / 3, 4)),
    "small sigma 300x1200 /100": bpdn(lambda: uniform(300, 1200, 20, 0.01, 4)),
    "small sigma 200x2600 /10": bpdn(lambda: uniform(200, 2600, 20, 0.1, 4)),
    "equations 60x220": bpdn(lambda: uniform(60, 220, 8, 0.0, 2)),
    "equations transition 100x300": bpdn(lambda: transition(100, 300, 0)),
    "equations 300x900": bpdn(lambda: gaussian(300, 900, 40, 0.0, 0)),
    "equations 500x2000": bpdn(lambda: gaussian(500, 2000, 60, 0.0, 0)),
    "nonneg 200x600": bpdn(lambda: uniform(200, 600, 20), nonneg=True),
    "nonneg equations": bpdn(lambda: positive(40, 160, 6, 0.0, 1), nonneg=True),
    "weights 200x600": bpdn(lambda: uniform(200, 600, 20), weights),
    "free columns": bpdn(lambda: uniform(100, 300, 10), free),
    "complex 100x300": bpdn(lambda: complexly(100, 300, 10, 0.05, 0)),
    "complex 300x1200": bpdn(lambda: complexly(300, 1200, 30, 0.02, 1)),
    "complex equations": bpdn(lambda: complexly(60, 200, 8, 0.0, 0)),
    "complex small sigma": bpdn(lambda: complexly(80, 240, 20, 1e-4, 0)),
    "groups 100x400": bpdn(lambda: uniform(100, 400, 10), groups),
    "groups 300x1200": bpdn(lambda: uniform(300, 1200, 20), groups),
    "groups nonneg": bpdn(lambda: uniform(40, 120, 4), groups, nonneg=True),
    "groups equations": bpdn(lambda: uniform(60, 240, 6, 0.0), groups),
    "joint 100x400x3": bpdn(lambda: columns(gaussian(100, 400, 8, 0.1, 0), 3), joint=True),
    "joint equations": bpdn(
        lambda: (*columns(gaussian(60, 200, 6, 0.0, 0), 2)[:2], 0.0), joint=True
    ),
    "joint equations, 25 rows": bpdn(
        lambda: (*columns(gaussian(100, 300, 25, 0.0, 0), 3)[:2], 0.0), joint=True
    ),
    "sparse 500x2000": bpdn(lambda: sparse(500, 2000, 0.02, 20)),
    "sparse 2000x10000": bpdn(lambda: sparse(2000, 10000, 0.002, 40)),
    "single 200x600": bpdn(lambda: single(uniform(200, 600, 20)), tol=1e-4),
    "operator 50x200": bpdn(lambda: as_operator(uniform(50, 200, 5))),
    "operator 300x900": bpdn(lambda: as_operator(gaussian(300, 900, 20, 0.05, 0))),
    "operator 300x900 dense support": bpdn(lambda: as_operator(gaussian(300, 900, 80, 0.01, 0))),
    "operator complex 150x500": bpdn(lambda: as_operator(complexly(150, 500, 10, 0.05, 0))),
    "operator lengths 400x1600": bpdn(
        lambda: as_operator(of_different_lengths(400, 1600, 20, 0.05, 0))
    ),
    "operator equations": bpdn(lambda: as_operator(gaussian(100, 300, 10, 0.0, 0))),
    "cosine 1024x4096": bpdn(lambda: cosine(4096, 1024, 80, 1e-3)),
    "cosine 4096x16384": bpdn(lambda: cosine(16384, 4096, 400, 1e-3)),
    "cosine 8192x65536": bpdn(lambda: cosine(65536, 8192, 500, 1e-3)),
    "cosine dense support": bpdn(lambda: cosine(4096, 3000, 1200, 1e-3)),
    "blur 3000": bpdn(lambda: blur(3000, 40)),
    "blur 500": bpdn(lambda: blur(500, 20, 1)),
    "blur 1000": bpdn(lambda: blur(1000, 20, 2)),
    "cosine 1024x2048, support near m": bpdn(lambda: cosine(2048, 1024, 512, 1e-3)),
    "cosine groups": bpdn(lambda: cosine(4096, 2100, 80, 1e-3), groups),
    "cosine nonneg": bpdn(lambda: cosine(8192, 2500, 100, 1e-3), nonneg=True, max_iter=400),
    "cosine 350x700, splitting": bpdn(
        lambda: cosine(700, 350, 150, 1e-3, 0), method=lopro.MatrixFree()
    ),
    "operator lengths 2100x4200": bpdn(
        lambda: as_operator(of_different_lengths(2100, 4200, 40, 0.05, 0))
    ),
    "stored 80x2000": bpdn(lambda: on(uniform(80, 2000, 8), StoredMap)),
    "memmap 200x3000": bpdn(lambda: mapped(uniform(200, 3000, 12))),
    "torch 200x600": bpdn(lambda: tensors(uniform(200, 600, 20), "float64")),
    "torch single 200x600": bpdn(lambda: tensors(uniform(200, 600, 20), "float32"), tol=1e-4),
    "torch single 100x6000": bpdn(lambda: tensors(uniform(100, 6000, 8), "float32"), tol=1e-4),
    "many 12 of 100x300": bpdn(lambda: columns(gaussian(100, 300, 8, 0.05, 0), 12)),
    "many 8 complex 80x200": bpdn(lambda: columns(complexly(80, 200, 8, 0.05, 0), 8)),
    "many 4 stored": bpdn(lambda: on(columns(gaussian(80, 2000, 8, 0.05, 0), 4), StoredMap)),
    "many 3 sparse": bpdn(lambda: columns(sparse(300, 1200, 0.05, 10), 3)),
    "path dense": path(lambda: gaussian(200, 600, 15, 0.01, 0), RADII),
    "path stored": path(lambda: on(gaussian(80, 2000, 8, 0.01, 0), StoredMap), RADII),
    "path operator": path(lambda: cosine(2048, 600, 30, 1e-3), RADII[:3]),
    "lasso 100x300": lasso(lambda: gaussian(100, 300, 8, 0.05, 0), 0.8),
    "lasso nonneg": lasso(lambda: uniform(100, 300, 8), 0.7, nonneg=True),
    "lasso complex": lasso(lambda: complexly(60, 200, 6, 0.05, 0), 0.8),
    "lasso slack": lasso(lambda: gaussian(100, 60, 8, 0.05, 0), 3.0),
    "penalised 300x1500, 0.5": penalised(lambda: noisy(300, 1500), 0.5),
    "penalised 300x1500, 0.1": penalised(lambda: noisy(300, 1500), 0.1),
    "penalised 300x1500, 0.02": penalised(lambda: noisy(300, 1500), 0.02),
    "penalised wide 60x6000": penalised(lambda: noisy(60, 6000), 0.05),
    "penalised sparse 2000x10000": penalised(lambda: noisy(2000, 10000, 2e-3), 0.05),
    "penalised nonneg": penalised(lambda: noisy(200, 800), 0.05, nonneg=True),
    "penalised groups": penalised(lambda: noisy(200, 800), 0.1, groups=np.arange(800) // 4),
    "penalised complex": penalised(lambda: complexly(100, 300, 10, 0.05, 0)[:2], 0.05),
    "penalised operator": penalised(lambda: operator(noisy(200, 800)), 0.05),
    "penalised cosine": penalised(lambda: cosine(8192, 2500, 100, 1e-3)[:2], 0.02),
    "penalised stored": penalised(lambda: on(noisy(80, 2000), StoredMap), 0.1),
    "penalised torch": penalised(lambda: tensors((*noisy(200, 800), 0.0), "float64")[:2], 0.05),
    "penalised polynomials": penalised(lambda: polynomials(60, 6, 4), 0.01),
    "penalised, low rank": penalised(lambda: of_low_rank(40, 120, 14), 0.01),
    "elastic net, support near m": penalised(lambda: noisy(300, 1500), 0.02, ridge=1.0),
    "elastic net": penalised(lambda: noisy(200, 800), 0.05, ridge=5.0),
    "square root": penalised(lambda: noisy(200, 800), 0.3, square_root=True),
    "square root, small weight": penalised(lambda: noisy(100, 400), 0.1, square_root=True),
    "penalties dense": penalties(lambda: noisy(300, 1500)),
    "penalties stored": penalties(lambda: on(noisy(80, 2000), StoredMap)),
    "logistic 200x800": logistic(lambda: noisy(200, 800), 0.1),
    "logistic 200x800, 0.01": logistic(lambda: noisy(200, 800), 0.01),
    "logistic intercept": logistic(lambda: noisy(200, 800), 0.05, intercept=True),
    "logistic ridge": logistic(lambda: noisy(200, 800), 0.05, ridge=1.0),
    "logistic stored": logistic(lambda: on(noisy(80, 2000), StoredMap), 0.02),
    "logistic sparse": logistic(lambda: noisy(500, 2500, 1e-2), 0.2),
    "start": lambda: _from_start(uniform(200, 600, 20)),
    "infeasible": lambda: lopro.bpdn(np.eye(4)[:, :2], np.ones(4), 0.5),
    "recognised by solve": lambda: lopro.solve(_problem(uniform(100, 300, 8))),
}


def _from_start(instance: Any) -> Any:
    """Solve with a radius ten times as large, and from that point."""
    A, y, sigma = instance
    return lopro.bpdn(A, y, sigma, x0=lopro.bpdn(A, y, 10.0 * sigma).x)


def _problem(instance: Any) -> Any:
    A, y, sigma = instance
    return lopro.Problem(lopro.objectives.L1Norm(), lopro.constraints.ResidualBall(A, y, sigma))


@dataclass(frozen=True)
class Counted:
    """Products with the matrix or its adjoint of an instance, and the status of its last run.

    All columns read one by one count as one product.
    """

    steps: float
    status: Any


def calls() -> Iterator[tuple[str, Callable[[], Counted]]]:
    """Yield all instances, each as a call that returns its products."""
    for name, run in INSTANCES.items():
        yield name, lambda run=run: _counted(run())


def _counted(found: Any) -> Counted:
    results = found if isinstance(found, list) else [found]
    products = sum(
        r.counts.matvecs + r.counts.rmatvecs + r.counts.columns / len(r.x) for r in results
    )
    unsolved = [r.status for r in results if not r.success]
    return Counted(products, (unsolved or [results[-1].status])[0])
