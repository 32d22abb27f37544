"""The choice of `Auto` against every other method that applies.

    python -m benchmarks.general.forced [PROBLEM ...] [--limit SECONDS] [--small]

One process, one thread, gaps of 1e-6 proved. For each problem the time of `Auto`, that of every method that
fits, and the ratio of `Auto` to the best of them; the last line counts ratios above 2.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import scipy
from threadpoolctl import threadpool_limits

import lopro
import lopro.constraints as lc
import lopro.objectives as lo
from benchmarks._report import write_json
from lopro.methods.baselines import InteriorPoint
from lopro.protocol import fit_of

#: The methods that apply to these problems.
METHODS = (
    lopro.NewtonMultipliers(),
    lopro.ProgramEngines(engines=("piqp",)),
    lopro.ProgramEngines(engines=("highs",)),
    lopro.ProgramEngines(engines=("clarabel",)),
    InteriorPoint(),
    lopro.MultiplierMethod(),
)
#: The largest ratio of `Auto` to the best method that counts as a good choice.
ALLOWED = 2.0
Make = Callable[[Any, int], lopro.Problem]


def samples(rng: Any, rows: int, columns: int) -> tuple[Any, Any, Any]:
    """Return features, responses that depend on them, and the signs of the responses."""
    X = rng.standard_normal((rows, columns))
    y = X @ rng.standard_normal(columns) / np.sqrt(columns) + rng.standard_normal(rows)
    return X, y, np.where(y > 0.0, 1.0, -1.0)


def monotone(columns: int) -> lc.Polyhedron:
    """Return the set of vectors with increasing entries."""
    return lc.Polyhedron(-np.diff(np.eye(columns), axis=0), np.zeros(columns - 1))


def quantile(rng: Any, n: int) -> lopro.Problem:
    X, y, _ = samples(rng, n, 30)
    return lopro.Problem(lo.PinballLoss(X, y, 0.3), monotone(30))


def svm(rng: Any, n: int) -> lopro.Problem:
    X, _, labels = samples(rng, n, 50)
    row = lc.Affine(rng.standard_normal((1, 50)), -0.1, 0.1)
    box = lc.Polyhedron.box(-np.ones(50), np.ones(50))
    f = lo.HingeLoss(X, labels) + 0.5 * lo.SquaredDistance(np.zeros(50))
    return lopro.Problem(f, lc.Intersection(row, box))


def poisson(rng: Any, n: int) -> lopro.Problem:
    X, _, _ = samples(rng, n, 20)
    counts = rng.poisson(np.exp(0.2 * X @ rng.standard_normal(20))).astype(float)
    return lopro.Problem(lo.Poisson(X, counts), monotone(20))


def logistic(rng: Any, n: int) -> lopro.Problem:
    X, _, labels = samples(rng, n, 30)
    return lopro.Problem(lo.Logistic(X, labels), monotone(30))


def huber(rng: Any, n: int) -> lopro.Problem:
    X, y, _ = samples(rng, n, 30)
    return lopro.Problem(lo.Huber(X, y, 1.0), monotone(30))


def least_squares(rng: Any, n: int) -> lopro.Problem:
    X, y, _ = samples(rng, n, 100)
    return lopro.Problem(lo.LeastSquares(X, y), monotone(100))


def lasso(rng: Any, n: int) -> lopro.Problem:
    X, y, _ = samples(rng, n, 200)
    return lopro.Problem(lo.LeastSquares(X, y) + 20.0 * lo.L1Norm())


def quadratic(rng: Any, n: int) -> lopro.Problem:
    B = rng.standard_normal((n, n))
    rows = lc.Polyhedron(rng.standard_normal((n // 5, n)), np.ones(n // 5))
    return lopro.Problem(lo.Quadratic(B @ B.T / n + 0.1 * np.eye(n), np.ones(n)), rows)


def portfolio(rng: Any, n: int) -> lopro.Problem:
    B = rng.standard_normal((n // 5, n))
    P = B.T @ B / n + np.diag(0.1 + rng.random(n))
    return lopro.Problem(lo.Quadratic(P, -0.1 * rng.random(n)), lc.Simplex(n))


def sparse_rows(rng: Any, n: int) -> lopro.Problem:
    D = scipy.sparse.diags_array([-np.ones(n), np.ones(n)], offsets=[0, 1], shape=(n - 1, n))
    trend = np.cumsum(rng.standard_normal(n))
    return lopro.Problem(lo.SquaredDistance(trend), lc.Affine(D.tocsr(), -0.5, 0.5))


def dense_linear(rng: Any, n: int) -> lopro.Problem:
    rows = lc.Polyhedron(rng.standard_normal((3 * n, n)), np.ones(3 * n))
    return lopro.Problem(lo.Linear(rng.standard_normal(n)), rows)


#: Name, problem, its size and a toy size.
PROBLEMS: dict[str, tuple[Make, int, int]] = {
    "quantile 20000x30": (quantile, 20_000, 300),
    "svm 20000x50": (svm, 20_000, 300),
    "poisson 5000x20": (poisson, 5_000, 300),
    "logistic 20000x30": (logistic, 20_000, 300),
    "huber 20000x30": (huber, 20_000, 300),
    "least squares 2000x100": (least_squares, 2_000, 300),
    "lasso 1000x200": (lasso, 1_000, 300),
    "quadratic 300": (quadratic, 300, 30),
    "portfolio 500": (portfolio, 500, 30),
    "sparse rows 2000": (sparse_rows, 2_000, 30),
    "linear 100": (dense_linear, 100, 10),
}


def seconds_of(problem: lopro.Problem, method: Any, limit: float) -> tuple[float, str]:
    """Return the least processor time of two runs and how the last one ended; infinity without a proof."""
    least, result = np.inf, None
    for _ in range(2):
        begin = time.process_time()
        result = lopro.solve(problem, method=method, time_limit=limit)
        least = min(least, time.process_time() - begin)
        if least > limit / 4.0:
            break
    assert result is not None
    return (least if result.success else np.inf), result.method


def rows_of(names: list[str], limit: float, small: bool) -> Iterator[dict[str, Any]]:
    """Yield a row for each problem."""
    for name in names or PROBLEMS:
        make, size, toy = PROBLEMS[name]
        problem = make(np.random.default_rng(0), toy if small else size)
        auto, chosen = seconds_of(problem, None, limit)
        forced = {
            repr(method): seconds_of(problem, method, limit)[0]
            for method in METHODS
            if fit_of(method, problem) is not None
        }
        best = min(forced, key=lambda method: forced[method])
        yield {
            "problem": name, "auto": auto, "chosen": chosen, "best": best, "seconds": forced,
            "ratio": auto / forced[best] if np.isfinite(forced[best]) else 1.0,
        }  # fmt: skip


def main(arguments: list[str] | None = None) -> int:
    """Measure, print a line for each problem and count those on which `Auto` chose badly."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.general.forced")
    parser.add_argument("problem", nargs="*", choices=[[], *PROBLEMS], help="all by default")
    parser.add_argument("--limit", type=float, default=20.0, help="seconds of a run")
    parser.add_argument("--small", action="store_true", help="toy sizes, as a test")
    options = parser.parse_args(arguments)
    rows = []
    with threadpool_limits(limits=1):
        for row in rows_of(options.problem, options.limit, options.small):
            rows.append(row)
            shown = ", ".join(f"{name} {t:.3g}" for name, t in row["seconds"].items())
            print(
                f"{row['problem']:24s} ratio {row['ratio']:5.2f}  {row['chosen']} {row['auto']:.3g}"
            )
            print(f"{'':24s} {shown}", flush=True)
    bad = [row["problem"] for row in rows if row["ratio"] > ALLOWED]
    print(f"{len(bad)} of {len(rows)} above {ALLOWED}: {', '.join(bad) or 'none'}")
    print(f"numbers in {write_json('forced', {'runs': rows})}")
    return 0


if __name__ == "__main__":
    main()
