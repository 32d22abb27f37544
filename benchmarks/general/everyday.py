"""Everyday problems in plain formulations, solved by `Auto`: regressions, classification, portfolios.

    python -m benchmarks.general.everyday [CASE ...] [--small]

- quantile: pinball loss, 20,000 x 30, rising coefficients; HiGHS' interior point method on the linear
  program;
- svm: hinge loss with a ridge, 20,000 x 50, one row on both sides and a box; PIQP on the quadratic program;
- million: the same with 1,000,000 samples, lopro alone;
- poisson: 20,000 x 20, rising coefficients; SciPy's trust-constr with its Hessian;
- assets: 5,000 assets with 20 factors, sectors and bounds, by their factors; the same through CVXPY, solved
  by lopro and by Clarabel (CVXPY's own compilation is counted).

One process, one thread, processor times of one run each, set-up included. The violations and gaps of lopro
are those of its certificate; the gaps of others are the relative differences of their values and lopro's.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import scipy.optimize
import scipy.sparse as sp

import lopro
import lopro.constraints as lc
import lopro.objectives as lo
from benchmarks._report import write_json
from benchmarks.general.forced import samples
from benchmarks.general.measure import Judged, Run, print_table, records
from lopro.engines import QuadraticProgram, solve_by_piqp

#: A solver: returns its value.
Peer = Callable[[], float]
#: A function that makes the problem, and the other solvers.
Case = tuple[Callable[[], lopro.Problem], dict[str, Peer]]
LIMIT = 120.0


def quantile(small: bool) -> Case:
    rng, n, d = np.random.default_rng(0), 300 if small else 20_000, 30
    X, y, _ = samples(rng, n, d)
    rising = np.diff(np.eye(d), axis=0)

    def make_problem() -> lopro.Problem:
        return lopro.Problem(lo.PinballLoss(X, y, 0.3), lc.Polyhedron(-rising, np.zeros(d - 1)))

    def highs() -> float:
        eye = sp.eye_array(n)
        cost = np.concatenate([np.zeros(d), np.full(n, 0.3 / n), np.full(n, 0.7 / n)])
        A = sp.hstack([sp.csr_array(X), eye, -eye], format="csr")
        G = sp.hstack([sp.csr_array(-rising), sp.csr_array((d - 1, 2 * n))], format="csr")
        bounds = [(None, None)] * d + [(0, None)] * (2 * n)
        found = scipy.optimize.linprog(cost, G, np.zeros(d - 1), A, y, bounds, "highs-ipm")
        return float(found.fun)

    return make_problem, {"highs-ipm": highs}


def svm(small: bool, n: int = 20_000) -> Case:
    rng, n, d = np.random.default_rng(0), 300 if small else n, 50
    X, _, labels = samples(rng, n, d)
    row = rng.standard_normal((1, d))

    def make_problem() -> lopro.Problem:
        box = lc.Box(-np.ones(d), np.ones(d))
        f = lo.HingeLoss(X, labels, l2=1.0)
        return lopro.Problem(f, lc.Intersection(lc.Affine(row, -0.1, 0.1), box))

    def piqp() -> float:
        margins = sp.hstack([sp.csr_array(X * labels[:, None]), sp.eye_array(n)])
        A = sp.vstack([margins, sp.hstack([sp.csr_array(row), sp.csr_array((1, n))])], format="csr")
        P = sp.diags_array(np.concatenate([np.ones(d), np.zeros(n)])).tocsc()
        q = np.concatenate([np.zeros(d), np.full(n, 1.0 / n)])
        free = np.full(n, np.inf)
        lower, upper = np.append(np.ones(n), -0.1), np.append(free, 0.1)
        least, most = np.append(-np.ones(d), np.zeros(n)), np.append(np.ones(d), free)
        x = solve_by_piqp(QuadraticProgram.of(P, q, A, lower, upper, least, most)).x
        return float(0.5 * x[:d] @ x[:d] + x[d:].mean())

    return make_problem, {"piqp": piqp}


def million(small: bool) -> Case:
    return svm(small, 1_000_000)[0], {}


def poisson(small: bool) -> Case:
    rng, n, d = np.random.default_rng(0), 300 if small else 20_000, 20
    X, _, _ = samples(rng, n, d)
    counts = rng.poisson(np.exp(0.2 * X @ rng.standard_normal(d))).astype(float)
    rising = np.diff(np.eye(d), axis=0)

    def make_problem() -> lopro.Problem:
        return lopro.Problem(lo.Poisson(X, counts), lc.Polyhedron(-rising, np.zeros(d - 1)))

    def trust() -> float:
        found = scipy.optimize.minimize(
            lambda w: float(np.mean(np.exp(X @ w) - counts * (X @ w))),
            np.zeros(d),
            jac=lambda w: X.T @ (np.exp(X @ w) - counts) / n,
            hess=lambda w: (X.T * (np.exp(X @ w) / n)) @ X,
            method="trust-constr",
            constraints=scipy.optimize.LinearConstraint(rising, 0.0, np.inf),
        )
        return float(found.fun)

    return make_problem, {"trust-constr": trust}


def assets(small: bool) -> Case:
    rng, n, k = np.random.default_rng(5), 100 if small else 5_000, 20
    F, own = 0.2 * rng.standard_normal((k, n)) / np.sqrt(k), rng.uniform(0.01, 0.05, n)
    mu = 0.05 * rng.standard_normal(n)
    sectors = sp.csr_array((np.ones(n), (np.arange(n) % 10, np.arange(n))), (10, n))

    def make_problem() -> lopro.Problem:
        spread = lo.LeastSquares(sp.diags_array(np.sqrt(own)).tocsr(), np.zeros(n))
        f = lo.LeastSquares(F, np.zeros(k)) + spread + lo.Linear(-mu)
        total = lc.Affine(sp.csr_array(np.ones((1, n))), 1.0, 1.0)
        box = lc.Box(np.zeros(n), np.full(n, np.inf))
        return lopro.Problem(f, lc.Intersection(total, lc.Affine(sectors, upper=0.2), box))

    import cvxpy as cp

    import lopro.cvxpy

    def through_cvxpy(solver: Any) -> float:
        x = cp.Variable(n)
        risk = cp.sum_squares(F @ x) + cp.sum_squares(cp.multiply(np.sqrt(own), x))
        rows = [cp.sum(x) == 1.0, x >= 0.0, sectors @ x <= 0.2]
        return float(cp.Problem(cp.Minimize(0.5 * risk - mu @ x), rows).solve(solver=solver))

    peers = {"lopro by cvxpy": lopro.cvxpy.Lopro(), "clarabel by cvxpy": "CLARABEL"}
    return make_problem, {name: partial(through_cvxpy, solver) for name, solver in peers.items()}


CASES: dict[str, Callable[[bool], Case]] = {
    "quantile": quantile, "svm": svm, "million": million, "poisson": poisson, "assets": assets,
}  # fmt: skip


def measured(name: str, case: Case) -> list[Run]:
    """Solve a case by lopro and by the other solvers."""
    make_problem, peers = case
    begin = time.process_time()
    result = lopro.solve(make_problem(), time_limit=LIMIT)
    seconds, known = time.process_time() - begin, result.certificate
    judged = Judged(result.fun, known.violation, known.relative_gap, np.inf)
    runs = [Run(name, "lopro", seconds, judged, f"{result.status.name} {result.method}")]
    for peer, solved in peers.items():
        begin = time.process_time()
        value = solved()
        seconds = time.process_time() - begin
        distance = abs(value - result.fun) / abs(result.fun)
        runs.append(Run(name, peer, seconds, Judged(value, 0.0, distance, np.inf), "not proved"))
    return runs


def main(arguments: list[str]) -> None:
    """Measure the chosen cases, all by default, and print the ratios."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("case", nargs="*", choices=[[], *CASES], help="all by default")
    parser.add_argument("--small", action="store_true", help="toy sizes, as a test")
    options = parser.parse_args(arguments)
    runs: list[Run] = []
    for name in options.case or CASES:
        own = measured(name, CASES[name](options.small))
        print_table(own)
        for peer in own[1:]:
            label = f"{name} / {peer.peer}"
            print(f"{label:28s}{'ratio':12s}{own[0].seconds / peer.seconds:9.2f}", flush=True)
        runs += own
    write_json("general_everyday", {"runs": records(runs)})


if __name__ == "__main__":
    main(sys.argv[1:])
