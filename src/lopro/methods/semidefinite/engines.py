"""Semidefinite programs, by Newton's method of multipliers or by Clarabel."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from lopro.constraints.base import ValidInequality
from lopro.core.arrays import Array, asarray_like
from lopro.core.counting import count
from lopro.core.deadline import current_deadline
from lopro.errors import InfeasibleError, StalledError, UnboundedError
from lopro.methods.answers import candidate_in_set
from lopro.methods.semidefinite.form import (
    SemidefiniteForm,
    check_form,
    member_duals,
    semidefinite_form,
)
from lopro.newton.sdp import Judge, Outcome, Status, solve
from lopro.newton.sdp.faces import reduced
from lopro.newton.sdp.solve import order_of_engines
from lopro.problem import Problem
from lopro.protocol import Candidate, Candidates, Card, ProvedBound, Workbench

__all__ = ["SemidefiniteEngines"]

#: Share of the remaining time for the engines: projecting the last point takes a part of the rest. A tenth
#: and ten times as much change nothing in ``python -m benchmarks.constants methods.semidefinite``.
_SHARE = 0.8
_NAMES = {"newton": "Newton's method of multipliers", "clarabel": "Clarabel on the dual form"}


@dataclass(frozen=True)
class SemidefiniteEngines:
    """Semidefinite programs by Newton's method of multipliers, or by Clarabel on the dual form.

    Problem: min <C, X> s.t. l <= <A_k, X> <= u, X positive semidefinite, given as `Linear` over an
    `Intersection` of a `PSDCone` (or a `Spectrahedron`) with `Affine` sets, polyhedra and boxes of matrices.
    Oracles: none; it reads the data. Indices that neither C nor a row connects form separate blocks.

    The cheaper of the two runs first: a step of the interior point method costs the cube of the number of
    entries of a block, or of the cliques of a sparse one, and about fifteen steps suffice; Newton's method
    takes about sixty eigendecompositions. If the first does not prove the gap, the other runs.

    The proof does not depend on the engine: ``C - A*y`` is proved to be positive semidefinite by a
    Cholesky factorisation with bounds of its rounding error. If no row bounds the trace of feasible matrices,
    the certificate states the radius within which it holds. INFEASIBLE and UNBOUNDED are reported only with
    multipliers, or a ray, that have been checked.

    Parameters
    ----------
    engines : tuple of "newton" and "clarabel", optional
        The engines to run, in this order; by default the cheaper one first.

    References
    ----------
    X. Zhao, D. Sun, K.-C. Toh, "A Newton-CG augmented Lagrangian method for semidefinite programming", SIAM
    J. Optim. 20 (2010); P. J. Goulart, Y. Chen, "Clarabel: an interior-point solver for conic programs with
    quadratic objectives" (2024).

    Examples
    --------
    The smallest eigenvalue of a matrix:

    >>> import numpy as np, lopro
    >>> f = lopro.objectives.Linear(np.array([[2.0, 1.0], [1.0, 2.0]]))
    >>> trace = lopro.constraints.Affine(np.eye(2).reshape(1, 4), 1.0, 1.0, shape=(2, 2))
    >>> set_ = lopro.constraints.Intersection(lopro.constraints.PSDCone(2), trace)
    >>> result = lopro.solve(lopro.Problem(f, set_), method=lopro.SemidefiniteEngines())
    >>> result.success, round(result.fun, 5), result.x.round(4)
    (True, 1.0, array([[ 0.5, -0.5],
           [-0.5,  0.5]]))
    """

    card: ClassVar[Card] = Card(
        assumptions="f linear, the set one cone of positive semidefinite matrices with rows",
        oracles="none: it reads the data",
        rate="some tens of eigendecompositions, or factorisations",
        projections="0 or 1",
        reference="Zhao, Sun, Toh (2010); Goulart, Chen (Clarabel, 2024)",
    )

    engines: tuple[str, ...] | None = None

    def __post_init__(self) -> None:
        for name in self.engines or ():
            if name not in _NAMES:
                raise ValueError(f"engines must be of 'newton' and 'clarabel', got {name!r}")

    def check(self, problem: Problem) -> None:
        check_form(problem, distance=False)

    def plan(self, problem: Problem) -> str:
        """Return a description of the engine that runs first on a problem, and why; nothing is solved."""
        program = semidefinite_form(problem).program
        sizes = sorted((b.size for b in program.blocks if not b.diagonal), reverse=True)
        blocks = (
            f"{len(sizes)} blocks of up to {sizes[0]}" if sizes[1:] else f"a block of {sizes[0]}"
        )
        shown = f"{blocks if sizes else 'numbers only'}, {len(program.b)} rows"
        if self.engines is not None:
            return f"{shown}: {_NAMES[self.engines[0]]}, as given by engines="
        first = order_of_engines(reduced(program).program)[0][0]
        why = (
            "the cliques of the slack are small"
            if first == "clarabel"
            else "its steps are cheaper than factorisations of that size"
        )
        return f"{shown}: {_NAMES[first]}, {why}"

    def run(self, bench: Workbench, x0: Array) -> Candidates:
        form = semidefinite_form(bench.problem)
        if not bench.tick():
            raise StalledError
        left = current_deadline().left
        outcome = solve(
            form.program,
            bench.target.tol,
            None if math.isinf(left) else _SHARE * left,
            bench.target.scale,
            self.engines,
            terms=bench.problem.gap_scale is None,
        )
        count("eigendecompositions", outcome.steps)
        count("factorizations", int(outcome.engine == "clarabel"))
        _raise_if_unsolvable(form, outcome, bench)
        if math.isfinite(outcome.fun):
            yield _candidate(form, outcome, bench, x0)
        raise StalledError


def _candidate(
    form: SemidefiniteForm, outcome: Outcome, bench: Workbench, like: Array
) -> Candidate:
    """Return the point with its bound."""
    x = asarray_like(form.matrix(outcome.x), like)
    evidence = _bound(form, outcome, bench)
    return candidate_in_set(bench, x, evidence)


def _bound(form: SemidefiniteForm, outcome: Outcome, bench: Workbench) -> ProvedBound:
    value, radius, given = outcome.lower_bound, math.inf, bench.problem.radius
    judge = Judge(form.program)
    source = "multipliers with a positive semidefinite slack, rounding included"
    if math.isfinite(outcome.radius):
        if given is not None:
            value = judge.dual(outcome.multipliers).at(form.traces(given.value))
            source = f"{source}, |x*| <= {given.value:.4g} ({given.source.value})"
        else:
            radius = form.length(outcome.radius)  # from zero
            source = f"{source}, for traces up to {outcome.radius:.3g}"
    # Multipliers of inequalities must have the valid sign; a shift makes the slack semidefinite again.
    y = form.rows.signed(outcome.multipliers)
    shift = judge.dual(y).slope
    dual = form.duals(bench.problem.constraint.members(), y, True, shift)
    direction = -form.cost - shift * np.eye(form.set_.size)
    inequality = ValidInequality(direction, -float(form.rows.b @ y), dual)
    centre = np.zeros((form.set_.size, form.set_.size))
    return ProvedBound(value, source, radius, inequality, outcome.charge, centre=centre)


def _raise_if_unsolvable(form: SemidefiniteForm, outcome: Outcome, bench: Workbench) -> None:
    members = bench.problem.constraint.members()
    if outcome.status is Status.INFEASIBLE:
        where = "" if math.isinf(outcome.radius) else f" for traces up to {outcome.radius:.3g}"
        raise InfeasibleError(
            f"the constraint set is empty{where}: result.ray holds the multipliers that prove it",
            form.duals(members, outcome.multipliers, False, 0.0),
        )
    if outcome.status is not Status.UNBOUNDED:
        return
    # A ray along which the objective decreases proves unboundedness only together with a feasible point.
    set_ = form.set_
    deadline = current_deadline()
    point = set_.nearest().solve(np.zeros((set_.size,) * 2), stopped=lambda: deadline.passed)
    if point.emptiness is not None:
        raise InfeasibleError(point.emptiness, member_duals(members, set_, -point.y))
    if not point.solved:
        raise StalledError
    raise UnboundedError(
        "the objective decreases without bound along the ray", form.matrix(outcome.x)
    )
