"""The penalised LASSO against celer, skglm and scikit-learn: one thread, one process, the same proved gap.

    python -m benchmarks.lasso [--sizes dense sparse path net] [--rows M] [--columns D] [--rounds N]

Each solver gets the loosest of its own tolerances that ends with a relative duality gap of 1e-8, as measured
here with the data alone; the runs that find it are not timed. Solvers take turns, and the least time of each
is printed with its ratio to lopro's. lopro certifies the gap within its time, the others do not.
"""

from __future__ import annotations

import argparse
import time
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import scipy.sparse
from threadpoolctl import threadpool_limits

import lopro

#: The relative gap that counts, and the tolerances that other solvers are offered.
GAP = 1e-8
TOLERANCES = (1e-6, 1e-8, 1e-10, 1e-12, 1e-14)
SHARES = (0.5, 0.1, 0.02)
#: The ridge of the elastic net, of lam: scikit-learn's ``l1_ratio=0.9``.
RIDGE = 1.0 / 9.0
Solver = Callable[[Any, Any, float, float], Any]


def instance(m: int, d: int, density: float | None = None) -> tuple[Any, Any]:
    """Return a matrix by columns, Gaussian or sparse, and a noisy combination of a hundred columns."""
    rng = np.random.default_rng([m, d])
    if density is None:
        A: Any = np.asfortranarray(rng.standard_normal((m, d)))
    else:
        A = scipy.sparse.random(m, d, density, "csc", rng=rng, data_rvs=rng.standard_normal)
    x = np.zeros(d)
    x[rng.choice(d, 100, replace=False)] = rng.standard_normal(100)
    signal = A @ x
    noise = rng.standard_normal(m)
    return A, signal + 0.3 * np.linalg.norm(signal) / np.linalg.norm(noise) * noise


def gap_of(A: Any, y: Any, x: Any, lam: float, ridge: float = 0.0) -> float:
    """Return the relative duality gap at a point, by the formulas of `docs/guide/lasso.md`."""
    r = y - A @ x
    fun = 0.5 * float(r @ r) + lam * float(np.abs(x).sum()) + 0.5 * ridge * float(x @ x)
    pulled = np.abs(A.T @ r)
    if ridge > 0.0:
        beyond = np.maximum(pulled - lam, 0.0)
        bound = float(y @ r - 0.5 * r @ r) - float(beyond @ beyond) / (2.0 * ridge)
    else:
        t = min(float(y @ r) / float(r @ r), lam / float(pulled.max()))
        bound = t * float(y @ r) - 0.5 * t * t * float(r @ r)
    return (fun - bound) / fun


def _fit(model: Any, A: Any, y: Any) -> Any:
    with warnings.catch_warnings():
        warnings.simplefilter(
            "ignore"
        )  # they warn of tolerances that they miss by their own measure
        return model.fit(A, y).coef_


def by_celer(A: Any, y: Any, lam: float, tol: float) -> Any:
    """The LASSO of celer; its alpha is lam over the number of rows."""
    from celer import Lasso

    return _fit(Lasso(lam / len(y), fit_intercept=False, tol=tol, max_iter=1000), A, y)


def by_skglm(A: Any, y: Any, lam: float, tol: float) -> Any:
    """The LASSO of skglm."""
    from skglm import Lasso

    return _fit(Lasso(lam / len(y), fit_intercept=False, tol=tol, max_iter=1000), A, y)


def by_sklearn(A: Any, y: Any, lam: float, tol: float) -> Any:
    """scikit-learn's LASSO."""
    from sklearn.linear_model import Lasso

    model = Lasso(lam / len(y), fit_intercept=False, tol=tol, max_iter=100_000)
    return _fit(model, A, y)


def net_by_sklearn(A: Any, y: Any, lam: float, tol: float) -> Any:
    """scikit-learn's elastic net."""
    from sklearn.linear_model import ElasticNet

    total, share = lam * (1.0 + RIDGE) / len(y), 1.0 / (1.0 + RIDGE)
    model = ElasticNet(total, l1_ratio=share, fit_intercept=False, tol=tol, max_iter=100_000)
    return _fit(model, A, y)


def by_lopro(A: Any, y: Any, lam: float, tol: float) -> Any:
    """`lopro.lasso`, certified."""
    return lopro.lasso(A, y, lam=lam, tol=GAP).x


def net_by_lopro(A: Any, y: Any, lam: float, tol: float) -> Any:
    """`lopro.lasso` with a ridge, certified."""
    return lopro.lasso(A, y, lam=lam, ridge=RIDGE * lam, tol=GAP).x


LASSO: dict[str, Solver] = {
    "lopro": by_lopro,
    "celer": by_celer,
    "skglm": by_skglm,
    "sklearn": by_sklearn,
}
NET: dict[str, Solver] = {"lopro": net_by_lopro, "sklearn": net_by_sklearn}


def tuned(solver: Solver, A: Any, y: Any, lam: float, ridge: float) -> tuple[float, float]:
    """Return the loosest tolerance that reaches the gap, and the gap; the tightest one if none does."""
    for tol in TOLERANCES:
        gap = gap_of(A, y, solver(A, y, lam, tol), lam, ridge)
        if gap <= GAP:
            break
    return tol, gap


def measure(
    solvers: dict[str, Solver], A: Any, y: Any, lam: float, ridge: float, rounds: int
) -> dict[str, tuple[float, float]]:
    """Return the least time of each solver, and the gap that it ends with."""
    chosen = {name: tuned(solver, A, y, lam, ridge) for name, solver in solvers.items()}
    least = dict.fromkeys(solvers, np.inf)
    for _ in range(rounds):
        for name, solver in solvers.items():
            started = time.perf_counter()
            solver(A, y, lam, chosen[name][0])
            least[name] = min(least[name], time.perf_counter() - started)
    return {name: (least[name], chosen[name][1]) for name in solvers}


def paths(A: Any, y: Any, count: int, rounds: int) -> dict[str, tuple[float, float]]:
    """Return the least time for a path down to a hundredth, and the largest gap on it."""
    most = float(np.abs(A.T @ y).max())
    lams = most * np.geomspace(1.0, 1e-2, count)

    def ours(tol: float) -> list[Any]:
        return [each.x for each in lopro.lasso_path(A, y, lams, tol=GAP)]

    def celers(tol: float) -> list[Any]:
        from celer import celer_path

        alphas = lams / len(y)
        return list(celer_path(A, y, "lasso", alphas=alphas, tol=tol, max_iter=1000)[1].T)

    def sklearns(tol: float) -> list[Any]:
        from sklearn.linear_model import lasso_path

        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return list(lasso_path(A, y, alphas=lams / len(y), tol=tol, max_iter=100_000)[1].T)

    found: dict[str, tuple[float, float]] = {}
    for name, solver in {"lopro": ours, "celer": celers, "sklearn": sklearns}.items():
        for tol in TOLERANCES:
            started = time.perf_counter()
            points = solver(tol)
            seconds = time.perf_counter() - started
            gap = max(gap_of(A, y, x, lam) for x, lam in zip(points, lams, strict=True))
            if gap <= GAP or name == "lopro":
                break
        for _ in range(rounds - 1):
            started = time.perf_counter()
            solver(tol)
            seconds = min(seconds, time.perf_counter() - started)
        found[name] = (seconds, gap)
        print(f"  {name}: {seconds:.2f} s, tol {tol:.0e}, gap {gap:.0e}", flush=True)
    return found


def show(title: str, found: dict[str, tuple[float, float]]) -> None:
    """Print one line: seconds, ratios to lopro, gaps."""
    own = found["lopro"][0]
    cells = [f"{n} {s:.3f} s ({s / own:.2f}x, gap {g:.0e})" for n, (s, g) in found.items()]
    print(f"{title}: " + ", ".join(cells), flush=True)


def main(arguments: list[str] | None = None) -> None:
    """Measure what is asked for."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--sizes", nargs="+", default=["dense", "sparse", "path", "net"])
    parser.add_argument("--rows", type=int, default=1500)
    parser.add_argument("--columns", type=int, default=15000)
    parser.add_argument("--count", type=int, default=50, help="weights of the path")
    parser.add_argument("--rounds", type=int, default=3)
    asked = parser.parse_args(arguments)
    with threadpool_limits(1):
        A, y = instance(asked.rows, asked.columns)
        most = float(np.abs(A.T @ y).max())
        shape = f"{asked.rows} x {asked.columns}"
        for share in SHARES:
            lam = share * most
            if "dense" in asked.sizes:
                show(f"{shape}, lam {share}", measure(LASSO, A, y, lam, 0.0, asked.rounds))
            if "net" in asked.sizes:
                found = measure(NET, A, y, lam, RIDGE * lam, asked.rounds)
                show(f"elastic net {shape}, lam {share}", found)
        if "path" in asked.sizes:
            show(f"path of {asked.count}, {shape}", paths(A, y, asked.count, asked.rounds))
        if "sparse" in asked.sizes:
            A, y = instance(20_000, 200_000, 1e-3)
            most = float(np.abs(A.T @ y).max())
            for share in SHARES:
                found = measure(LASSO, A, y, share * most, 0.0, asked.rounds)
                show(f"sparse 20000 x 200000, lam {share}", found)


if __name__ == "__main__":
    main()
