"""Calls of every public entry on inputs that take much longer than their time limits."""

from __future__ import annotations

import os
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
import pytest
import scipy.io
import scipy.sparse
from scipy.sparse.linalg import aslinearoperator

import lopro
from lopro import constraints as lc
from lopro import objectives as lo

__all__ = ["CALLS", "DATA", "LARGE", "semidefinite"]

ROOT = Path(__file__).parent.parent.parent
DATA = Path(os.environ.get("LOPRO_DATA", ROOT.parent / "shared" / "data"))

#: A call whose data are prepared; it takes the options of a run.
Call: TypeAlias = Callable[..., Any]


def _rng() -> np.random.Generator:
    return np.random.default_rng(0)


def _sensing(m: int, d: int, k: int) -> tuple[Any, Any, float]:
    rng = _rng()
    A = rng.standard_normal((m, d))
    x = np.zeros(d)
    x[rng.choice(d, k, replace=False)] = rng.standard_normal(k)
    noise = 0.01 * rng.standard_normal(m)
    return A, A @ x + noise, float(np.linalg.norm(noise))


def single() -> Call:
    A, y, sigma = _sensing(1500, 6000, 500)
    return partial(lopro.bpdn, A, y, 0.01 * sigma, tol=1e-12)


def operator() -> Call:
    A, y, sigma = _sensing(1000, 5000, 300)
    return partial(lopro.bpdn, aslinearoperator(A), y, 0.01 * sigma, tol=1e-12)


def nonneg() -> Call:
    A, y, sigma = _sensing(300, 1000, 80)
    method = lopro.MultiplierMethod()
    return partial(lopro.bpdn, A, y, 0.1 * sigma, nonneg=True, method=method, tol=1e-12)


def many() -> Call:
    A, _, _ = _sensing(300, 1200, 40)
    Y = A @ _rng().standard_normal((1200, 200))
    return partial(lopro.bpdn, A, Y, 0.5, tol=1e-10)


def path() -> Call:
    A, y, _ = _sensing(500, 2000, 150)
    return partial(lopro.bpdn_path, A, y, list(np.linspace(10.0, 0.001, 100)), tol=1e-10)


def metric() -> Call:
    rng = _rng()
    X, labels = rng.standard_normal((1500, 300)), rng.integers(0, 3, 1500)
    return partial(lopro.learn_metric, X, labels, tol=1e-9)


def wide_metric() -> Call:
    X = _rng().standard_normal((600, 800))
    return partial(lopro.learn_metric, X, np.arange(600) % 2, l1=1e-3, tol=1e-9)


def polyhedron() -> Call:
    rng = _rng()
    rows = lc.Polyhedron(rng.standard_normal((4000, 400)), np.ones(4000))
    f = lo.LeastSquares(rng.standard_normal((800, 400)), rng.standard_normal(800))
    return partial(lopro.solve, lopro.Problem(f, rows), tol=1e-13)


def cone() -> Call:
    rng = _rng()
    M = rng.standard_normal((1200, 1200))
    box = lc.Spectrahedron(1200)
    f = lo.SquaredDistance(M + M.T) + lo.OffDiagonalL1(1200, 0.1)
    return partial(lopro.solve, lopro.Problem(f, box), tol=1e-13)


def intersection() -> Call:
    rng = _rng()
    both = lc.Intersection(
        lc.ResidualBall(rng.standard_normal((100, 400)), rng.standard_normal(100), 0.1),
        lc.Polyhedron(rng.standard_normal((1500, 400)), np.full(1500, 0.5)),
    )
    return partial(lopro.solve, lopro.Problem(lo.L1Norm(), both), tol=1e-13)


def callables() -> Call:
    """Sums of exponentials up to exp(9): at 0 the sum is exp(8.2), the least one is exp(8.1)."""
    rng, n = _rng(), 600
    A = rng.standard_normal((3600, n))

    def value(x: Any) -> float:
        return float(np.logaddexp.reduce(A @ x)) - 9.0

    def slope(x: Any) -> Any:
        p = np.exp(A @ x - np.logaddexp.reduce(A @ x))
        return A.T @ p

    set_ = lc.FunctionConstraint(value, slope, smooth=True, shape=(n,))
    c = rng.standard_normal(n)
    return partial(
        lopro.minimize,
        lambda x: float(c @ x) + 0.01 * float(x @ x),
        np.zeros(n),
        lambda x: c + 0.02 * x,
        constraint=set_,
        tol=1e-13,
    )


def correlation() -> Call:
    G = _rng().uniform(-1.0, 1.0, (1500, 1500))
    return partial(lopro.nearest_correlation, 0.5 * (G + G.T), tol=1e-12)


def transport() -> Call:
    """300 bins to 300 bins: 90,000 variables."""
    rng, k = _rng(), 300
    mass = [p / p.sum() for p in rng.random((2, k))]
    place, eye, ones = np.linspace(0.0, 1.0, k), scipy.sparse.eye_array(k), np.ones((1, k))
    E = scipy.sparse.vstack([scipy.sparse.kron(eye, ones), scipy.sparse.kron(ones, eye)])
    sides = np.concatenate(mass)
    plans = lc.Intersection(
        lc.Affine(E.tocsr(), sides, sides), lc.Box(np.zeros(k * k), np.full(k * k, np.inf))
    )
    cost = lo.Linear(((place[:, None] - place) ** 2).ravel())
    return partial(lopro.solve, lopro.Problem(cost, plans))


def variation() -> Call:
    """A third of the pixels of a noisy image of 128 x 128: find the image of least total variation."""
    rng, n = _rng(), 128
    image = np.zeros((n, n))
    image[30:90, 40:100], image[60:, 20:50] = 1.0, 0.5
    seen = np.sort(rng.choice(n * n, n * n // 3, replace=False))
    noise = 0.02 * rng.standard_normal(len(seen))
    rows = scipy.sparse.eye_array(n * n, format="csr")[seen]
    ball = lc.ResidualBall(rows, image.ravel()[seen] + noise, float(np.linalg.norm(noise)))
    return partial(lopro.solve, lopro.Problem(lo.TotalVariation((n, n)), ball))


def _file(*parts: str) -> Path:
    path = DATA.joinpath(*parts)
    if not path.exists():
        pytest.skip(f"no {path}: set LOPRO_DATA to a folder with {'/'.join(parts)}")
    return path


def pilot87() -> Call:
    """A linear program of Netlib."""
    data = scipy.io.loadmat(_file("netlib", "feasible", "pilot87.mat"))
    sides = {key: data[key].ravel().astype(float) for key in ("b", "h_l", "h_u", "x_l", "x_u", "c")}
    sides = {key: np.where(np.abs(v) < 1e20, v, np.copysign(np.inf, v)) for key, v in sides.items()}
    rows = [lc.Affine(scipy.sparse.csr_array(data["A"]), sides["b"], sides["b"])]
    if data["G"].shape[0]:
        rows.append(lc.Affine(scipy.sparse.csr_array(data["G"]), sides["h_l"], sides["h_u"]))
    box = lc.Box(sides["x_l"], sides["x_u"])
    return partial(lopro.solve, lopro.Problem(lo.Linear(sides["c"]), lc.Intersection(*rows, box)))


def semidefinite(name: str) -> Call:
    """A program of SDPLIB."""
    return partial(lopro.solve, lopro.read_sdpa(_file("sdplib", f"{name}.dat-s")))


def truss5() -> Call:
    """A semidefinite program of SDPLIB."""
    return semidefinite("truss5")


def genes() -> Call:
    """A metric for 72 samples of 7129 features."""
    data = scipy.io.loadmat(_file("genes", "ALLAML.mat"))
    X, y = np.asarray(data["X"], float), np.asarray(data["Y"]).ravel()
    return partial(lopro.learn_metric, X - X.mean(axis=0), y, l1=1e-3, tol=1e-9)


#: Programs that take longer than their limits, and have a feasible point before.
LARGE = ("transport", "variation", "pilot87", "truss5")

#: Every public entry, by name: a function that makes the data and returns the call.
CALLS: dict[str, Callable[[], Call]] = {
    f.__name__: f
    for f in (
        single,
        operator,
        nonneg,
        many,
        path,
        metric,
        wide_metric,
        polyhedron,
        cone,
        intersection,
        callables,
        correlation,
        transport,
        variation,
        pilot87,
        truss5,
        genes,
    )
}
