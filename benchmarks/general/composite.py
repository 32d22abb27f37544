"""Composite objectives: total variation over a residual ball, and completion by the nuclear norm.

python -m benchmarks.general.composite [--small] [--only NAME] [--rounds N] [--seconds S]

lopro is called by `lopro.solve`; Clarabel and SCS receive the same problem in the form that CVXPY makes
of it, which is made in advance and not timed. All are judged in the same way: value and relative
violation at the point returned, and the gap to the lower bound that lopro proves.
"""

from __future__ import annotations

import argparse
import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import scipy.sparse

import lopro
from benchmarks._report import write_json
from benchmarks.general.measure import interleaved
from lopro.constraints import Affine, ResidualBall
from lopro.objectives import NuclearNorm, TotalVariation

TOL = 1e-6
_NOISE = 0.1
_KNOWN = 0.7


@dataclass(frozen=True)
class Case:
    """A problem of lopro, and a function that makes the problem of CVXPY."""

    name: str
    problem: lopro.Problem
    peer: Callable[[Any], tuple[Any, Any]]
    #: The other solvers.
    solvers: tuple[str, ...] = ("CLARABEL", "SCS")


def variation(shape: tuple[int, ...], isotropic: bool, masked: bool) -> Case:
    """A piecewise constant image with noise, with all or some of the pixels measured."""
    rng = np.random.default_rng(0)
    picture = np.zeros(shape)
    for low, high, height in ((0.25, 0.6, 1.0), (0.45, 0.9, 0.5)):
        picture[tuple(slice(int(low * s), int(high * s)) for s in shape)] += height
    d = picture.size
    seen = np.flatnonzero(rng.random(d) < (_KNOWN if masked else 1.0))
    y = picture.ravel()[seen] + _NOISE * rng.standard_normal(len(seen))
    A = scipy.sparse.csr_array((np.ones(len(seen)), (np.arange(len(seen)), seen)), (len(seen), d))
    sigma = _NOISE * math.sqrt(len(seen))
    f = TotalVariation(shape, isotropic=isotropic)
    kind = "" if len(shape) == 1 else " isotropic" if isotropic else " by axes"
    name = f"TV {'x'.join(map(str, shape))}{kind}{' masked' if masked else ''}"

    def peer(cp: Any) -> tuple[Any, Any]:
        x = cp.Variable(d)
        z = f.D.matrix @ x
        groups = cp.reshape(z, (z.size // f.group_size, f.group_size), order="C")
        value = cp.norm1(z) if f.group_size == 1 else cp.sum(cp.norm(groups, 2, axis=1))
        return x, cp.Problem(cp.Minimize(value), [cp.norm(A @ x - y, 2) <= sigma])

    return Case(name, lopro.Problem(f, ResidualBall(A, y, sigma)), peer)


def completion(n: int, rank: int, noise: float) -> Case:
    """A matrix of low rank, half of its entries known."""
    rng = np.random.default_rng(0)
    L = rng.standard_normal((n, rank)) @ rng.standard_normal((rank, n))
    L = L + noise * rng.standard_normal((n, n))
    known = rng.random((n, n)) < 0.5
    name = f"nuclear {n}x{n} rank {rank}{' noisy' if noise else ''}"

    def peer(cp: Any) -> tuple[Any, Any]:
        X = cp.Variable((n, n))
        places = np.nonzero(known)
        return X, cp.Problem(cp.Minimize(cp.normNuc(X)), [X[places] == L[places]])

    problem = lopro.Problem(NuclearNorm((n, n)), Affine.entries(known, L[known], L[known]))
    # One step of an interior point method would take minutes at n = 100.
    return Case(name, problem, peer, ("CLARABEL", "SCS") if n <= 40 else ("SCS",))


def prepared(case: Case, solver: str, seconds: float) -> Callable[[], Any]:
    """Return a call of another solver on a problem that CVXPY has compiled."""
    import cvxpy as cp

    x, problem = case.peer(cp)
    problem.get_problem_data(solver)  # CVXPY caches the compiled problem
    options: dict[str, Any] = {"time_limit_secs": seconds, "eps_abs": TOL, "eps_rel": TOL}
    if solver == "CLARABEL":
        options = {"time_limit": seconds}

    def run() -> Any:
        problem.solve(solver=solver, warm_start=False, **options)
        return None if x.value is None else np.asarray(x.value)

    return run


def row_of(case: Case, peer: str, seconds: float, answer: Any, note: str, bound: float) -> Any:
    """Return a run as plain data: value, violation, gap to the bound."""
    row: dict[str, Any] = {"problem": case.name, "peer": peer, "seconds": seconds, "note": note}
    x = answer.x if isinstance(answer, lopro.Result) else answer
    if x is None:
        return row | {"fun": None, "violation": None, "gap": None}
    fun = float(case.problem.objective.value(x))
    violation = float(case.problem.constraint.violation(x))
    return row | {"fun": fun, "violation": violation, "gap": (fun - bound) / abs(fun)}


def cases(small: bool) -> list[Case]:
    """Return the problems."""
    if small:
        return [variation((60,), True, False), completion(20, 2, 0.0)]
    found = [variation((1000,), True, masked) for masked in (False, True)]
    for isotropic in (True, False):
        found += [variation((64, 64), isotropic, masked) for masked in (False, True)]
    return [*found, completion(100, 5, 0.0), completion(100, 5, 0.1), completion(100, 20, 0.0)]


def main(arguments: list[str] | None = None) -> None:
    """Run the benchmark and print its table; ratios are to the fastest peer."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--small", action="store_true")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--seconds", type=float, default=60.0)
    parser.add_argument("--only", default="", help="problems whose name contains this")
    options = parser.parse_args(arguments)
    runs: list[dict[str, Any]] = []
    print(f"{'problem':30s}{'peer':10s}{'seconds':>9s}{'value':>15s}{'violation':>11s}{'gap':>9s}")
    for case in cases(options.small):
        if options.only not in case.name:
            continue
        peers: dict[str, Callable[[], Any]] = {
            "lopro": partial(lopro.solve, case.problem, tol=TOL, time_limit=options.seconds)
        }
        for solver in case.solvers:
            peers[solver.lower()] = prepared(case, solver, options.seconds)
        found = interleaved(peers, options.rounds, options.seconds)
        ours = found["lopro"][1]
        bound = ours.certificate.lower_bound if ours is not None else math.nan
        for peer, answer in found.items():
            row = row_of(case, peer, *answer, bound)
            shown = [math.nan if row[k] is None else row[k] for k in ("fun", "violation", "gap")]
            print(
                f"{row['problem']:30s}{peer:10s}{row['seconds']:9.3f}{shown[0]:15.8g}{shown[1]:11.1e}"
                f"{shown[2]:9.1e} {row['note']}",
                flush=True,
            )
            runs.append(row)
    if not options.small and not options.only:
        write_json("general_composite", {"tol": TOL, "runs": runs})


if __name__ == "__main__":
    main()
