"""Adapters for other packages: SPGL1, celer, scikit-learn, sigpy and CVXPY."""

from __future__ import annotations

import math
import time
import warnings
from typing import Any

import numpy as np
from scipy.optimize import brentq

from benchmarks.bpdn.adapter import Adapter, Answer, elapsed
from benchmarks.bpdn.problems import CountedOperator, Instance

__all__ = ["PEERS"]

#: The curve of SPGL1 is shown once, for its smallest tolerance.
CURVE_TOLERANCE = 1e-6


class SPGL1(Adapter):
    """SPGL1 with all its tolerances at one value."""

    requires = ("spgl1",)

    def __init__(self, tol: float) -> None:
        self.tol, self.name = tol, f"SPGL1 {tol:.0e}"

    def solve(self, instance: Instance, cap: float, iter_lim: int | None = None) -> Answer:
        import spgl1

        A = CountedOperator(instance.A)
        tolerances = dict.fromkeys(("bp_tol", "ls_tol", "opt_tol", "dec_tol"), self.tol)
        x, _, _, info = spgl1.spg_bpdn(
            A,
            instance.y,
            instance.sigma,
            iter_lim=iter_lim,
            iscomplex=instance.is_complex,
            **tolerances,
        )
        return Answer(
            x,
            A.forward,
            A.adjoint,
            iterations=int(info["niters"]),
            status=f"exit {info['stat']}",
        )

    def curve(self, instance: Instance, cap: float) -> list[tuple[float, int, Any]]:
        """Run it again with 8, 16, 32, ... iterations, since it does not return intermediate points."""
        if self.tol > CURVE_TOLERANCE:
            return []  # the same points, and fewer
        points: list[tuple[float, int, Any]] = []
        limit, spent = 8, 0.0
        while spent < cap:
            start = time.perf_counter()
            answer = self.solve(instance, cap, iter_lim=limit)
            spent += elapsed(start)
            points.append((elapsed(start), answer.products or 0, answer.x))
            if (answer.iterations or 0) < limit:
                break
            limit *= 2
        return points


class CelerRoot(Adapter):
    """celer's Lasso inside a root search on its weight: the residual grows with the weight."""

    name = "celer + root search"
    requires = ("celer",)
    needs_matrix = needs_real = True

    def __init__(self, tol: float = 1e-8, root_tol: float = 1e-6) -> None:
        self.tol, self.root_tol = tol, root_tol

    def solve(self, instance: Instance, cap: float) -> Answer:
        import celer

        y, m = instance.y, len(instance.y)
        A = np.asfortranarray(instance.A)
        start = float(np.abs(A.T @ y).max()) / m
        # celer's tolerance is in units of |y|^2; the residual must be right in units of sigma^2.
        tol = min(self.tol, 1e-3 * (instance.sigma / float(np.linalg.norm(y))) ** 2)
        x = np.zeros(A.shape[1])
        best, calls = (math.inf, x), 0

        def excess(log_alpha: float) -> float:
            """Return log(|r| / sigma), almost linear in log(alpha), or 0 where it is small enough."""
            nonlocal x, best, calls
            calls += 1
            with warnings.catch_warnings():
                warnings.simplefilter(
                    "ignore"
                )  # a subproblem that is not solved shows in the verdict
                _, path, _ = celer.celer_path(
                    A,
                    y,
                    "lasso",
                    alphas=[math.exp(log_alpha)],
                    coef_init=x,
                    tol=tol,
                    max_iter=100,
                )
            x = path[:, 0].copy()
            off = math.log(float(np.linalg.norm(A @ x - y)) / instance.sigma)
            best = min(best, (abs(off), x), key=lambda found: found[0])
            return 0.0 if abs(off) <= self.root_tol else off

        high = low = math.log(start)
        while excess(low) > 0.0:
            high, low = low, low - math.log(4.0)
        if low < high:
            brentq(excess, low, high, xtol=1e-12, rtol=1e-10, maxiter=60)
        return Answer(best[1], iterations=calls, status=f"{calls} Lassos")


class Lars(Adapter):
    """scikit-learn's path of Lasso solutions up to the point where the residual is sigma."""

    name = "lars_path"
    requires = ("sklearn",)
    needs_matrix = needs_real = True

    def solve(self, instance: Instance, cap: float) -> Answer:
        from sklearn.linear_model import lars_path

        A, y = instance.A, instance.y
        path, residuals = np.zeros((A.shape[1], 1)), np.empty(0)
        # Half as many steps as rows suffice for sparse solutions; otherwise the whole path.
        for limit in (max(50, len(y) // 2), 8 * len(y)):
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # early stopping shows in the verdict
                _, _, path = lars_path(A, y, method="lasso", max_iter=limit)
            residuals = np.linalg.norm(A @ path - y[:, None], axis=0)
            if residuals[-1] <= instance.sigma:
                break
        k = int(np.argmax(residuals <= instance.sigma))
        steps = path.shape[1] - 1
        if residuals[-1] > instance.sigma:
            return Answer(path[:, -1], iterations=steps, status="path ends early")
        x = path[:, 0] if k == 0 else _crossing(A, y, instance.sigma, path[:, k - 1], path[:, k])
        return Answer(x, iterations=steps, status=f"{steps} steps")


def _crossing(A: Any, y: Any, sigma: float, outside: Any, inside: Any) -> Any:
    """Return the point of the segment where the residual is sigma: a root of a quadratic."""
    r, step = A @ outside - y, A @ (inside - outside)
    a, b, c = step @ step, r @ step, r @ r - sigma**2
    # c > 0 > b: this form of the smaller root does not cancel.
    t = c / (-b + math.sqrt(max(0.0, b * b - a * c)))
    return outside + min(t, 1.0) * (inside - outside)


class Sigpy(Adapter):
    """sigpy's L2ConstrainedMinimization: a fixed number of primal-dual steps.

    Its steps are called one by one: ``app.run()`` stops as soon as a step changes nothing, and where the
    first steps only build up the dual variable that is at x = 0.
    """

    name = "sigpy"
    requires = ("sigpy",)

    def __init__(self, max_iter: int = 1000) -> None:
        self.max_iter = max_iter

    def solve(self, instance: Instance, cap: float) -> Answer:
        import sigpy
        import sigpy.app

        start = time.perf_counter()
        A = CountedOperator(instance.A)
        x = np.zeros(A.shape[1], dtype=instance.y.dtype)
        app = sigpy.app.L2ConstrainedMinimization(
            _linop(A, sigpy.linop.Linop),
            instance.y,
            sigpy.prox.L1Reg(x.shape, 1.0),
            instance.sigma,
            x=x,
            max_iter=self.max_iter,
            show_pbar=False,
        )
        snapshots = []
        while app.alg.iter < self.max_iter and elapsed(start) < cap:
            app.alg.update()
            if app.alg.iter & (app.alg.iter - 1) == 0 and app.alg.iter >= 16:
                snapshots.append((elapsed(start), A.forward + A.adjoint, app.x.copy()))
        status = "max iter" if app.alg.iter >= self.max_iter else "time limit"
        return Answer(
            app.x,
            A.forward,
            A.adjoint,
            iterations=app.alg.iter,
            status=status,
            snapshots=snapshots,
        )


def _linop(A: CountedOperator, base: type) -> Any:
    """Return the operator in sigpy's form."""

    class Wrapped(base):  # type: ignore[misc]
        def __init__(self, forward: Any, adjoint: Any, shape: tuple[int, int]) -> None:
            self._maps, self._size = (forward, adjoint), shape
            super().__init__([shape[0]], [shape[1]])

        def _apply(self, vector: Any) -> Any:
            return self._maps[0](vector)

        def _adjoint_linop(self) -> Any:
            return Wrapped(self._maps[1], self._maps[0], self._size[::-1])

    return Wrapped(A.matvec, A.rmatvec, A.shape)


class Cvxpy(Adapter):
    """CVXPY with a conic solver; the time includes compilation."""

    needs_matrix = True
    max_entries = 1e6

    def __init__(self, solver: str) -> None:
        self.solver, self.name = solver, f"CVXPY + {solver}"
        self.requires = ("cvxpy", solver.lower())

    def solve(self, instance: Instance, cap: float) -> Answer:
        import cvxpy

        x = cvxpy.Variable(instance.A.shape[1], complex=instance.is_complex)
        residual = cvxpy.norm2(instance.A @ x - instance.y)
        problem = cvxpy.Problem(cvxpy.Minimize(cvxpy.norm1(x)), [residual <= instance.sigma])
        limit = {"CLARABEL": "time_limit", "SCS": "time_limit_secs"}[self.solver]
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # an inaccurate answer has its own status
            problem.solve(solver=self.solver, **{limit: cap})
        iterations = problem.solver_stats.num_iters
        return Answer(x.value, iterations=iterations, status=problem.status)


PEERS: list[Adapter] = [
    SPGL1(1e-4),
    SPGL1(1e-6),
    CelerRoot(),
    Lars(),
    Sigpy(),
    Cvxpy("CLARABEL"),
    Cvxpy("SCS"),
]
