"""A solver for CVXPY: ``problem.solve(solver=lopro.cvxpy.Lopro())``.

It solves quadratic objectives over zero, nonnegative, second-order, semidefinite and exponential cones. The
status is ``optimal`` exactly if the gap is proved; the proof is in ``problem.solver_stats.extra_stats``.
CVXPY has to be installed: ``pip install "lopro[cvxpy]"``.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import scipy  # parts of it load when first used

from lopro.certificates import Emptiness, noise_rows
from lopro.certificates.certificate import Outcome, Status
from lopro.constraints import Affine, Box, Constraint, Intersection
from lopro.core.deadline import Deadline
from lopro.core.optional import needing
from lopro.core.validation import check_number
from lopro.driver.result import Result
from lopro.engines.cone_bound import ConicData
from lopro.engines.cones import Cone, Nonnegative, PSDTriangle, SecondOrder, Zero
from lopro.engines.exponentials import Exponentials
from lopro.engines.proved_cones import solve_conic
from lopro.methods import ProgramEngines
from lopro.objectives import Linear, Quadratic
from lopro.problem import Problem
from lopro.protocol import Certificate, Target
from lopro.solving import solve

with needing("lopro.cvxpy", "CVXPY 1.7.1 or newer", "lopro[cvxpy]"):
    from cvxpy import settings
    from cvxpy.reductions.solvers.conic_solvers.clarabel_conif import CLARABEL
    from cvxpy.reductions.solvers.conic_solvers.conic_solver import ConicSolver

__all__ = ["Lopro"]

#: The status strings that CVXPY's interface of Clarabel reads.
_WORDS = {
    Status.CONVERGED: "Solved",
    Status.STALLED: "AlmostSolved",
    Status.INFEASIBLE: "PrimalInfeasible",
    Status.UNBOUNDED: "DualInfeasible",
    Status.STOPPED: "MaxTime",
    Status.TIME_LIMIT: "MaxTime",
    Status.INTERRUPTED: "MaxTime",
}
#: After these a linear or quadratic program is posed as a cone program.
_UNFINISHED = (Status.STALLED, Status.STOPPED)


@dataclass(frozen=True)
class _Answer:
    """The answer in the form that CVXPY's interface reads."""

    status: str
    x: Any
    z: Any
    obj_val: float
    solve_time: float
    iterations: int
    certificate: Certificate


class Lopro(CLARABEL):  # type: ignore[misc]
    """A solver of CVXPY that proves its answers.

    Options of ``problem.solve``: ``tol`` (the relative gap to prove, 1e-6) and ``time_limit`` in seconds.
    After the time limit or Ctrl-C the status is ``user_limit`` with the best point; without a point CVXPY
    raises its ``SolverError``. All instances are equal, so that CVXPY compiles a problem with parameters
    once. Linear and quadratic programs start from the last point and multipliers of the same problem, unless
    ``warm_start=False``.

    Examples
    --------
    >>> import cvxpy, lopro.cvxpy
    >>> x = cvxpy.Variable(2)
    >>> problem = cvxpy.Problem(cvxpy.Minimize(cvxpy.sum_squares(x - 1)), [cvxpy.norm(x) <= 1])
    >>> float(round(problem.solve(solver=lopro.cvxpy.Lopro()), 6)), problem.status
    (0.171573, 'optimal')
    >>> problem.solver_stats.extra_stats.relative_gap <= 1e-6
    True
    """

    # Multipliers of power cones cannot be moved into the dual cone here.
    SUPPORTED_CONSTRAINTS = [  # noqa: RUF012
        cone for cone in CLARABEL.SUPPORTED_CONSTRAINTS if not cone.__name__.startswith("Pow")
    ]

    #: Bounds of variables (``cvxpy.Variable(bounds=...)``) are passed apart from the other rows.
    BOUNDED_VARIABLES = True

    def name(self) -> str:
        """Return the name of the solver."""
        return "LOPRO"

    def __eq__(self, other: object) -> bool:
        return type(self) is type(other)

    def __hash__(self) -> int:
        return hash(type(self))

    def import_solver(self) -> None:
        """Do nothing: lopro is imported."""

    def solve_via_data(
        self,
        data: dict[str, Any],
        warm_start: bool,
        verbose: bool,
        solver_opts: dict[str, Any],
        solver_cache: Any = None,
    ) -> _Answer:
        """Solve the conic form that CVXPY has made."""
        options = dict(solver_opts)
        options.pop("use_quad_obj", None)
        tol = check_number("tol", options.pop("tol", 1e-6), minimum=0.0, exclusive=True)
        limit = options.pop("time_limit", None)
        if options:
            raise TypeError(
                f"lopro: unknown options {sorted(options)}; there are tol and time_limit"
            )
        if limit is not None:
            check_number("time_limit", limit, minimum=0.0, exclusive=True)
        with Deadline(limit).active() as deadline:
            problem = _problem(data)
            if problem is not None:
                last = _last_result(solver_cache, self.name(), problem) if warm_start else None
                result = solve(
                    problem, method=ProgramEngines(), tol=tol, time_limit=limit, warm_start=last
                )
                if solver_cache is not None and result.multipliers is not None:
                    solver_cache[self.name()] = result
                if result.status in _WORDS and result.status not in _UNFINISHED:
                    return _of_result(result, len(data[settings.B]), deadline.elapsed)
            program = _program(data)
            outcome = solve_conic(program, tol)
            # CVXPY uses the multipliers of its own rows, not those of bounds.
            z = outcome.multipliers[: len(data[settings.B])]
            return _answer(program, replace(outcome, multipliers=z), tol, deadline.elapsed)

    def invert(self, solution: _Answer, inverse_data: Any) -> Any:
        """Return the solution as CVXPY expects it, with the certificate."""
        found = super().invert(solution, inverse_data)
        found.attr[settings.EXTRA_STATS] = solution.certificate
        return found

    def cite(self, data: Any) -> str:
        """Return the citation."""
        return (
            "@inproceedings{yang2017richer, title={A Richer Theory of Convex Constrained Optimization "
            "with Reduced Projections and Improved Rates}, author={Yang, Tianbao and Lin, Qihang and "
            "Zhang, Lijun}, booktitle={ICML}, year={2017}}"
        )


def _last_result(cache: dict[str, Any] | None, name: str, problem: Problem) -> Result | None:
    """Return the last result of a problem with the same numbers of variables and rows, if there is one."""
    last = None if cache is None else cache.get(name)
    if not isinstance(last, Result) or last.multipliers is None or last.x.shape != problem.shape:
        return None
    images = problem.constraint.image(last.x)
    shapes = [v.shape for v in last.multipliers]
    return last if shapes == [z.shape for z in images] else None


def _problem(data: dict[str, Any]) -> Problem | None:
    """Return a linear or quadratic program as `lopro.solve` takes it; None for others."""
    dims, q = data[ConicSolver.DIMS], np.asarray(data[settings.C], dtype=np.float64)
    least, most = _sides(data, len(q))
    if dims.soc or dims.psd or dims.exp or (least > most).any():
        return None
    P, b = data.get(settings.P), np.asarray(data[settings.B], dtype=np.float64)
    try:
        f = Linear(q) if P is None or P.nnz == 0 else Quadratic(scipy.sparse.csr_array(P), q)
    except ValueError:
        return None  # not convex beyond rounding
    sets: list[Constraint] = []
    if len(b):
        lower = np.where(np.arange(len(b)) < dims.zero, b, -np.inf)
        sets.append(Affine(scipy.sparse.csr_array(data[settings.A]), lower, b))
    if np.isfinite(least).any() or np.isfinite(most).any():
        sets.append(Box(least, most))
    if not sets:
        return Problem(f)
    return Problem(f, sets[0] if len(sets) == 1 else Intersection(*sets))


def _sides(data: dict[str, Any], size: int) -> tuple[Any, Any]:
    """Return the bounds of the variables, infinite if there are none."""
    least, most = (data.get(key) for key in (settings.LOWER_BOUNDS, settings.UPPER_BOUNDS))
    return (
        np.full(size, -np.inf) if least is None else np.asarray(least, np.float64),
        np.full(size, np.inf) if most is None else np.asarray(most, np.float64),
    )


def _of_result(result: Result, rows: int, seconds: float) -> _Answer:
    """Return a result as CVXPY's interface reads it."""
    found = result.multipliers
    z = np.zeros(rows) if found is None or rows == 0 else np.asarray(found[0])
    word = _WORDS[result.status]
    if word == "MaxTime" and not math.isfinite(result.fun):
        word = "Unsolved"
    iterations = result.counts.factorizations
    return _Answer(word, result.x, z, result.fun, seconds, iterations, result.certificate)


def _program(data: dict[str, Any]) -> ConicData:
    dims = data[ConicSolver.DIMS]
    cones: list[tuple[Cone, int]] = []
    if dims.zero:
        cones.append((Zero(dims.zero), dims.zero))
    if dims.nonneg:
        cones.append((Nonnegative(dims.nonneg), dims.nonneg))
    cones.extend((SecondOrder(size), size) for size in dims.soc)
    cones.extend((PSDTriangle(order), order * (order + 1) // 2) for order in dims.psd)
    if dims.exp:
        cones.append((Exponentials(dims.exp), 3 * dims.exp))
    q = np.asarray(data[settings.C], dtype=np.float64)
    P = data.get(settings.P)
    P = scipy.sparse.csr_array((len(q), len(q))) if P is None else scipy.sparse.csr_array(P)
    A = scipy.sparse.csr_array(data[settings.A])
    b = _without_noise(A, np.asarray(data[settings.B], dtype=np.float64), dims)
    for cone, rows, sides in _bounds(*_sides(data, len(q))):
        A, b = scipy.sparse.vstack([A, rows], format="csr"), np.concatenate([b, sides])
        cones.append((cone, len(sides)))
    return ConicData(P, q, A, b, cones)


def _without_noise(A: Any, b: Any, dims: Any) -> Any:
    """Return the sides with 0 in place of rounding errors in rows without a coefficient."""
    linear = dims.zero + dims.nonneg
    missed = np.concatenate([np.abs(b[: dims.zero]), -b[dims.zero : linear]])
    rows = noise_rows(lambda i: abs(A[i]).sum(axis=1) == 0.0, missed, b[:linear])
    return np.where(np.isin(np.arange(len(b)), rows), 0.0, b) if len(rows) else b


def _bounds(least: Any, most: Any) -> Iterator[tuple[Cone, Any, Any]]:
    """Yield bounds of variables as further rows, ``b - A x`` in a cone: fixed ones, then the two sides."""
    eye = scipy.sparse.eye_array(len(least), format="csr")
    fixed = np.flatnonzero(least == most)
    below = np.flatnonzero(np.isfinite(least) & (least != most))
    above = np.flatnonzero(np.isfinite(most) & (least != most))
    if len(fixed):
        yield Zero(len(fixed)), eye[fixed], least[fixed]
    if len(below) + len(above):
        rows = scipy.sparse.vstack([-eye[below], eye[above]], format="csr")
        yield Nonnegative(rows.shape[0]), rows, np.concatenate([-least[below], most[above]])


def _answer(program: ConicData, outcome: Outcome, tol: float, seconds: float) -> _Answer:
    x = outcome.x
    target = Target(tol, max(outcome.unit, np.finfo(np.float64).tiny))
    source = "multipliers of the conic form, rounding included"
    excluded = outcome.certificate
    within = excluded.radius if isinstance(excluded, Emptiness) else 0.0
    certificate = Certificate.of(
        outcome.fun, outcome.lower_bound, outcome.violation, source, target, outcome.charge,
        outcome.radius, absolute=outcome.absolute_violation, empty_within=within,
    )  # fmt: skip
    # Without a point CVXPY raises its SolverError.
    nothing = outcome.status is Status.STOPPED and not math.isfinite(outcome.fun)
    word = "NumericalError" if nothing else _WORDS[outcome.status]
    return _Answer(word, x, outcome.multipliers, outcome.fun, seconds, outcome.steps, certificate)
