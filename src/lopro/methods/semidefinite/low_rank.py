"""Costs over positive semidefinite matrices with a given diagonal, minimised over a factor of low rank."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import scipy  # parts of it load when first used

from lopro.core.arrays import Array
from lopro.core.counting import count
from lopro.core.deadline import Deadline, current_deadline
from lopro.errors import StalledError
from lopro.linalg.dense import EPS, norm
from lopro.linalg.rounding import total
from lopro.linalg.sparse_definite import SparseCholesky, row_sum_norm
from lopro.methods.semidefinite.diagonal_form import (
    DiagonalForm,
    check_diagonal_form,
    diagonal_form,
)
from lopro.methods.semidefinite.factor_problem import FactorCost
from lopro.newton.sdp.factors import FactorPoint, UnitRowsProblem, WeightedDistance
from lopro.problem import Problem
from lopro.protocol import Candidate, Candidates, Card, ProvedBound, Workbench

__all__ = ["LowRankFactors"]

#: A proof is attempted when a step decreases the value by less than this share of the allowed gap, and after
#: a failed proof when a step decreases it by less than this share of that decrease. The proved gap is some
#: tens of the decrease: on G1, G14, G32 and tori of 10,000 nodes 1/4 takes 1 to 5 factorisations, 1/2 up to
#: 12.
_READY = 0.25
#: Limit of the stationary points that are left along an eigenvector of the slack; 2 and 200 change nothing in
#: ``python -m benchmarks.constants methods.semidefinite``.
_ESCAPES = 20
#: Limit of the updates of the multipliers of fixed entries: 6 are too few for two problems there, 600 change
#: nothing.
_UPDATES = 60
#: First share of the identity that makes up for the error of fixed entries, relative to the tolerance; it is
#: divided by ten when the gap stays too large. Steps there are 1.02 and 1.01 times as many with 1e-3 and 0.1.
_MARGIN = 1e-2
#: Multipliers are updated when the norm of the gradient is this share of their change. Products of 16 runs
#: with 60 variables: 12,000 with 0.01 and 10,100 with 0.1; with 1 half of the runs stall.
_INNER = 0.1
#: Limit of the restarts of Lanczos, of 20 vectors each, for an eigenvalue of the slack; 30 and 3000 change
#: nothing there.
_RESTARTS = 300
_SOURCE = "multipliers of the diagonal, their slack proved by a Cholesky factorisation"
_DOMINANT = "multipliers of the diagonal with a diagonally dominant slack"


@dataclass(frozen=True)
class LowRankFactors:
    """Costs over positive semidefinite matrices with a given diagonal, by a factor of low rank.

    Problem: min <C, X>, or 1/2 sum W_ij (X_ij - G_ij)^2, s.t. X_ii = d_i for all i, X positive semidefinite
    (the relaxation of max-cut), given as `Linear` over an `Intersection` of a `PSDCone` with `Affine.entries`
    of the diagonal; with a weighted distance other entries may be fixed as well. For sparse C of any size,
    `lopro.fixed_diagonal` returns the factor instead of X.

    The steps are those of a trust-region method for ``X = V V'`` (Burer and Monteiro), which is not convex in
    V; the proof is convex. Multipliers y of the diagonal with ``C - Diag(y) + s I`` positive semidefinite
    give the bound ``d'y - s sum(d)``, and a Cholesky factorisation, banded if the pattern allows it, proves
    the shift s.

    Parameters
    ----------
    rank : int, optional
        Number of columns of the first factor; half of ``sqrt(2 n)`` by default.

    References
    ----------
    S. Burer, R. Monteiro, "A nonlinear programming algorithm for solving semidefinite programs via low-rank
    factorization", Math. Program. 95 (2003); N. Boumal, V. Voroninski, A. Bandeira, "The non-convex
    Burer-Monteiro approach works on smooth semidefinite programs", NIPS (2016).

    Examples
    --------
    The relaxation of max-cut for a triangle has three vectors at 120 degrees:

    >>> import numpy as np, lopro
    >>> f = lopro.objectives.Linear(np.ones((3, 3)) - np.eye(3))
    >>> ones = lopro.constraints.Affine.entries((range(3), range(3)), 1.0, 1.0, shape=(3, 3))
    >>> set_ = lopro.constraints.Intersection(lopro.constraints.PSDCone(3), ones)
    >>> result = lopro.solve(lopro.Problem(f, set_), method=lopro.LowRankFactors())
    >>> result.success, round(result.fun, 5), round(float(result.x[0, 1]), 3)
    (True, -3.0, -0.5)
    """

    card: ClassVar[Card] = Card(
        assumptions="f linear, the set psd matrices with a given diagonal",
        oracles="none: it reads the data",
        rate="superlinear near a solution that is not degenerate",
        projections="0",
        reference="Burer, Monteiro (2003); Boumal, Voroninski, Bandeira (2016)",
    )

    rank: int | None = None

    def check(self, problem: Problem) -> None:
        if not isinstance(problem.objective, FactorCost):
            check_diagonal_form(problem)

    def run(self, bench: Workbench, x0: Array) -> Candidates:
        form = diagonal_form(bench.problem)
        search = _LowRankSearch(form, bench, x0)
        search.begin(x0 if form.rank is not None else form.start(self.rank))
        yield from search.candidates() if form.fixed is None else search.with_entries()
        raise StalledError


class _LowRankSearch:
    """The descent over factors, with proofs and escapes from stationary points that are not optimal."""

    def __init__(self, form: DiagonalForm, bench: Workbench, x0: Array) -> None:
        self.form, self.bench, self.x0 = form, bench, x0
        self.problem = UnitRowsProblem(form.cost())
        self.size = self.problem.size
        #: The part of the value that the diagonal and fixed entries determine.
        self.constant = self.problem.cost.constant + form.constant
        self.deadline: Deadline = current_deadline()
        self.share = 0.0 if form.rank is not None else form.share(x0)

    def begin(self, V: Array) -> None:
        """Start at a factor; all later slopes have the sparsity pattern of the slope there."""
        self.start = self.problem.point(V)
        self.proofs = SparseCholesky.of(self.start.Z)

    def candidates(self) -> Iterator[Candidate]:
        """Yield points with bounds until the gap is proved or the time is up."""
        point, threshold = self.start, math.inf
        for _ in range(_ESCAPES):
            for step in self.problem.descend(point, self._stopped):
                point = step
                if not self.bench.tick():
                    break
                allowed = self._allowed(point)
                threshold = min(threshold, _READY * allowed)
                if point.decrease <= threshold and not self._stopped():
                    threshold = _READY * point.decrease
                    if (bound := self._bound(point, 0.5 * allowed / self.size, 1)) is not None:
                        yield self._candidate(point, bound)
            if self._stopped() or self.bench.exhausted:
                yield self._last(point)
                return
            value, vector = self._lowest(point)
            shift = max(-value, 0.0) * 1.1 + 0.1 * self._allowed(point) / self.size
            yield self._candidate(point, self._bound(point, shift, 4))
            if value >= 0.0:
                return
            point = self._escaped(point, vector)

    def with_entries(self) -> Iterator[Candidate]:
        """Yield proved points with fixed entries, by the method of multipliers on an augmented Lagrangian.

        The fixed entries are set exactly at the end; a share of the identity makes up for their error.
        """
        point, cost, margin = self.start, self.problem.cost, _MARGIN * self.bench.target.tol
        assert isinstance(cost, WeightedDistance)
        rounding = self.share
        for k in range(_UPDATES):
            self.share = rounding + margin
            cost.stretch(1.0 / (1.0 - self.share))
            point = self.problem.point(point.V)
            for step in self.problem.descend(point, self._stopped):
                point = step
                force = max(cost.off(point.V), 0.1 * margin) * cost.penalty
                if norm(point.gradient()) <= _INNER * force or not self.bench.tick():
                    break
            late = self._stopped() or self.bench.exhausted or k == _UPDATES - 1
            if late or cost.off(point.V) <= 0.5 * margin:
                value, vector = self._lowest(point)
                shift = max(-value, 0.0) * 1.1 + 0.1 * self._allowed(point) / self.size
                yield self._candidate(point, self._bound(point, shift, 4))
                if late:
                    return
                margin *= 0.1
                if -value * self.size > self._allowed(point):
                    point = self._escaped(point, vector)
            cost.update(point)

    def _stopped(self) -> bool:
        """Whether the remaining time is needed for the last proof."""
        last = 3.0 * self.proofs.work + (0.0 if self.form.rank else 30.0 * self.size**2)
        return self.deadline.passed or not self.deadline.affords(last)

    def _allowed(self, point: FactorPoint) -> float:
        fun = point.fun + self.constant.value
        return self.bench.target.tol * max(abs(fun), self.bench.target.scale)

    def _bound(self, point: FactorPoint, shift: float, tries: int) -> tuple[Array, float] | None:
        """Return multipliers in scaled units and the bound that they prove; None if no shift is proved."""
        count("factorizations")
        shift = self.proofs.semidefinite_shift(point.slack(), shift, tries)
        if math.isinf(shift):
            return None
        y = point.y - (shift + self._blur(point))
        return y, self._value(point, y)

    def _blur(self, point: FactorPoint) -> float:
        """Return a bound, in the spectral norm, on the change of the slack by rounding of a scaled cost."""
        return 8.0 * EPS * row_sum_norm(point.Z)

    def _value(self, point: FactorPoint, y: Array) -> float:
        """Return a lower bound of ``<Z, X> - f*(Z)`` over all X, for multipliers with a proved slack."""
        return (total(y) - self.problem.cost.conjugate(point.Z) + self.constant).lower()

    def _dominant(self, point: FactorPoint) -> tuple[Array, float]:
        """Return a bound without a factorisation: minus the row sums make the slack diagonally dominant."""
        sums = np.asarray(abs(point.Z).sum(axis=1)).ravel()
        y = -sums * (1.0 + self.size * EPS) - self._blur(point)
        return y, self._value(point, y)

    def _candidate(self, point: FactorPoint, bound: tuple[Array, float] | None) -> Candidate:
        dominant = self._dominant(point)
        factored = bound is not None and bound[1] >= dominant[1]
        y, value = bound if bound is not None and factored else dominant
        count("matvecs", self.problem.products)
        self.problem.products = 0
        x = self.form.candidate(point.V, self.x0, self.share)
        # Rows of V have unit norm up to the rounding of p products.
        off = np.abs(np.einsum("ij,ij->i", point.V, point.V) - 1.0) + (point.V.shape[1] + 4) * EPS
        gained = float(np.abs(y) @ off) * (1.0 + 1e-10) if self.form.rank is not None else 0.0
        inequality = self.form.inequality(x, point.Z, y)
        source = _SOURCE if factored else _DOMINANT
        return Candidate(x, ProvedBound(value, source, inequality=inequality, gained=gained))

    def _last(self, point: FactorPoint) -> Candidate:
        """Return the last point; its bound takes up to three factorisations if there is time for them."""
        with self.deadline.wrapping_up():
            if not self.deadline.affords(3.0 * self.proofs.work):
                return self._candidate(point, None)
            value, _ = self._lowest(point, restarts=5)
            shift = 1.5 * max(-value, 0.0) + 0.5 * self._allowed(point) / self.size
            return self._candidate(point, self._bound(point, shift, 2))

    def _lowest(self, point: FactorPoint, restarts: int = _RESTARTS) -> tuple[float, Array]:
        """Return about the least eigenvalue of the slack with its vector; 0 if Lanczos does not converge."""
        S = point.slack()
        start = np.random.default_rng(0).standard_normal(self.size)
        if self.size <= 50:
            values, vectors = np.linalg.eigh(S.toarray() if scipy.sparse.issparse(S) else S)
            return float(values[0]), np.asarray(vectors[:, 0])
        try:
            values, vectors = scipy.sparse.linalg.eigsh(
                S, k=1, which="SA", v0=start, tol=1e-2, maxiter=restarts
            )
        except scipy.sparse.linalg.ArpackNoConvergence:
            return 0.0, start
        return float(values[0]), np.asarray(vectors[:, 0])

    def _escaped(self, point: FactorPoint, vector: Array) -> FactorPoint:
        """Return a point with one more column, along the eigenvector: the value decreases with its square."""
        column = vector / float(np.abs(vector).max())
        for k in range(20):
            trial = self.problem.point(np.column_stack([point.V, 0.5**k * column]), point.fun)
            if trial.decrease > 0.0:
                return trial
        raise StalledError
