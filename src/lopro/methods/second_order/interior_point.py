"""Interior point as referee: the problem in conic form, handed to Clarabel."""

from __future__ import annotations

import functools
import operator
from contextlib import suppress
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from lopro.certificates import FARTHER
from lopro.cones.bound import conic_bound, repaired
from lopro.conic_forms import ConeRows, ConicAnswer, ConicProgram, add_objective, set_rows
from lopro.constraints.base import ValidInequality
from lopro.core.arrays import Array, eps, is_complex
from lopro.core.counting import count
from lopro.core.deadline import current_deadline
from lopro.core.real_vectors import Vector, from_real_vector, to_real_vector
from lopro.core.validation import check_number
from lopro.errors import InfeasibleError, StalledError
from lopro.problem import Problem
from lopro.projections.emptiness import cones_exclude
from lopro.protocol import Candidate, Candidates, Card, Multiplier, ProvedBound, Workbench

__all__ = ["InteriorPoint"]


@dataclass(frozen=True)
class InteriorPoint:
    """A second opinion on small problems of known structure, by Clarabel.

    Problem: min f(x) s.t. c(x) <= 0, where f is a sum of `L1Norm`, `Linear`, `LeastSquares`, `Quadratic`,
    `SquaredDistance`, `Logistic` and `PairLoss` with nonnegative factors, and the set is a `Polyhedron`,
    a `Simplex`, a `ResidualBall`, a `PSDCone`, a `Spectrahedron` or an `Intersection` of those. Oracles:
    none, it reads the data. Theorem (path-following for self-concordant barriers):
    ``O(sqrt(nu) log 1/eps)`` iterations with a barrier of parameter ``nu``; each factors a matrix with as
    many rows as there are data.

    The point is made exactly feasible by one projection, and certified by lopro with the multiplier of
    the solver, which is moved into the dual cone first: what is certified does not rest on the solver.

    Parameters
    ----------
    accuracy : float
        The solver's own tolerance for gap and residuals.

    References
    ----------
    P. J. Goulart, Y. Chen, "Clarabel: an interior-point solver for conic programs with quadratic
    objectives" (2024).

    Departures
    ----------
    Clarabel is a primal-dual predictor-corrector method, for which the bound above is not proved; it is
    what the theory offers for its simpler relatives. An iteration of the run is one of Clarabel's.

    Examples
    --------
    >>> import numpy as np, lopro
    >>> from lopro.methods.baselines import InteriorPoint
    >>> f = lopro.objectives.L1Norm()
    >>> ball = lopro.constraints.ResidualBall(np.array([[2.0, 1.0]]), np.array([2.0]), sigma=1.0)
    >>> result = lopro.solve(lopro.Problem(f, ball), method=InteriorPoint())
    >>> result.success, result.x.round(6) + 0.0, result.counts.projections
    (True, array([0.5, 0. ]), 1)
    """

    card: ClassVar[Card] = Card(
        assumptions="f and the set have a conic form (see lopro.conic)",
        oracles="none: it reads the data",
        rate="O(sqrt(nu) log 1/eps) factorisations",
        projections="1",
        reference="Goulart, Chen (Clarabel, 2024)",
    )

    accuracy: float = 1e-11

    def __post_init__(self) -> None:
        check_number("accuracy", self.accuracy, minimum=0.0, exclusive=True)

    def check(self, problem: Problem) -> None:
        # That the set is empty is for the run to tell, not for a check of what the parts can do.
        with suppress(InfeasibleError):
            _translated(problem, problem.start(None) if problem.shape is not None else np.zeros(1))

    def run(self, bench: Workbench, x0: Array) -> Candidates:
        with bench.observe():
            program, sets = _translated(bench.problem, x0)
        answer = program.solve(self.accuracy)
        count("factorizations", answer.iterations)
        for _ in range(answer.iterations):
            if not bench.tick():
                break
        _raise_if_unsolvable(answer, sets, eps(x0))
        x_hat = from_real_vector(answer.point, x0)
        inequality = _valid_inequality(sets, answer, x0)
        x = bench.project(x_hat)
        verdict = yield Candidate(x, Multiplier(inequality), before=x_hat)
        if verdict.certificate().relative_gap <= bench.target.tol:
            return
        # The rows of the objective have multipliers, too: with all of them no radius is needed.
        proved = _proved_bound(program, answer, bench, inequality)
        if proved is not None:
            yield Candidate(x, proved, before=x_hat)


def _translated(problem: Problem, x: Array) -> tuple[ConicProgram, list[ConeRows]]:
    """Return the problem as a conic program, and the rows that describe the set."""
    program = ConicProgram(to_real_vector(x).size)
    sets = [rows for m in problem.constraint.members() for rows in set_rows(m, is_complex(x))]
    for rows in sets:
        program.add_set(rows)
    add_objective(problem.objective, program, 1.0, 0.0 * x)
    return program, sets


def _proved_bound(
    program: ConicProgram, answer: ConicAnswer, bench: Workbench, inequality: ValidInequality
) -> ProvedBound | None:
    """Return the bound of the whole program's multipliers, as far out as solutions are looked for."""
    data = program.data()
    if data is None:
        return None
    current_deadline().check()
    v, z = repaired(data, answer.variables, answer.all_multipliers, answer.all_slacks)
    bound = conic_bound(data, v, z)
    radius = FARTHER * max(float(np.linalg.norm(v)), bench.unit)
    source = f"conic multipliers, within a distance of {radius:.3g}, auxiliary variables included"
    value, centre = bound.within(radius) + program.constant, v[: program.size]
    return ProvedBound(value, source, radius, inequality, centre=centre)


def _valid_inequality(sets: list[ConeRows], answer: ConicAnswer, like: Array) -> ValidInequality:
    """Return the multiplier: ``<rows'z, x> <= <bounds, z>`` on the set for ``z`` in the dual cone."""
    pairs = zip(sets, answer.multipliers, strict=True)
    return functools.reduce(operator.add, (_inequality_of(rows, z, like) for rows, z in pairs))


def _inequality_of(rows: ConeRows, z: Vector, like: Array) -> ValidInequality:
    z = rows.cone.into_dual(z)
    return ValidInequality(from_real_vector(rows.rows.T @ z, like), float(rows.bounds @ z))


def _raise_if_unsolvable(answer: ConicAnswer, sets: list[ConeRows], unit: float) -> None:
    from clarabel import SolverStatus

    if answer.status == SolverStatus.PrimalInfeasible:
        if cones_exclude(sets, answer.multipliers, unit):
            raise InfeasibleError("the set is empty: multipliers of the conic solver prove it")
        raise StalledError(
            "the conic solver takes the set for empty, but its multipliers do not prove it"
        )
    if answer.status == SolverStatus.DualInfeasible:
        raise OverflowError(
            "the objective has no lower bound on the set (a ray of the conic solver)"
        )
    finite = all(np.isfinite(v).all() for v in (answer.point, *answer.multipliers))
    if not finite:
        raise StalledError(f"the conic solver has no answer: {answer.status}")
