"""Programs through the CVXPY interface: linear, quadratic, second-order and semidefinite ones."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import numpy as np

from traces.entry import digest, measured

__all__ = ["programs", "quadratic_program"]


def programs() -> Iterator[tuple[str, Callable[[], Any]]]:
    """Yield names and calls; nothing where CVXPY is not installed."""
    try:
        import cvxpy
    except ImportError:
        raise LookupError("CVXPY is not installed") from None
    for name, make in _problems(cvxpy):
        yield name, partial(measured, partial(_solved, make), _entry)


def _solved(make: Callable[[], Any]) -> Any:
    import lopro.cvxpy

    problem = make()
    problem.solve(solver=lopro.cvxpy.Lopro())
    return problem


def _entry(problem: Any) -> dict[str, Any]:
    c = problem.solver_stats.extra_stats
    values = [v.value for v in sorted(problem.variables(), key=lambda v: v.id)]
    duals = [d.value for k in problem.constraints for d in k.dual_variables]
    return {
        "status": problem.status,
        "certified": problem.status in ("optimal", "infeasible", "unbounded"),
        "source": c.source,
        "iterations": problem.solver_stats.num_iters,
        "multipliers": [list(np.shape(d)) for d in duals if d is not None],
        "x": [None if v is None else digest(v) for v in values],
        "duals": [digest(d) for d in duals if d is not None],
        "fun": repr(float(problem.value)),
        "lower_bound": repr(float(c.lower_bound)),
        "certificate": [repr(float(v)) for v in (c.gap, c.relative_gap, c.violation, c.radius)],
    }


def quadratic_program(n: int = 10, m: int = 15) -> Any:
    """Return least squares over rows as a problem of CVXPY."""
    import cvxpy

    rng = np.random.default_rng(0)
    x = cvxpy.Variable(n)
    A, b, G = (
        rng.standard_normal((3 * n, n)),
        rng.standard_normal(3 * n),
        rng.standard_normal((m, n)),
    )
    return cvxpy.Problem(cvxpy.Minimize(cvxpy.sum_squares(A @ x - b)), [G @ x <= 0.1])


def _problems(cp: Any) -> Iterator[tuple[str, Callable[[], Any]]]:
    rng = np.random.default_rng(5)
    n, m = 12, 20
    A, b, z = rng.standard_normal((m, n)), rng.standard_normal(m), rng.standard_normal(n)
    M = rng.standard_normal((4, 4))
    M = M + M.T

    def maker(objective: Callable[[Any], Any], rows: Callable[[Any], Any], **kind: Any) -> Any:
        def make() -> Any:
            x = cp.Variable(**({"shape": n} | kind))
            return cp.Problem(cp.Minimize(objective(x)), rows(x))

        return make

    square, box = partial(cp.sum_squares), [lambda x: x >= -1, lambda x: x <= 1]
    yield "quadratic program", quadratic_program
    yield "linear program", maker(lambda x: z @ x, lambda x: [A @ x <= 1, *(k(x) for k in box)])
    yield "equations", maker(lambda x: square(x - z), lambda x: [A[:5] @ x == b[:5]])
    yield "lasso", maker(lambda x: square(A @ x - b) + 0.5 * cp.norm1(x), lambda x: [])
    yield "ball", maker(lambda x: z @ x, lambda x: [cp.norm(A @ x - b) <= 5, x >= -1])
    yield "robust rows", maker(lambda x: z @ x, lambda x: [A @ x + cp.norm(x) <= 1])
    yield "infeasible", maker(lambda x: square(x), lambda x: [x >= 1, cp.sum(x) <= 0])
    yield "unbounded", maker(lambda x: z @ x, lambda x: [A[:3] @ x <= 1])
    yield "bounds", maker(lambda x: square(x - 3.0 * z), lambda x: [cp.sum(x) == 1], bounds=[0, 1])
    psd = {"shape": (4, 4), "PSD": True}
    yield "max-cut", maker(lambda X: cp.trace(M @ X), lambda X: [cp.diag(X) == 1], **psd)
    yield "nearest", maker(lambda X: cp.sum_squares(X - M), lambda X: [cp.trace(X) <= 2], **psd)
