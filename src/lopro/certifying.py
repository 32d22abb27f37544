"""Certificates of given points, whichever solver computed them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import scipy  # parts of it load when first used

from lopro.certificates import Certificate
from lopro.certificates.certificate import Outcome, Status
from lopro.core.arrays import Array
from lopro.core.validation import check_array, check_shape
from lopro.driver.candidate import checked_multipliers
from lopro.driver.run import Run
from lopro.driver.workbench import Options
from lopro.errors import MissingCapabilityError
from lopro.functions.atoms import Interval
from lopro.functions.term import Term
from lopro.maps.host import host_matrix, host_vector
from lopro.methods.answers import evidence_of, member_multipliers, term_multipliers
from lopro.methods.second_order.forms import composite
from lopro.newton.bounds import lower_bound, relative_violation, violation_charge
from lopro.newton.problem import Composite
from lopro.problem import Problem
from lopro.protocol import Candidate, Candidates, Card, Evidence, Workbench

__all__ = ["certify"]

#: Rows within this distance of a side, relative to the terms of the row, may have a multiplier: the
#: accuracy of solvers with a tolerance of 1e-6. Rows included by mistake make the bound weaker, not false.
_ACTIVE = 1e-6


def certify(problem: Problem, x: Array, multipliers: Sequence[Array] | None = None) -> Certificate:
    """Return the certificate of a point that any solver has computed; nothing is solved.

    Parameters
    ----------
    problem : Problem
        The problem for which the point is certified.
    x : array
        Any point.
    multipliers : sequence of arrays, optional
        One for each set of rows, with the signs of `Result.multipliers`: positive at upper sides, negative
        at lower ones. Wrong multipliers make the bound weaker, never false. By default they are computed by
        least squares on the active rows.

    Returns
    -------
    Certificate
        The violation is always computed; the bound if the objective is smooth or a norm and the set is given
        by rows and balls, or if the infimum of the objective is known. Otherwise the gap is infinite.

    Examples
    --------
    >>> import numpy as np, lopro
    >>> f = lopro.objectives.LeastSquares(np.eye(2), np.array([3.0, 1.0]))
    >>> half = lopro.constraints.Polyhedron([[1.0, 1.0]], [2.0])
    >>> problem = lopro.Problem(f, half)
    >>> lopro.certify(problem, np.array([2.0, 0.0])).relative_gap < 1e-9
    True
    >>> lopro.certify(problem, np.array([2.0, 0.0]), [np.array([0.5])]).gap.__round__(9)
    0.5
    >>> lopro.certify(problem, np.array([2.0, 1.0])).violation
    0.2
    """
    point = check_array("x", x)
    if problem.shape is not None:
        check_shape("x", point, problem.shape)
    given = checked_multipliers(problem.constraint, point, multipliers)
    run = Run(problem, _Given(point, given), point, Options(tol=0.0))
    for _ in run:
        pass
    return run.result().certificate


@dataclass(frozen=True, eq=False)
class _Given:
    """A method that yields one given point with the bound that its multipliers prove."""

    x: Array
    multipliers: tuple[Array, ...] | None

    card: ClassVar[Card] = Card("none", "none", "none", "0", "this library")

    def check(self, problem: Problem) -> None:
        """Accept every problem."""

    def run(self, bench: Workbench, x0: Array) -> Candidates:
        with bench.observe():
            evidence = self._evidence(bench)
        yield Candidate(self.x, evidence)

    def _evidence(self, bench: Workbench) -> Evidence:
        try:
            form = composite(bench.problem)
        except MissingCapabilityError:
            return None
        x = host_vector(self.x)
        if self.multipliers is None:
            sets = _from_point(form, x)
        else:
            given = [host_vector(v) for v in self.multipliers]
            sets = term_multipliers(bench.problem.constraint, given)
        v = _with_norms(form, x, sets)
        outcome = Outcome(
            Status.STOPPED,
            x,
            tuple(v),
            form.value(x),
            lower_bound(form, x, v, form.smooth.strong_convexity()),
            violation_charge(form, x, v),
            relative_violation(form, x),
            0,
        )
        return evidence_of(form.terms, outcome, bench, self.x, member_multipliers)


def _sets(form: Composite) -> list[Term]:
    return [term for term in form.terms if term.is_set]


def _from_point(form: Composite, x: Array) -> list[Any]:
    """Return multipliers of the active rows by least squares; zeros for other sets."""
    slope = form.smooth.gradient(x, form.smooth.image(x))
    multipliers, blocks, places = [np.zeros(t.size) for t in _sets(form)], [], []
    for k, term in enumerate(_sets(form)):
        matrix = scipy.sparse.eye_array(len(x), format="csr")
        matrix = matrix if term.is_identity else host_matrix(term.D)
        if not isinstance(term.atom, Interval) or matrix is None:
            continue
        z, interval = term.image(x), term.atom
        distance = _ACTIVE * (np.abs(z) + np.asarray(abs(matrix) @ np.abs(x)))
        active = np.flatnonzero((z >= interval.upper - distance) | (z <= interval.lower + distance))
        blocks.append(scipy.sparse.csr_array(matrix[active]))
        places.append((k, active))
    if not blocks:
        return multipliers
    rows = scipy.sparse.vstack(blocks, format="csr")
    v = scipy.sparse.linalg.lsmr(rows.T, -slope, atol=1e-14, btol=1e-14, maxiter=10 * len(x))[0]
    start = 0
    for k, active in places:
        multipliers[k][active] = v[start : start + len(active)]
        start += len(active)
    return multipliers


def _with_norms(form: Composite, x: Array, sets: Sequence[Array]) -> list[Array]:
    """Return multipliers of all terms; those of norms fit the gradient of the Lagrangian by least squares."""
    residual = form.smooth.gradient(x, form.smooth.image(x))
    multipliers: list[Array] = []
    for term, given in zip(_sets(form), sets, strict=True):
        v = term.into_domain(np.asarray(given, dtype=np.float64))
        multipliers.append(v)
        residual = residual + term.pullback(v)
    for term in form.norms:
        if term.is_identity:
            v = -residual
        else:
            rows, columns = term.D.shape
            adjoint = scipy.sparse.linalg.LinearOperator(
                (columns, rows), matvec=term.D.adjoint, rmatvec=term.D.forward, dtype=np.float64
            )
            v = scipy.sparse.linalg.lsmr(adjoint, -residual, atol=1e-14, btol=1e-14)[0]
        v = term.into_domain(v)
        multipliers.append(v)
        residual = residual + term.pullback(v)
    return multipliers
