"""Sparse metric learning on the few features that matter, with a proof for all of them.

Figures at constants are iterations of ``python -m benchmarks.constants metric`` with a tenth of the value and
with ten times it, relative to those with the value; "lost" means that a fit is not certified in 20 s.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from lopro.core.arrays import Array, asarray_like, from_numpy, to_numpy
from lopro.core.deadline import OutOfTime, current_deadline
from lopro.core.threads import each_in_one_pool
from lopro.core.validation import check_count
from lopro.errors import StalledError
from lopro.metric.completion import Completion
from lopro.metric.dual import PairMultiplier
from lopro.metric.first_factor import KnownSlack
from lopro.metric.objective import SparseMetric, require_sparse_metric, sparse_metric_of
from lopro.metric.pair_sums import PairSum
from lopro.metric.starts import first_start, good_start, useful
from lopro.metric.white import White
from lopro.metric.working_set import Features, WorkingProblem
from lopro.problem import Problem
from lopro.protocol import Candidate, Candidates, Card, Multiplier, Workbench

__all__ = ["FeatureWorkingSet"]

#: With up to so many samples and features a product takes milliseconds at most, and there are thousands.
FEW = 1000
#: A feature is added if its dual constraint is violated by this share (1.00, 1.05); the relative gap on the
#: working set at which features are priced before the first completion. With 1e-3 there, 72 x 7129 genes end
#: at a gap of 64 % after 100 s; with this, at 0.24 % after 120 s on one core; small problems take 1.05, 0.99.
ROUGH, FIRST_ACCURACY = 1e-3, 0.05
#: Share of the bound that the first completion gives up (0.99, 1.02), and how it falls from one to the next
#: (1.00, 1.02; 250 x 95 samples 1.61).
FIRST_SHARE, FALL = 0.1, 0.05
#: The largest total loss of a completion, in units of that share, and the largest gap on the working set:
#: the last share is half of the tolerance, so that 1.6 * 0.5 + 0.3 * 0.5 leaves a margin of 5 %.
#: Lost, 1.54; lost, lost.
MOST_LOST, INSIDE = 1.6, 0.3
#: The part of the required gap that the last completion may use up: 1.01, lost.
SPARING = 0.98
#: Steps of a completion after which its violation, or what its bound lacks, must have fallen to this part:
#: 1.07, 1.00; 1.27, 1.00. Its steps are cheap next to those of ADMM with more features, which come after it.
STALL_AFTER, SLOWEST = 200, 0.9


@dataclass(frozen=True)
class FeatureWorkingSet:
    r"""Metric learning on a working set of features, certified on all of them.

    Problem: min over psd ``A`` of a `lopro.metric.SparseMetric`. ADMM with an exact loss step
    (`lopro.metric.consensus`) solves the problem on a few features; features that would lower the
    objective are priced (`lopro.metric.working_set`) and join; when none is left, the multiplier is completed
    to all features (`lopro.metric.completion`), which proves the bound. Eigendecompositions are those of
    small matrices; the completion takes products of a factor with few rows, and goes on only until the gap
    that is required is proved.

    Parameters
    ----------
    all_below : int
        With at most so many features, all of them are in the working set from the beginning.
    join : int
        How many features join at a time.

    Examples
    --------
    >>> import numpy as np, lopro
    >>> from lopro.metric import SparseMetric
    >>> from lopro.metric.loss import PairLoss
    >>> X = np.random.default_rng(0).standard_normal((6, 4))
    >>> loss = PairLoss(X, np.triu_indices(6, 1), np.tile([0.0, 2.0, 2.0], 5))
    >>> problem = lopro.Problem(
    ...     SparseMetric(loss, 0.01), lopro.constraints.PSDCone(4), gap_scale=0.0
    ... )
    >>> lopro.solve(problem, method=lopro.FeatureWorkingSet(), tol=1e-4).success
    True
    """

    card: ClassVar[Card] = Card(
        assumptions="sparse metric learning: squared loss on pairs, l1 norm off the diagonal, A psd",
        oracles="samples, pairs and targets",
        rate="linear in practice: ADMM with an exact loss step on a small working set",
        projections="none on the full cone; small eigendecompositions, a Cholesky factor for the proof",
        reference="this library: working set, pricing by lasso, completion of the multiplier",
    )

    all_below: int = 64
    join: int = 16

    def __post_init__(self) -> None:
        check_count("all_below", self.all_below, minimum=0)
        check_count("join", self.join)

    def check(self, problem: Problem) -> None:
        require_sparse_metric(problem, "FeatureWorkingSet")

    def run(self, bench: Workbench, x0: Array) -> Candidates:
        short = max(sparse_metric_of(bench.problem).loss.X.shape) <= FEW
        return each_in_one_pool(_FeatureSearch.of(self, bench, x0), short)


class _FeatureSearch:
    """One run: solve on the working set, add features, and prove that no other feature is needed."""

    def __init__(self, method: FeatureWorkingSet, bench: Workbench, x0: Array) -> None:
        self.method, self.bench, self.x0 = method, bench, x0
        self.objective = sparse_metric_of(bench.problem)
        self.tolerance = max(bench.target.tol, 1e-12)
        self.present: Features = np.flatnonzero(to_numpy(self.objective.spread.diagonal) > 0.0)
        #: The latest search for a multiplier of all features, once there is one.
        self.completion: Completion | None = None
        #: Without the norm the features are left for coordinates in which the problem is easier.
        self.white = self.objective.spread.white
        if self.white is None:
            self.work = WorkingProblem(self.objective, *self._start())
        else:
            self.work = self._white_problem(self.white)

    def _white_problem(self, white: White) -> WorkingProblem:
        objective = SparseMetric(white.loss, 0.0)
        given = white.forth(to_numpy(self.x0).astype(np.float64))
        start = good_start(objective, asarray_like(given, white.loss.X))
        return WorkingProblem(objective, np.arange(len(start)), start)

    def _start(self) -> tuple[Features, np.ndarray[Any, Any]]:
        """Return the first features and the matrix to start from on them."""
        start = None if useful(self.objective, self.x0) else first_start(self.objective)
        given = to_numpy(self.x0)
        few = self.x0.shape[0] <= self.method.all_below
        # The norms of rows tie a feature to all others: there is no completion for them.
        if few or self.objective.l1 == 0.0 or self.objective.features > 0.0:
            chosen = self.present
        elif start is None and np.count_nonzero(np.diag(given)) < len(given):
            chosen = np.intersect1d(np.flatnonzero(given.any(axis=0)), self.present)
        elif start is not None and start.vector is not None and not start.vector.all():
            chosen = np.intersect1d(np.flatnonzero(start.vector), self.present)
        else:
            chosen = self._likely_features()
        if start is not None:
            return chosen, start.on(chosen)
        return chosen, np.array(given[np.ix_(chosen, chosen)], dtype=np.float64)

    def _likely_features(self) -> Features:
        """Return the features in which pairs that should be apart differ most, next to all pairs."""
        loss = self.objective.loss
        aligned = loss.diagonal_of_adjoint(loss.targets)[self.present]
        share = aligned / to_numpy(self.objective.spread.diagonal)[self.present]
        count = max(self.method.all_below, self.method.join)
        return np.sort(self.present[np.argsort(-share)[:count]])

    @staticmethod
    def of(method: FeatureWorkingSet, bench: Workbench, x0: Array) -> Candidates:
        """Search; the work begins with the first candidate."""
        search = _FeatureSearch(method, bench, x0)
        try:
            yield from search.candidates()
        except OutOfTime:
            with current_deadline().wrapping_up():
                last = search._last_candidate()
            yield last

    def candidates(self) -> Candidates:
        least = max(ROUGH, INSIDE * self.tolerance)
        accuracy = max(FIRST_ACCURACY, least)
        while self._solve(accuracy, for_zeros=least):
            yield self._candidate(self._quick_multiplier())
            added = self.work.violated(self._join_limit, ROUGH)
            # The completion prices again, at the accuracies that it requires.
            if added.size == 0:
                break
            self.work.join(added)
        if self.bench.exhausted:
            yield self._candidate(self._quick_multiplier())
        else:
            yield from self._finish() if self._complete_already else self._complete()

    @property
    def _join_limit(self) -> int:
        """Limit of the features added at a time: larger where rounds are expensive."""
        return max(self.method.join, len(self.work.features) // 2)

    def _solve(self, accuracy: float, for_zeros: float = np.inf) -> bool:
        return self.work.solve(accuracy, self.bench.tick, for_zeros)

    @property
    def _complete_already(self) -> bool:
        """Whether every feature that matters at all is in the working set."""
        return self.work.outside.size == 0

    def _finish(self) -> Candidates:
        """Iterate until the gap is small enough, with every feature in the working set."""
        accuracy = max(0.1 * ROUGH, 0.5 * self.tolerance)
        while True:
            going = self._solve(accuracy)
            yield self._candidate(self._quick_multiplier())
            if not going:
                return
            if not self.work.reached(accuracy):
                raise StalledError
            accuracy = (
                max(0.1 * accuracy, 0.5 * self.tolerance)
                if accuracy > self.tolerance
                else 0.5 * accuracy
            )

    def _complete(self) -> Candidates:
        """Complete the multiplier to all features, giving up less and less of the bound."""
        objective = self.objective
        completion = Completion(objective)
        share, least = max(FIRST_SHARE, 0.5 * self.tolerance), 0.5 * self.tolerance
        while not self._complete_already:
            if not self._solve(INSIDE * share):
                yield self._candidate(self._last_multiplier())
                return
            if not self.work.reached(share):
                raise StalledError
            # The less is given up, the less may be left outside.
            added = self.work.violated(self._join_limit, min(ROUGH, share))
            if added.size > 0:
                self.work.join(added)
                continue
            found = self.work.multiplier
            known = KnownSlack(self.work.features, -found.direction)
            completion.aim(self._on_device(found.weights), self.work.fun, share, known)
            self.completion = completion
            goal = min((1.0 - MOST_LOST * share) * self.work.fun, self._enough())
            reached = self._reach(completion, goal)
            yield self._candidate(completion.multiplier())
            if self.bench.exhausted:
                return
            if reached:
                share = max(FALL * share, least) if share > least else 0.5 * share
            else:
                self.work.join(self._missed(completion))
        yield from self._finish()

    def _enough(self) -> float:
        """Return the bound with which the answer at hand is certified, with a small margin."""
        fun = float(self.work.admm.objective.value(self.work.answer))
        return fun - SPARING * self.bench.target.gap(fun)

    def _reach(self, completion: Completion, goal: float) -> bool:
        """Advance the completion until it proves the goal; False if it has stalled or time is up."""
        violation = missing = np.inf
        steps = 0
        while (left := goal - completion.proved) > 0.0:
            if steps >= STALL_AFTER:
                if completion.violation > SLOWEST * violation and left > SLOWEST * missing:
                    return False
                steps = 0
            if steps == 0:
                violation, missing = completion.violation, left
            more = completion.descend(self.bench.tick)
            if self.bench.exhausted or more == 0:
                return completion.proved >= goal
            steps += more
        return True

    def _missed(self, completion: Completion) -> Features:
        """Return the features outside in which the completion is stuck."""
        outside = self.work.outside
        excess = completion.excess[outside]
        return np.sort(outside[np.argsort(-excess)[: self._join_limit]])

    # Between the working set and all features.

    def _candidate(self, multiplier: PairMultiplier) -> Candidate:
        x = self._embedded(self.work.answer)
        return Candidate(x, Multiplier(multiplier))

    def _embedded(self, small: np.ndarray[Any, Any]) -> Array:
        """Return a matrix on the working set as one on all features."""
        dtype = to_numpy(self.x0[:1, :1]).dtype
        if self.white is not None:
            return from_numpy(self.white.back(small).astype(dtype), self.x0)
        full = np.zeros(self.x0.shape, dtype=dtype)
        full[np.ix_(self.work.features, self.work.features)] = small
        return from_numpy(full, self.x0)

    def _on_device(self, values: Any) -> Any:
        return values if isinstance(values, PairSum) else from_numpy(values, self.x0)

    def _last_candidate(self) -> Candidate:
        """Return the answer at hand, with a dual point if there is time for one."""
        try:
            return self._candidate(self._last_multiplier())
        except OutOfTime:
            return Candidate(self._embedded(self.work.answer))

    def _last_multiplier(self) -> PairMultiplier:
        """Return the dual point of a completion that had to be left, or else one without search."""
        if self.completion is None or self._complete_already:
            return self._quick_multiplier()
        return self.completion.multiplier()

    def _quick_multiplier(self) -> PairMultiplier:
        """Return a dual point that needs no search.

        With all features in the working set it is that of ADMM. Otherwise the slack is diagonal: the weights
        are made so small that the box holds all that is off the diagonal.
        """
        weights = self._on_device(self.work.multiplier.weights)
        if self.white is not None:
            direction = self.white.multiplier_back(self.work.multiplier.direction)
            return PairMultiplier(self._on_device(direction), 0.0, weights=weights)
        if self._complete_already:
            found = self.work.multiplier
            rows = None if found.rows is None else self._embedded(found.rows)
            return PairMultiplier(self._embedded(found.direction), 0.0, weights=weights, rows=rows)
        return PairMultiplier.of_factor(weights, np.zeros((0, len(self.x0))))
