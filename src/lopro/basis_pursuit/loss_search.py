"""A working-set search for a smooth loss with an l1 norm: solve on some columns, price all, add some."""

from __future__ import annotations

import math
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from lopro.basis_pursuit import column_search
from lopro.basis_pursuit.columns import columns_to_add
from lopro.basis_pursuit.loss_newton import LossNewton
from lopro.basis_pursuit.pieces import Vector, largest
from lopro.basis_pursuit.search import columns_of
from lopro.basis_pursuit.sparse_loss import Radius, SparseLoss, sparse_loss
from lopro.constraints.pulled_back import stretch_at
from lopro.core.arrays import Array, asarray_like, from_numpy, is_single, to_numpy
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

    #: Of the gap, or of the one allowed: what solutions on some columns may leave of it.
    guiding: float = 0.1
    #: Newton steps on one set of columns.
    steps: int = 50
    #: Of the tolerance: what rounding of correlations may cost before columns are measured.
    blur: float = 0.01


SETTINGS = Settings()


class LossSearch:
    """The state of one search; vectors are NumPy's, in double precision.

    Parameters
    ----------
    form : SparseLoss
        The problem, with columns.
    target : Target
        The required accuracy.
    """

    def __init__(self, form: SparseLoss, target: Target) -> None:
        self.form, self.target, self.A = form, target, form.A
        free = None if form.free is None else dense(self._read(np.array([form.free]))).ravel()
        self.newton = LossNewton(form, free)
        self._radius, self._stretch = Radius(), 0.0
        self._sizes: Vector | None = None  # of the columns
        #: The best bound, with the dual point and its correlations.
        self.bound, self._dual = -math.inf, (np.zeros(self.A.shape[0]), np.zeros(self.A.shape[1]))
        self.missing = np.empty(0, dtype=np.intp)
        self._excess = np.zeros(self.A.shape[1])

    # Requests to the matrix.

    def _read(self, indices: Vector) -> Any:
        block = columns_of(self.A, indices)
        if hasattr(block, "tocsc"):
            return block
        return np.asarray(to_numpy(block), dtype=np.float64)

    def _pulled(self, duals: Vector) -> Vector:
        """Return the correlations of all columns with a dual point, or with several."""
        found = to_numpy(self.A.adjoint_exactly(from_numpy(duals, self.A.like)))
        return np.asarray(found, dtype=np.float64)

    # The search.

    @property
    def gap(self) -> float:
        """The gap that is proved."""
        return self.newton.fun - self.bound

    @property
    def complete(self) -> bool:
        """Whether value and bound are as close as required, with a margin."""
        return self.gap <= 0.5 * self.target.gap(self.newton.fun)

    def begin(self, x0: Vector) -> None:
        """Go to the start, price all columns there, and take those that violate most."""
        free = self.form.free
        used = np.flatnonzero(x0)
        used = used if free is None else used[used != free]
        x, constant = x0[used], 0.0 if free is None else float(x0[free])
        if used.size:
            self.newton.extend(used, self._read(used))
        self.newton.move(np.maximum(x, 0.0) if self.form.nonneg else x, constant)
        # Without columns a solution costs little: it shows exactly whether zero is optimal.
        self.newton.solve(SETTINGS.guiding if used.size else 1e-12, SETTINGS.steps)
        self._price_start()

    def _price_start(self) -> None:
        """Price all columns; the same pass gives a radius for the free coefficient."""
        r, f = self._dual_point(), self.newton.free
        if f is None:
            self._learn(r, self._pulled(r))
            return
        sides = np.stack([np.where(f * r > 0.0, r, 0.0), np.where(f * r < 0.0, r, 0.0)], axis=1)
        pulled = self._pulled(sides)
        gauges = np.abs(pulled).T / self.form.prices
        along = np.abs(f @ sides)
        self._radius = Radius.of(
            (float(along[0]), float(along[1])), (float(gauges[0].max()), float(gauges[1].max()))
        )
        self._learn(r, pulled.sum(axis=1))

    def _dual_point(self) -> Vector:
        """Return minus the slopes, a little inside of the domain, orthogonal to the free column."""
        f, r = self.newton.free, np.asarray(-(1.0 - 8.0 * _EPS) * self.newton.slope)
        if f is None:
            return r
        parts = f * r
        up, down = float(parts[parts > 0.0].sum()), -float(parts[parts < 0.0].sum())
        if min(up, down) > 0.0:
            # Shares of the larger side stay in the domain: it has 0 in it.
            r = np.where(parts > 0.0, min(1.0, down / up), min(1.0, up / down)) * r
        return r

    def _learn(self, r: Vector, g: Vector) -> None:
        """Take a bound from correlations, and which columns are missing."""
        newton, form = self.newton, self.form
        length = float(np.linalg.norm(r))
        self._stretch = max(self._stretch, stretch_at(r, g))
        off = 0.0
        if newton.free is not None:
            left = form.left_free(newton.free, r)
            off = left * self._radius.at(newton.fun) if left > 0.0 else 0.0
        bound, factor = form.lower_bound(r, g, self._blur(length), off)
        if bound > self.bound:
            self.bound, self._dual = bound, (factor * r, factor * g)
        excess = form.excess(g)
        excess[newton.indices] = 0.0
        self._excess, self.missing = (
            excess,
            np.flatnonzero(excess > 1.0 + column_search.SETTINGS.missing),
        )

    def _blur(self, length: float) -> Vector:
        """Return by how much correlations with a dual point of this length may be off.

        By the size of the matrix; where columns are so different in size that this is too much, by their own.
        """
        whole = 8.0 * _EPS * self._stretch * length
        prices, A = self.form.prices, self.A
        too_much = whole > SETTINGS.blur * self.target.tol * float(prices.min())
        if self._sizes is None and too_much and A.in_memory and A.has_columns:
            self._sizes = to_numpy(A.column_norms).astype(np.float64)
        if self._sizes is None:
            return np.full(len(prices), whole)
        return np.minimum(whole, 8.0 * _EPS * length * self._sizes)

    def add_missing(self) -> None:
        """Add the columns that violate most, and drop those that are not used.

        Where a pass over the matrix is expensive, those that are near to a violation are read with them, and
        none are dropped.
        """
        newton, settings = self.newton, column_search.SETTINGS
        used, candidates = newton.x != 0.0, self.missing
        ridge, rows = bool((self.form.ridges > 0.0).any()), self.A.shape[0]
        count = max(settings.fewest, columns_to_add(newton.x, rows, 1, ridge))
        if not self.A.in_memory:
            candidates = np.flatnonzero(self._excess > settings.near)
            count = max(count, rows // 4, int(settings.growth * np.count_nonzero(used)))
        elif np.count_nonzero(used) < 0.9 * len(used):
            newton.keep(used)
        new = candidates[largest(self._excess[candidates], count)]
        new.sort()  # memory is read in its order
        if new.size:
            newton.extend(new, self._read(new))

    def round(self) -> None:
        """Solve on the columns at hand as well as the gap is worth it, then price all columns."""
        newton, allowed = self.newton, self.target.gap(self.newton.fun)
        # Correlations that exceed the weights by a share cost the bound that share of the penalty.
        penalty = newton.form.penalty(newton.x, newton.indices) or newton.fun
        share = SETTINGS.guiding * max(self.gap, allowed) / penalty
        with one_pool():
            newton.solve(min(share, SETTINGS.guiding), SETTINGS.steps)
        image = (
            newton.scores if newton.free is None else newton.scores - newton.constant * newton.free
        )
        self._stretch = max(self._stretch, stretch_at(newton.x, image))
        r = self._dual_point()
        self._learn(r, self._pulled(r))

    # Candidates.

    def point(self) -> Array:
        """Return the present coefficients among all, in the library of the problem."""
        x = np.zeros(self.A.shape[1])
        x[self.newton.indices] = self.newton.x
        if self.form.free is not None:
            x[self.form.free] = self.newton.constant
        return asarray_like(x, self.form.like)

    def candidate(self) -> Candidate:
        """Return the present coefficients as a candidate."""
        x, newton, image = self.point(), self.newton, self.newton.scores
        if is_single(self.form.like):
            single = newton.x.astype(np.float32).astype(np.float64)
            image = np.asarray(newton.columns @ single)
            if newton.free is not None:
                image = image + float(np.float32(newton.constant)) * newton.free
        evidence = self.form.evidence(self.bound, *self._dual)
        return Candidate(x, evidence, objective_image=self.form.image_at(x, image))


@dataclass(frozen=True)
class WorkingSetNewton:
    """Working-set Newton for ``min g(A x) + sum p_i |x_i|``: sparse logistic regression.

    Problem: `Logistic` (or its atom, with weights) plus a multiple of `L1Norm`, possibly a ridge, ``x >= 0``,
    and one coefficient of weight 0, an intercept. See `lopro.sparse_logistic`. Oracles: columns of A, by
    products where there are no others, and a product with A' per round. Newton's method on the columns of the
    set converges from everywhere, and one product with all columns shows which are missing and proves how far
    the optimum can be.

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
        search = LossSearch(form, bench.target)
        with suppress(OutOfTime):
            search.begin(to_numpy(x0).astype(np.float64))
            yield from self._rounds(bench, search)
            return
        yield search.candidate()

    def _rounds(self, bench: Workbench, search: LossSearch) -> Candidates:
        """Iterate until the driver's tolerance is met, or only rounding is left."""
        last = math.inf
        while bench.tick():
            if search.complete:
                yield search.candidate()
            if search.missing.size == 0 and not search.gap < 0.5 * last:
                break
            last = search.gap
            search.add_missing()
            search.round()
        yield search.candidate()
