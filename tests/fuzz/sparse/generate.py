"""Cases of basis pursuit from a seed. Frozen: a change here changes what every number in the docs means."""

from __future__ import annotations

from typing import Any

import numpy as np

from fuzz.sparse.case import SparseCase
from fuzz.sparse.column import Array
from fuzz.sparse.matrices import matrix
from fuzz.sparse.starts import start

__all__ = ["bpdn_case", "many_case", "path_case"]

Rng = np.random.Generator

_FORMS = {
    "dense": 38.0,
    "fortran": 14.0,
    "operator": 20.0,
    "csr": 8.0,
    "csc": 7.0,
    "coo": 2.0,
    "matrix": 2.0,
    "strided": 4.0,
    "frozen": 3.0,
    "list": 2.0,
}
_DTYPES = {"float64": 76.0, "float32": 11.0, "complex128": 10.0, "complex64": 3.0}
_METHODS = {
    "": 84.0,
    "lopro.WorkingSet()": 3.0,
    "lopro.MatrixFree()": 4.0,
    "lopro.MultiplierMethod()": 3.0,
    "lopro.LoPNAG()": 2.0,
    "lopro.LoPGD()": 2.0,
    "lopro.baselines.NESTA()": 2.0,
}
_EXPLICIT = {"dense", "fortran", "csr", "csc", "coo", "matrix", "strided", "frozen", "list"}


def bpdn_case(seed: int) -> SparseCase:
    """One right-hand side."""
    rng = np.random.default_rng([1, seed])
    A, planted, y, size = _data(rng, _pick(rng, _DTYPES), None)
    relative = _radius(rng)
    sigma = _absolute(rng, relative, A, y)
    return _finished(rng, "bpdn", A, y, sigma, planted, size, 1e-3 <= relative <= 0.9)


def many_case(seed: int) -> SparseCase:
    """Several right-hand sides, sometimes enough of them to share the work."""
    rng = np.random.default_rng([2, seed])
    k = int(rng.choice([1, 2, 3, 5, 12]))
    A, planted, y, size = _data(rng, _pick(rng, _DTYPES), k)
    radii = [_radius(rng) for _ in range(k)]
    sigmas = [_absolute(rng, radii[j], A, y[:, j]) for j in range(k)]
    inside = all(1e-3 <= r <= 0.9 for r in radii)
    if rng.random() < 0.3:
        return _finished(rng, "many", A, y, sigmas[0], planted, size, False)
    return _finished(rng, "many", A, y, tuple(sigmas), planted, size, inside)


def path_case(seed: int) -> SparseCase:
    """A list of radii, in any order, with repetitions."""
    rng = np.random.default_rng([3, seed])
    A, planted, y, size = _data(rng, _pick(rng, _DTYPES), None)
    count = int(rng.integers(1, 6))
    radii = [_radius(rng) for _ in range(count)]
    if rng.random() < 0.2:
        radii.append(radii[0])
    sigmas = tuple(_absolute(rng, r, A, y) for r in radii)
    inside = all(1e-3 <= r <= 0.9 for r in radii)
    return _finished(rng, "path", A, y, sigmas, planted, size, inside)


def _pick(rng: Rng, shares: dict[Any, float]) -> Any:
    p = np.array(list(shares.values()))
    return list(shares)[rng.choice(len(p), p=p / p.sum())]


def _size(rng: Rng) -> tuple[int, int]:
    way = rng.random()
    if way < 0.5:
        return int(rng.integers(1, 13)), int(rng.integers(1, 26))
    if way < 0.93:
        return int(rng.integers(5, 41)), int(rng.integers(5, 91))
    return int(rng.integers(40, 101)), int(rng.integers(60, 301))


def _data(rng: Rng, dtype: str, k: int | None) -> tuple[Array, Array, Array, str]:
    """Return a matrix, points that nearly solve ``A x = y``, right-hand sides, and the kind of units."""
    m, d = _size(rng)
    A = matrix(rng, m, d)
    if dtype.startswith("complex"):
        A = A + 1j * matrix(rng, m, d)
    units = "sane" if rng.random() < 0.6 else "wild"
    unit_A, unit_y = (10.0 ** rng.uniform(-12.0, 12.0, 2)) if units == "wild" else (1.0, 1.0)
    A = (A * unit_A).astype(dtype)
    count = 1 if k is None else k
    planted = np.zeros((d, count), dtype=A.dtype)
    for j in range(count):
        used = rng.choice(d, size=min(d, int(rng.integers(1, 2 + m // 2))), replace=False)
        planted[used, j] = rng.standard_normal(len(used)) * (unit_y / unit_A)
        if dtype.startswith("complex"):
            planted[used, j] *= np.exp(2j * np.pi * rng.random(len(used)))
        if rng.random() < 0.4:
            planted[:, j] = np.abs(planted[:, j])
    Y = A @ planted
    way = rng.random()
    if way < 0.35:
        noise = 10.0 ** rng.uniform(-8.0, -0.5)
        Y = Y + noise * np.abs(Y).max(initial=0.0) * rng.standard_normal(Y.shape)
    elif way < 0.6:
        Y = unit_y * rng.standard_normal(Y.shape)
    elif way < 0.62:
        Y = 0.0 * Y
    Y = Y.astype(dtype)
    if dtype.startswith("complex") and rng.random() < 0.15:
        A = np.ascontiguousarray(A.real)  # complex measurements of a real matrix
    if k is None:
        return A, planted[:, 0], Y[:, 0], units
    return A, planted, Y, units


def _radius(rng: Rng) -> float:
    """Return sigma over |y|; above 1 and below 0 are codes, see `_absolute`."""
    way = rng.random()
    if way < 0.56:
        return float(10.0 ** rng.uniform(-3.0, np.log10(0.9)))
    if way < 0.67:
        return 0.0
    if way < 0.77:
        return float(10.0 ** rng.uniform(-9.0, -3.0))
    if way < 0.82:
        return float(rng.uniform(0.9, 0.999))
    if way < 0.86:
        return float(1.0 - 10.0 ** rng.uniform(-14.0, -3.0))
    if way < 0.88:
        return 1.0
    if way < 0.92:
        return float(rng.uniform(1.0, 10.0))
    return -float(rng.choice([0.5, 1.0 - 1e-6, 1.0, 1.0 + 1e-9, 1.0 + 1e-6, 1.01]))


def _absolute(rng: Rng, relative: float, A: Array, y: Array) -> float:
    """Return the radius; negative codes are relative to the least-squares residual."""
    scale = float(np.abs(y).max(initial=0.0)) or 1.0
    size = scale * float(np.linalg.norm(y / scale))
    if relative >= 0.0:
        return relative * size
    unit = float(np.abs(A).max()) or 1.0
    x = np.linalg.lstsq(A / unit, y / scale, rcond=None)[0]
    misfit = scale * float(np.linalg.norm((A / unit) @ x - y / scale))
    return -relative * misfit if misfit > 1e-6 * size else 0.1 * size


def _finished(
    rng: Rng, kind: str, A: Array, y: Array, sigma: Any, planted: Array, units: str, inside: bool
) -> SparseCase:
    """Add everything that is not data."""
    single = A.dtype.name in ("float32", "complex64")
    real = A.dtype.kind == "f" and y.dtype.kind == "f"
    form = _pick(rng, _FORMS)
    form = "dense" if form == "list" and A.dtype != np.float64 else form
    tol = rng.choice([1e-2, 1e-3, 1e-4]) if single and rng.random() < 0.85 else None
    if not single and rng.random() < 0.5:
        tol = rng.choice([1e-2, 1e-3, 1e-4, 1e-8, 1e-8, 1e-10])
    options = {"time_limit": float(rng.choice([2.0, 0.5, 0.1], p=[0.88, 0.08, 0.04]))}
    together = kind == "many" and rng.random() < 0.5
    if rng.random() < 0.03:
        options["max_iter"] = int(rng.choice([1, 10, 1000]))
    method = _pick(rng, _METHODS) or None
    if together and method is None:
        options.pop("time_limit")  # without limits the right-hand sides may be solved together
    case = SparseCase(
        kind,
        A,
        y,
        sigma,
        form=form,
        weights=_weights(rng, A.shape[1]),
        nonneg=bool(real and rng.random() < 0.2),
        method=method,
        tol=None if tol is None else float(tol),
        options=options,
        planted=planted,
    )
    case = case.with_changes(x0=start(rng, case))
    plain = form in _EXPLICIT and A.dtype == y.dtype == np.float64
    plain = plain and units == "sane" and method is None
    patient = options in ({"time_limit": 2.0}, {}) and (tol is None or tol >= 1e-8)
    return case.with_changes(sane=bool(plain and patient and inside))


def _weights(rng: Rng, d: int) -> Any:
    way = rng.random()
    if way < 0.7:
        return None
    if way < 0.75:
        return float(10.0 ** rng.uniform(-3.0, 3.0))
    if way < 0.95:
        return rng.uniform(0.1, 10.0, d)
    return 10.0 ** rng.uniform(-4.0, 4.0, d)
