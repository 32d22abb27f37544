"""A working-set search for a smooth loss with an l1 norm: solve on some columns, price all, add some."""

from __future__ import annotations

import math
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from lopro.basis_pursuit.columns import column_set as columns
from lopro.basis_pursuit.columns import pooled_search, signed_search, support_newton
from lopro.basis_pursuit.columns.column_set import columns_to_add
from lopro.basis_pursuit.columns.pieces import Vector, largest
from lopro.basis_pursuit.losses.newton import LossNewton
from lopro.basis_pursuit.losses.sparse_loss import FreeRadius, SparseLoss
from lopro.basis_pursuit.recognition import sparse_loss
from lopro.basis_pursuit.search import WorkingSetSearch, newton_rounds
from lopro.constraints.pulled_back import stretch_at
from lopro.core.arrays import Array, is_single, to_numpy
from lopro.core.deadline import OutOfTime
from lopro.core.threads import one_pool
from lopro.errors import MissingCapabilityError
from lopro.maps.algebra import dense
from lopro.problem import Problem
from lopro.protocol import Candidate, Candidates, Card, Target, Workbench

__all__ = ["LossSearch", "WorkingSetNewton"]

_EPS = float(np.finfo(np.float64).eps)


@dataclass(frozen=True)
class Settings:
    """Settings of the search."""

    #: The share of the proved gap, or of the allowed one if that is larger, that a solution on the set may
    #: leave. A tenth of it takes 0.95 and ten times as much 1.00 times the products of the six logistic
    #: instances (`python -m benchmarks.constants basis_pursuit --only guiding`).
    guiding: float = 0.1
    #: The maximal number of Newton steps in a round; a tenth, 5, changes no count of these instances.
    steps: int = 50
    #: The share of the tolerance that the rounding errors of correlations may cost before the lengths of the
    #: columns are computed, for sharper bounds of these errors.
    blur: float = 0.01


SETTINGS = Settings()


class LossSearch(WorkingSetSearch):
    """The state of one search.

    Parameters
    ----------
    problem : Problem
    form : SparseLoss
        The problem as a loss with a norm; its map has columns.
    target : Target
        The required accuracy.
    tick : callable
        Called once for every product with all columns.
    """

    def __init__(
        self, problem: Problem, form: SparseLoss, target: Target, tick: Any = lambda: True
    ) -> None:
        super().__init__(problem, form, target)
        self.form, self._tick = form, tick
        free = None if form.free is None else dense(self.read(np.array([form.free]))).ravel()
        self.newton = LossNewton(form, free)
        self._radius: FreeRadius | None = None
        self._lengths: Vector | None = None  # of the columns
        self._excess = np.zeros(self.A.shape[1])
        self._before = math.inf

    def read(self, indices: Vector) -> Any:
        block = super().read(indices)
        if hasattr(block, "tocsc"):
            return block
        return np.asarray(to_numpy(block), dtype=np.float64)

    @property
    def stuck(self) -> bool:
        """Whether no column is missing and the last round did not halve the gap: only rounding is left."""
        return self.missing.size == 0 and not self.gap < 0.5 * self._before

    def begin(self, x0: Vector) -> None:
        """Take the support of the start and move there."""
        free = self.form.free
        used = np.flatnonzero(x0)
        used = used if free is None else used[used != free]
        x, constant = x0[used], 0.0 if free is None else float(x0[free])
        if used.size:
            self.newton.extend(used, self.read(used))
        self.newton.move(np.maximum(x, 0.0) if self.form.nonneg else x, constant)

    def round(self) -> None:
        """Solve on the columns of the set, as exactly as the gap requires, then price all columns."""
        self._tick()
        newton, self._before = self.newton, self.gap
        with one_pool():
            newton.solve(self._error_allowed(), SETTINGS.steps)
        self.fun = newton.fun
        image = newton.scores
        if newton.free is not None:
            image = image - newton.constant * newton.free
        self._stretch = max(self._stretch, stretch_at(newton.x, image))
        self.price()

    def _error_allowed(self) -> float:
        """Return the optimality error at which Newton's method ends in this round."""
        newton = self.newton
        if self._radius is None:
            # The first round. Without columns it is exact, and shows whether zero is optimal.
            return SETTINGS.guiding if newton.indices.size else 1e-12
        # Scaling correlations that exceed the weights by a share costs that share of the penalty.
        penalty = newton.form.penalty(newton.x, newton.indices) or newton.fun
        share = SETTINGS.guiding * max(self.gap, self.target.gap(newton.fun)) / penalty
        return min(share, SETTINGS.guiding)

    def price(self) -> None:
        """Price all columns; the first time, the same pass gives a radius for the free coefficient."""
        r, f = self._dual_point(), self.newton.free
        if f is None or self._radius is not None:
            self._radius = self._radius or FreeRadius()
            self._learn(r, self.pulled(r))
            return
        sides = np.stack([np.where(f * r > 0.0, r, 0.0), np.where(f * r < 0.0, r, 0.0)], axis=1)
        pulled = np.asarray(self.pulled(sides), dtype=np.float64)
        gauges = (np.abs(pulled).T / self.form.weights).max(axis=1)
        self._radius = FreeRadius.of(np.abs(f @ sides), gauges)
        self._learn(r, pulled.sum(axis=1))

    def _dual_point(self) -> Vector:
        """Return minus the slopes, strictly inside the domain, and orthogonal to the free column."""
        f, r = self.newton.free, np.asarray(-(1.0 - 8.0 * _EPS) * self.newton.slope)
        if f is None:
            return r
        parts = f * r
        up, down = float(parts[parts > 0.0].sum()), -float(parts[parts < 0.0].sum())
        if min(up, down) > 0.0:
            # The larger side is scaled down: the domain is convex and contains 0.
            r = np.where(parts > 0.0, min(1.0, down / up), min(1.0, up / down)) * r
        return r

    def _learn(self, r: Vector, g: Vector) -> None:
        """Improve the bound by a dual point and its correlations, and note the missing columns."""
        newton, form = self.newton, self.form
        g = np.asarray(g, dtype=np.float64)
        length = float(np.linalg.norm(r))
        self._stretch = max(self._stretch, stretch_at(r, g))
        off = 0.0
        if newton.free is not None and self._radius is not None:
            left = form.left_free(newton.free, r)
            off = left * self._radius.at(newton.fun) if left > 0.0 else 0.0
        bound, factor = form.lower_bound(r, g, self._blur(length), off)
        if bound > self.bound:
            self.bound, self.proof = bound, form.multiplier(bound, factor * r, factor * g)
        self._excess = np.asarray(form.excess(g))
        self._excess[newton.indices] = 0.0
        self.missing = np.flatnonzero(self._excess > 1.0 + support_newton.SETTINGS.close)

    def _blur(self, length: float) -> Vector:
        """Return bounds of the errors of the correlations with a dual point of this length.

        By the norm of the matrix; where columns differ so much in length that this costs too much, by theirs.
        """
        whole = 8.0 * _EPS * self._stretch * length
        weights, A = self.form.weights, self.A
        too_much = whole > SETTINGS.blur * self.target.tol * float(weights.min())
        if self._lengths is None and too_much and A.in_memory and A.has_columns:
            self._lengths = to_numpy(A.column_norms).astype(np.float64)
        if self._lengths is None:
            return np.full(len(weights), whole)
        return np.minimum(whole, 8.0 * _EPS * length * self._lengths)

    def add_missing(self) -> None:
        """Add the columns that violate most, and drop those that are not used.

        Where a pass over the matrix is expensive, columns that are close to a violation are read as well, and
        none are dropped.
        """
        newton = self.newton
        used, candidates = newton.x != 0.0, self.missing
        ridge, rows = bool((self.form.ridges > 0.0).any()), self.A.shape[0]
        count = max(columns.SETTINGS.fewest, columns_to_add(newton.x, rows, 1, ridge))
        if not self.A.in_memory:
            candidates = np.flatnonzero(self._excess > pooled_search.SETTINGS.near)
            count = max(
                count, rows // 4, int(pooled_search.SETTINGS.growth * np.count_nonzero(used))
            )
        elif np.count_nonzero(used) < (1.0 - signed_search.SETTINGS.unused) * len(used):
            newton.keep(used)
        new = candidates[largest(self._excess[candidates], count)]
        new.sort()  # in the order of memory
        if new.size:
            newton.extend(new, self.read(new))

    # Candidates.

    def point(self) -> Array:
        """Return the present coefficients among all, in the library of the problem."""
        newton, free = self.newton, self.form.free
        places, values = newton.indices, newton.x
        if free is not None:
            places, values = np.append(places, free), np.append(values, newton.constant)
        return self._among_all(places, values)

    def candidate(self, bench: Workbench) -> Candidate:
        """Return the present coefficients as a candidate."""
        newton, image = self.newton, self.newton.scores
        if is_single(self._like):
            single = newton.x.astype(np.float32).astype(np.float64)
            image = np.asarray(newton.columns @ single)
            if newton.free is not None:
                image = image + float(np.float32(newton.constant)) * newton.free
        x = self.point()
        return Candidate(x, self.evidence, objective_image=self.form.image_at(x, image))


@dataclass(frozen=True)
class WorkingSetNewton:
    """Working-set Newton for ``min g(A x) + sum p_i |x_i|``: sparse logistic regression.

    Problem: `Logistic` (or its atom, with weights) plus a multiple of `L1Norm`, possibly a ridge, ``x >= 0``,
    and one coefficient of weight 0, an intercept. See `lopro.sparse_logistic`. Oracles: columns of A, by
    products where it has none, and a product with A' per round. Newton's method on the columns of the set
    converges globally, and one product with all columns shows which are missing and proves a lower bound.

    Examples
    --------
    >>> import numpy as np, lopro
    >>> rng = np.random.default_rng(0)
    >>> A = rng.standard_normal((60, 200))
    >>> loss = lopro.objectives.Logistic(A, np.sign(A[:, 3] - A[:, 70]))
    >>> problem = lopro.Problem(loss + 0.1 * lopro.objectives.L1Norm())
    >>> result = lopro.solve(problem, method=lopro.WorkingSetNewton(), tol=1e-9)
    >>> result.success, np.flatnonzero(abs(result.x) > 0.2)
    (True, array([ 3, 70]))
    """

    card: ClassVar[Card] = Card(
        assumptions="logistic loss plus l1 norm, optionally a ridge, x >= 0, an intercept; columns",
        oracles="columns of A, a product with A' per round",
        rate="Newton's method on the columns of a working set",
        projections="0",
        reference="this library: Newton's method on working sets",
    )

    def check(self, problem: Problem) -> None:
        if sparse_loss(problem) is None:
            raise MissingCapabilityError(
                "WorkingSetNewton needs Logistic plus a multiple of L1Norm (and possibly x >= 0), "
                f"got {problem.objective!r} over {problem.constraint!r}"
            )

    def run(self, bench: Workbench, x0: Array) -> Candidates:
        form = sparse_loss(bench.problem)
        assert form is not None
        search = LossSearch(bench.problem, form, bench.target, bench.tick)
        with suppress(OutOfTime):
            search.begin(to_numpy(x0).astype(np.float64))
            yield from newton_rounds(bench, search)
        if not search.done:
            yield search.candidate(bench)
