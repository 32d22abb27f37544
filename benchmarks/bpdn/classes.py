"""Other people's regimes: ratios of times to SPGL1, class by class, in one process and interleaved.

``python -m benchmarks.bpdn.classes`` prints a table and writes it as JSON. Ours is certified to 1e-6; SPGL1
runs with all its tolerances at 1e-6 and with its defaults. Set ``OPENBLAS_NUM_THREADS=1`` for one thread. A
ratio above 1 is a loss. HiGHS is the third where sigma is 0.
"""

from __future__ import annotations

import argparse
import json
import math
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import scipy.optimize
from scipy.sparse.linalg import LinearOperator

import lopro

__all__ = ["CLASSES", "measure"]

Instance = tuple[Any, np.ndarray, float]


def gaussian(
    m: int, d: int, k: int, noise: float, seed: int, *, iscomplex: bool = False
) -> Instance:
    """Return Gaussian columns, k random signs, and noise of so much of the length of y."""
    rng = np.random.default_rng(seed)
    A, x = rng.standard_normal((m, d)), np.zeros(d)
    e = rng.standard_normal(m)
    if iscomplex:
        A, x, e = A + 1j * rng.standard_normal((m, d)), x + 0j, e + 1j * rng.standard_normal(m)
    x[rng.choice(d, k, replace=False)] = rng.choice([-1.0, 1.0], k)
    if iscomplex:
        x *= np.exp(2j * math.pi * rng.random(d))
    y = A @ x
    e *= noise * np.linalg.norm(y) / np.linalg.norm(e)
    return A / math.sqrt(m), (y + e) / math.sqrt(m), float(np.linalg.norm(e)) / math.sqrt(m)


def transition(m: int, d: int, seed: int) -> Instance:
    """Return equations whose solution has about as many nonzeros as equations can tell."""
    return gaussian(m, d, max(1, m // 2), 0.0, seed)


def close_to_y(m: int, d: int, below: float, seed: int) -> Instance:
    """Return a radius that is almost the length of y."""
    rng = np.random.default_rng(seed)
    A, y = rng.standard_normal((m, d)), rng.standard_normal(m)
    return A, y, float(np.linalg.norm(y)) * (1.0 - below)


def as_operator(instance: Instance) -> Instance:
    """Return the instance with products only."""
    A, y, sigma = instance
    rmatvec = (lambda v: A.T @ v) if np.isrealobj(A) else (lambda v: np.conj(A.T @ np.conj(v)))
    return (
        LinearOperator(A.shape, matvec=lambda v: A @ v.ravel(), rmatvec=rmatvec, dtype=A.dtype),
        y,
        sigma,
    )


def with_radius(factor: float, instance: Instance) -> Instance:
    """Return the instance with another radius."""
    A, y, sigma = instance
    return A, y, factor * sigma


#: By name: how an instance is made from a seed.
CLASSES: dict[str, Callable[[int], Instance]] = {
    "equations 256x1024": lambda s: gaussian(256, 1024, 32, 0.0, s),
    "equations 500x2000": lambda s: gaussian(500, 2000, 60, 0.0, s),
    "equations 1000x5000": lambda s: gaussian(1000, 5000, 100, 0.0, s),
    "degenerate equations 20x25": lambda s: transition(20, 25, s),
    "degenerate equations 40x50": lambda s: transition(40, 50, s),
    "degenerate equations 80x100": lambda s: transition(80, 100, s),
    "degenerate equations 250x400": lambda s: transition(250, 400, s),
    "equations, operator 256x1024": lambda s: as_operator(gaussian(256, 1024, 32, 0.0, s)),
    "equations, complex 120x400": lambda s: gaussian(120, 400, 12, 0.0, s, iscomplex=True),
    "complex 120x400, 2 %": lambda s: gaussian(120, 400, 12, 0.02, s, iscomplex=True),
    "complex 400x1600, 2 %": lambda s: gaussian(400, 1600, 40, 0.02, s, iscomplex=True),
    "complex 120x400, sigma/10": lambda s: with_radius(0.1, gaussian(120, 400, 12, 0.02, s, iscomplex=True)),
    "tall 3000x300": lambda s: with_radius(1.0, gaussian(3000, 300, 30, 0.02, s)),
    "close to y 50x200": lambda s: close_to_y(50, 200, 1e-4, s),
    "operator 1024x2048, 2 %": lambda s: as_operator(gaussian(1024, 2048, 100, 0.02, s)),
    "support near m, sigma/1e4": lambda s: with_radius(1e-4, gaussian(200, 800, 20, 0.02, s)),
    "tiny 20x50": lambda s: gaussian(20, 50, 3, 0.02, s),
    "paper-like 1000x5000, 1 %": lambda s: gaussian(1000, 5000, 100, 0.01, s),
}  # fmt: skip


def relative_violation(A: Any, y: np.ndarray, sigma: float, x: np.ndarray) -> float:
    """Return by how much the residual is too long, in units of the length of y."""
    return float(max(0.0, np.linalg.norm(A @ x - y) - sigma) / np.linalg.norm(y))


def timed(call: Callable[[], Any]) -> tuple[float, Any]:
    """Return the seconds a call takes, and what it returns."""
    start = time.perf_counter()
    answer = call()
    return time.perf_counter() - start, answer


def by_spgl1(instance: Instance, tol: float | None) -> np.ndarray:
    """Solve by SPGL1 with all tolerances at one value, or with its defaults."""
    import spgl1

    A, y, sigma = instance
    names = ("bp_tol", "ls_tol", "opt_tol", "dec_tol")
    options = {} if tol is None else dict.fromkeys(names, tol)
    iscomplex = bool(np.iscomplexobj(y))
    x = spgl1.spg_bpdn(A, y, sigma, iscomplex=iscomplex, iter_lim=20000, **options)[0]
    return np.asarray(x)


def by_highs(instance: Instance) -> np.ndarray:
    """Solve equations as a linear program."""
    A, y, _ = instance
    d = A.shape[1]
    found = scipy.optimize.linprog(np.ones(2 * d), A_eq=np.hstack([A, -A]), b_eq=y, method="highs")
    return np.asarray(found.x[:d] - found.x[d:])


def measure(name: str, repeats: int, limit: float) -> dict[str, Any]:
    """Time one class: everyone solves the same instances, one after the other."""
    seconds: dict[str, list[float]] = {}
    row: dict[str, Any] = {
        "class": name,
        "certified": 0,
        "nonzeros": 0,
        "products": 0,
        "excess": [],
    }
    for seed in range(repeats):
        instance = CLASSES[name](seed)
        A, y, sigma = instance
        calls: dict[str, Callable[[], Any]] = {
            "ours": lambda A=A, y=y, sigma=sigma: lopro.bpdn(A, y, sigma, time_limit=limit),
            "spgl1 1e-6": lambda instance=instance: by_spgl1(instance, 1e-6),
            "spgl1 default": lambda instance=instance: by_spgl1(instance, None),
        }
        if sigma == 0.0 and isinstance(A, np.ndarray) and np.isrealobj(A) and A.size <= 2e5:
            calls["highs"] = lambda instance=instance: by_highs(instance)
        for who, call in calls.items():
            took, answer = timed(call)
            seconds.setdefault(who, []).append(took)
            if who == "ours":
                row["certified"] += bool(answer.success)
                row["nonzeros"] = max(row["nonzeros"], int(np.count_nonzero(answer.x)))
                counts = answer.counts
                row["products"] = max(row["products"], counts.matvecs + counts.rmatvecs)
                fun = answer.fun
            elif who == "spgl1 1e-6":
                violation = relative_violation(A, y, sigma, answer)
                row["excess"].append([float(np.abs(answer).sum() / fun - 1.0), violation])
    row["seconds"] = {who: float(np.median(times)) for who, times in seconds.items()}
    row["ratio"] = {
        who: row["seconds"]["ours"] / t for who, t in row["seconds"].items() if who != "ours"
    }
    return row


def shown(row: dict[str, Any], repeats: int) -> str:
    """Return a row of the table."""
    peers = ("spgl1 1e-6", "spgl1 default", "highs")
    cells = [
        row["class"],
        f"{1e3 * row['seconds']['ours']:.1f}",
        f"{row['certified']}/{repeats}",
        str(row["nonzeros"]),
        str(row["products"]),
        *(f"{row['ratio'][who]:.2f}" if who in row["ratio"] else "" for who in peers),
    ]
    return f"| {' | '.join(cells)} |"


def main() -> None:
    """Measure all classes, or those whose name contains a word."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--limit", type=float, default=30.0, help="seconds for each of our calls")
    parser.add_argument("--only", default="", help="part of a name")
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    print(
        "| class | ours, ms | certified | nonzeros | products | to SPGL1 1e-6 | default | HiGHS |"
    )
    print("| --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: |")
    rows = []
    for name in CLASSES:
        if options.only in name:
            rows.append(measure(name, options.repeats, options.limit))
            print(shown(rows[-1], options.repeats), flush=True)
    if options.json is not None:
        options.json.write_text(json.dumps(rows, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
