"""Problems in conic form, solved by the interior point method of Clarabel: an independent reference."""

from __future__ import annotations

import functools
import math
import operator
from contextlib import suppress
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import scipy  # parts of it load when first used

from lopro.certificates import Bound, Units
from lopro.constraints.base import ValidInequality
from lopro.core.arrays import Array, eps, is_complex
from lopro.core.counting import count
from lopro.core.deadline import current_deadline
from lopro.core.real_vectors import Vector, from_real_vector, to_real_vector
from lopro.core.validation import check_number
from lopro.engines import Answer, AnswerStatus, ConeProgram, ConicProgram, solve_cones
from lopro.engines.cone_bound import ConicData, conic_bound, repaired
from lopro.engines.cones import ConeRows
from lopro.engines.far_points import solve_far_out
from lopro.errors import InfeasibleError, MissingCapabilityError, StalledError
from lopro.linalg.rounding import EPS, Estimate
from lopro.methods.costs import conic_cost
from lopro.problem import Problem
from lopro.projections.emptiness import cones_exclude
from lopro.projections.psd import symmetric_part
from lopro.protocol import (
    Candidate,
    Candidates,
    Card,
    Fit,
    Multiplier,
    ProvedBound,
    Workbench,
)

__all__ = ["InteriorPoint", "UnprovedRay"]


class UnprovedRay(OverflowError):
    """The conic solver reports an unbounded objective, with a ray that proves nothing."""


@dataclass(frozen=True)
class InteriorPoint:
    """An interior point method (Clarabel) for small problems with conic forms, to check other methods.

    Problem: min f(x) s.t. c(x) <= 0, where f is a sum of `L1Norm`, `Linear`, `LeastSquares`, `Quadratic`,
    `SquaredDistance`, `Logistic` and `PairLoss` with nonnegative factors, and the set is a `Polyhedron`,
    a `Simplex`, a `ResidualBall`, a `SecondOrderCone`, a `PSDCone`, a `Spectrahedron` or an
    `Intersection` of those. Oracles: none; it reads the data. Theorem (path-following for self-concordant
    barriers): ``O(sqrt(nu) log 1/eps)`` iterations with a barrier of parameter ``nu``; each factors a matrix
    with as many rows as there are data.

    The point is made feasible by one projection, and certified with the multiplier of the solver, which is
    moved into the dual cone first: the certificate does not depend on the solver.

    Parameters
    ----------
    accuracy : float
        Tolerance of the solver for gap and residuals. With 1e-9, 1e-11 and 1e-13 the 15 problems of
        `benchmarks.constants_first_order` take 151, 185 and 211 iterations; the largest proved gaps are 3e-8,
        4e-10 and 2e-11.

    References
    ----------
    P. J. Goulart, Y. Chen, "Clarabel: an interior-point solver for conic programs with quadratic
    objectives" (2024).

    Departures
    ----------
    Clarabel is a primal-dual predictor-corrector method, for which the bound above is not proved; the bound
    holds for simpler path-following methods. An iteration of the run is an iteration of Clarabel.

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
        assumptions="f and the set have a conic form",
        oracles="none: it reads the data",
        rate="O(sqrt(nu) log 1/eps) factorisations",
        projections="1",
        reference="Goulart, Chen (Clarabel, 2024)",
    )

    accuracy: float = 1e-11

    def __post_init__(self) -> None:
        check_number("accuracy", self.accuracy, minimum=0.0, exclusive=True)

    def check(self, problem: Problem) -> None:
        # The run, not this check of capabilities, reports an empty set.
        with suppress(InfeasibleError):
            _translated(problem, _point_of(problem))

    def fit(self, problem: Problem) -> Fit | None:
        """Return the fit to a problem with its conic form; None if it has none."""
        try:
            program, sets = _translated(problem, _point_of(problem))
        except InfeasibleError:  # the run reports it
            return Fit(self, "it has a conic form")
        except MissingCapabilityError:
            return None
        form = program.form()
        cost = conic_cost(form)

        def start(bench: Workbench, x0: Array) -> Candidates:
            if problem.shape is None or is_complex(x0) != is_complex(_point_of(problem)):
                return self.run(bench, x0)  # shape and type of the points are those of the start
            return self._run(program, sets, form, bench, x0)

        return Fit(self, "it has a conic form", cost, start)

    def run(self, bench: Workbench, x0: Array) -> Candidates:
        with bench.observe():
            program, sets = _translated(bench.problem, x0)
        yield from self._run(program, sets, program.form(), bench, x0)

    def _run(
        self,
        program: ConicProgram,
        sets: list[ConeRows],
        form: ConeProgram,
        bench: Workbench,
        x0: Array,
    ) -> Candidates:
        answer = solve_cones(form, self.accuracy)
        if answer.status.empty and not cones_exclude(sets, program.of_sets(answer.rows), eps(x0)):
            answer = solve_far_out(form, self.accuracy, answer)
        count("factorizations", answer.iterations)
        for _ in range(answer.iterations):
            if not bench.tick():
                break
        multipliers = program.of_sets(answer.rows)
        _raise_if_unsolvable(answer, sets, multipliers, eps(x0))
        x_hat = from_real_vector(answer.x[: program.size], x0)
        if any(m.is_semidefinite for m in bench.problem.constraint.members()):
            x_hat = symmetric_part(x_hat)  # Clarabel's point is symmetric up to its accuracy only
        inequality = _valid_inequality(sets, multipliers, x0)
        x = bench.project(x_hat)
        verdict = yield Candidate(x, Multiplier(inequality), before=x_hat)
        if verdict.certificate().relative_gap <= bench.target.tol:
            return
        # With the multipliers of the rows of the objective as well, no radius is needed.
        bound = _proved_bound(form, program, answer, bench, inequality)
        yield Candidate(x, bound, before=x_hat)


def _point_of(problem: Problem) -> Array:
    """Return a point of the shape of the problem, real where the shape is not known."""
    return problem.start(None) if problem.shape is not None else np.zeros(1)


def _translated(problem: Problem, x: Array) -> tuple[ConicProgram, list[ConeRows]]:
    """Return the problem as a conic program, and the rows that describe the set."""
    program = ConicProgram(to_real_vector(x).size)
    sets = [rows for m in problem.constraint.members() for rows in m.conic_form(is_complex(x))]
    for rows in sets:
        program.add_set(rows)
    for term in problem.objective.terms:
        term.add_to_cone_program(program, 0.0 * x)
    return program, sets


def _proved_bound(
    form: ConeProgram,
    program: ConicProgram,
    answer: Answer,
    bench: Workbench,
    inequality: ValidInequality,
) -> ProvedBound:
    """Return the bound from the multipliers of all rows, with the distance within which it holds."""
    current_deadline().check()
    cones = [(cone, cone.rows) for cone in form.cones]
    P, A = scipy.sparse.csr_array(form.P), scipy.sparse.csr_array(form.A)
    data = ConicData(P, form.q, A, form.b, cones)
    v, z = repaired(data, answer.x, answer.rows, answer.slacks)
    bound = conic_bound(data, v, z)
    # Auxiliary variables are functions of the others: the cost of their slopes is subtracted here.
    own, others = slice(program.size), slice(program.size, None)
    far = bound.reach(v, bench.unit)[others]
    value = bound.value - float(bound.slopes[others] @ far) * (1.0 + (len(v) + 8) * EPS)
    value = (Estimate(value) + Estimate(program.constant)).lower()
    local = Bound(value, bound.slopes[own], v[own], Units.given(data.reach_units.sizes(v)[own]))
    source = "conic multipliers, with those of auxiliary variables"
    return ProvedBound(value, source, math.inf, inequality, local=local)


def _valid_inequality(
    sets: list[ConeRows], multipliers: list[Vector], like: Array
) -> ValidInequality:
    """Return the multiplier: ``<rows'z, x> <= <bounds, z>`` on the set for ``z`` in the dual cone."""
    pairs = zip(sets, multipliers, strict=True)
    found = (_inequality_of(rows, z, like) for rows, z in pairs)
    return functools.reduce(operator.add, found, ValidInequality.trivial(like))


def _inequality_of(rows: ConeRows, z: Vector, like: Array) -> ValidInequality:
    z = rows.cone.into_dual(z)
    return ValidInequality(from_real_vector(rows.rows.T @ z, like), float(rows.bounds @ z))


def _raise_if_unsolvable(
    answer: Answer, sets: list[ConeRows], multipliers: list[Vector], unit: float
) -> None:
    if answer.status is AnswerStatus.EMPTY:
        if cones_exclude(sets, multipliers, unit):
            raise InfeasibleError("the set is empty: multipliers of the conic solver prove it")
        raise StalledError(
            "the conic solver reports an empty set, but its multipliers do not prove it"
        )
    if answer.status is AnswerStatus.UNBOUNDED:
        raise UnprovedRay("the objective has no lower bound on the set (a ray of the conic solver)")
    point = answer.x[: sets[0].rows.shape[1]] if sets else answer.x
    if not all(np.isfinite(v).all() for v in (point, *multipliers)):
        raise StalledError(f"the conic solver has no answer: {answer.message}")
