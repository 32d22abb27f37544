"""A program of a user: type checkers read it in `test_types.py`, and it runs."""

from __future__ import annotations

import numpy as np

import lopro


def solved(A: np.ndarray, b: np.ndarray) -> tuple[float, bool]:
    """Return the value and whether it is proved."""
    f = lopro.objectives.LeastSquares(A, b) + 0.5 * lopro.objectives.L1Norm()
    box = lopro.constraints.Polyhedron.box(-np.ones(A.shape[1]), np.ones(A.shape[1]))
    result: lopro.Result = lopro.solve(lopro.Problem(f, box), tol=1e-6, time_limit=10.0)
    gap: float = result.certificate.relative_gap
    return result.fun, result.success and gap <= 1e-6


def recovered(A: np.ndarray, y: np.ndarray) -> list[str]:
    """Return the statuses of basis pursuit along a list of radii."""
    curve = lopro.bpdn_path(A, y, [1.0, 0.5])
    return [point.status.name for point in curve]


def watched(A: np.ndarray, b: np.ndarray) -> int:
    """Return how many iterates a callback has seen."""
    seen: list[float] = []

    def callback(iterate: lopro.Iterate) -> None:
        seen.append(iterate.fun)

    problem = lopro.Problem(lopro.objectives.LeastSquares(A, b))
    lopro.solve(problem, callback=callback)
    return len(seen)


if __name__ == "__main__":
    rng = np.random.default_rng(0)
    A, b = rng.standard_normal((20, 5)), rng.standard_normal(20)
    value, proved = solved(A, b)
    print(proved, recovered(A.T, A.T @ np.eye(20)[0]), watched(A, b) > 0)
