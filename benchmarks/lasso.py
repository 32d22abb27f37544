"""The penalised LASSO against celer, skglm and scikit-learn: one thread, one process, the same proved gap.

    python -m benchmarks.lasso [--sizes dense sparse path net logistic] [--rows M] [--columns D] [--rounds N]
    python -m benchmarks.lasso --sizes polynomials

Each solver runs with its largest tolerance that gives a relative duality gap of 1e-8, as measured here from
the data; the runs that determine it are not timed. ``logistic`` is sparse logistic regression of
the signs of y. ``polynomials`` are all monomials up to degree 7 of correlated variables, with the shapes of
bodyfat (252 x 14) and housing (506 x 13): `lopro` alone, whose gap is proved. Solvers run in turns, and the
least time of each is printed with its ratio to lopro's. The time of lopro includes the proof of its gap.
"""

from __future__ import annotations

import argparse
import time
import warnings
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import scipy.sparse
from threadpoolctl import threadpool_limits

import lopro
from benchmarks.lasso_solvers import GAP, LASSO, LOGISTIC, NET, RIDGE, Solver

#: The tolerances tried for other solvers.
TOLERANCES = (1e-6, 1e-8, 1e-10, 1e-12, 1e-14)
SHARES = (0.5, 0.1, 0.02)
Gap = Callable[[Any], float]
#: Rows, variables and degree of the polynomials.
POLYNOMIALS = ((252, 14, 7), (506, 13, 7))


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


def polynomials(m: int, n: int, degree: int) -> tuple[Any, Any]:
    """Return the monomials of correlated variables, centred and of length 1, and a noisy cubic of a few."""
    rng = np.random.default_rng([m, n])
    X = 0.8 * rng.standard_normal((m, 1)) + 0.6 * rng.standard_normal((m, n))
    X /= np.abs(X).max(axis=0)
    y = X @ rng.standard_normal(n) + 2.0 * X[:, 0] * X[:, 1] + X[:, 2] ** 3
    y += 0.3 * rng.standard_normal(m)
    # Monomials of a degree whose first variable is i: x_i times those of one degree less from x_i on.
    blocks = list(X.T[:, :, None])
    found = list(blocks)
    for _ in range(degree - 1):
        blocks = [X[:, [i]] * np.concatenate(blocks[i:], axis=1) for i in range(n)]
        found += blocks
    A = np.asfortranarray(np.concatenate(found, axis=1))
    A -= A.mean(axis=0)
    A /= np.linalg.norm(A, axis=0)
    return A, y - y.mean()


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


def logistic_gap(A: Any, b: Any, x: Any, lam: float) -> float:
    """Return the relative duality gap of sparse logistic regression at a point."""
    scores = b * (A @ x)
    fun = float(np.logaddexp(0.0, -scores).sum()) + lam * float(np.abs(x).sum())
    p = 1.0 / (1.0 + np.exp(scores))
    p *= min(1.0, lam / float(np.abs(A.T @ (b * p)).max()))
    bound = float(scipy.special.entr(p).sum() + scipy.special.entr(1.0 - p).sum())
    return (fun - bound) / fun


def tuned(solver: Solver, A: Any, y: Any, lam: float, gap_at: Gap) -> tuple[float, float]:
    """Return the largest tolerance that reaches the gap, and the gap; the smallest one if none does."""
    for tol in TOLERANCES:
        gap = gap_at(solver(A, y, lam, tol))
        if gap <= GAP:
            break
    return tol, gap


def measure(
    solvers: dict[str, Solver], A: Any, y: Any, lam: float, gap_at: Gap, rounds: int
) -> dict[str, tuple[float, float]]:
    """Return the least time of each solver, and its final gap."""
    chosen = {name: tuned(solver, A, y, lam, gap_at) for name, solver in solvers.items()}
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
    """Measure the chosen problems."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--sizes", nargs="+", default=["dense", "sparse", "path", "net"])
    parser.add_argument("--rows", type=int, default=1500)
    parser.add_argument("--columns", type=int, default=15000)
    parser.add_argument("--count", type=int, default=50, help="weights of the path")
    parser.add_argument("--rounds", type=int, default=3)
    asked = parser.parse_args(arguments)
    with threadpool_limits(1):
        if "polynomials" in asked.sizes:
            show_polynomials()
        if asked.sizes == ["polynomials"]:
            return
        A, y = instance(asked.rows, asked.columns)
        most = float(np.abs(A.T @ y).max())
        shape = f"{asked.rows} x {asked.columns}"
        for share in SHARES:
            lam = share * most
            if "dense" in asked.sizes:
                gap = partial(gap_of, A, y, lam=lam)
                show(f"{shape}, lam {share}", measure(LASSO, A, y, lam, gap, asked.rounds))
            if "net" in asked.sizes:
                gap = partial(gap_of, A, y, lam=lam, ridge=RIDGE * lam)
                found = measure(NET, A, y, lam, gap, asked.rounds)
                show(f"elastic net {shape}, lam {share}", found)
            if "logistic" in asked.sizes:
                b = np.sign(y)
                lam = 0.5 * share * float(np.abs(A.T @ b).max())
                gap = partial(logistic_gap, A, b, lam=lam)
                found = measure(LOGISTIC, A, b, lam, gap, asked.rounds)
                show(f"logistic {shape}, lam {share}", found)
        if "path" in asked.sizes:
            show(f"path of {asked.count}, {shape}", paths(A, y, asked.count, asked.rounds))
        if "sparse" in asked.sizes:
            A, y = instance(20_000, 200_000, 1e-3)
            most = float(np.abs(A.T @ y).max())
            for share in SHARES:
                gap = partial(gap_of, A, y, lam=share * most)
                found = measure(LASSO, A, y, share * most, gap, asked.rounds)
                show(f"sparse 20000 x 200000, lam {share}", found)


def show_polynomials() -> None:
    """Print the time and the products of the LASSO on expansions of correlated variables."""
    for m, n, degree in POLYNOMIALS:
        A, y = polynomials(m, n, degree)
        most = float(np.abs(A.T @ y).max())
        for share in (*SHARES[1:], 1e-3):
            started = time.perf_counter()
            result = lopro.lasso(A, y, lam=share * most, tol=GAP)
            seconds = time.perf_counter() - started
            print(
                f"degree {degree} of {m} x {n}, {A.shape[1]} columns, lam {share}: {seconds:.2f} s, "
                f"{result.counts.rmatvecs} products, {len(result.support)} nonzeros, "
                f"gap {result.certificate.relative_gap:.0e}",
                flush=True,
            )


if __name__ == "__main__":
    main()
