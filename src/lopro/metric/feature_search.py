"""The search of `lopro.FeatureWorkingSet`: solve on some features, add others, complete the multiplier.

Figures at constants are iterations of ``python -m benchmarks.constants metric`` with a tenth of the value and
with ten times it, relative to those with the value; "lost" means that a fit is not certified in 20 s.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from lopro.core.arrays import Array, asarray_like, from_numpy, to_numpy
from lopro.core.deadline import OutOfTime, current_deadline
from lopro.errors import StalledError
from lopro.metric.completion import Completion
from lopro.metric.dual import PairMultiplier
from lopro.metric.first_factor import KnownSlack
from lopro.metric.objective import SparseMetric, sparse_metric_of
from lopro.metric.pair_sums import PairSum
from lopro.metric.starts import first_start, good_start, useful
from lopro.metric.white import White
from lopro.metric.working_set import Features, WorkingProblem
from lopro.protocol import Candidate, Candidates, Multiplier, Workbench

__all__ = ["FeatureSearch"]

#: A feature is added if its dual constraint is violated by this share (1.00, 1.05). The relative gap on the
#: working set at which features are priced before the first completion: with 1e-3, 72 x 7129 genes end at a
#: gap of 64 % after 100 s; with 0.05, at 0.24 % after 120 s on one core; small problems take 1.05, 0.99.
ROUGH, FIRST_ACCURACY = 1e-3, 0.05
#: Share of the bound that the first completion sacrifices (0.99, 1.02), and the factor from one completion
#: to the next (1.00, 1.02; 250 x 95 samples 1.61).
FIRST_SHARE, FALL = 0.1, 0.05
#: The largest total loss of a completion and the largest gap on the working set, in units of that share:
#: the last share is half of the tolerance, so that 1.6 * 0.5 + 0.3 * 0.5 leaves a margin of 5 %.
#: Lost, 1.54; lost, lost.
MOST_LOST, INSIDE = 1.6, 0.3
#: The share of the required gap that the last completion has to prove: 1.01, lost.
SPARING = 0.98
#: A completion has stalled if in this number of steps neither its violation nor the missing part of its
#: bound falls to this share: 1.07, 1.00; 1.27, 1.00. Its steps are cheap next to those of ADMM with more
#: features, which follow.
STALL_AFTER, SLOWEST = 200, 0.9


class FeatureSearch:
    """One run: solve on the working set, add features, and prove that no other feature is needed."""

    def __init__(self, bench: Workbench, x0: Array, all_below: int, join: int) -> None:
        self.bench, self.x0, self.all_below, self.most_joining = bench, x0, all_below, join
        self.objective = sparse_metric_of(bench.problem)
        self.tolerance = max(bench.target.tol, 1e-12)
        self.present: Features = np.flatnonzero(to_numpy(self.objective.spread.diagonal) > 0.0)
        #: The latest completion of a multiplier to all features, if any.
        self.completion: Completion | None = None
        #: Without the l1 norm: coordinates in which the problem is well conditioned.
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
        """Return the first working set and the starting point on it."""
        start = None if useful(self.objective, self.x0) else first_start(self.objective)
        given = to_numpy(self.x0)
        few = self.x0.shape[0] <= self.all_below
        # The norms of rows couple a feature with all others: no completion is known for them.
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
        """Return the features in which pairs with positive targets differ most, relative to all pairs."""
        loss = self.objective.loss
        aligned = loss.diagonal_of_adjoint(loss.targets)[self.present]
        share = aligned / to_numpy(self.objective.spread.diagonal)[self.present]
        count = max(self.all_below, self.most_joining)
        return np.sort(self.present[np.argsort(-share)[:count]])

    @staticmethod
    def candidates_of(bench: Workbench, x0: Array, all_below: int, join: int) -> Candidates:
        """Yield the candidates of a new search; it starts when the first one is requested."""
        search = FeatureSearch(bench, x0, all_below, join)
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
            # Each completion prices again, at its own accuracy.
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
        return max(self.most_joining, len(self.work.features) // 2)

    def _solve(self, accuracy: float, for_zeros: float = np.inf) -> bool:
        return self.work.solve(accuracy, self.bench.tick, for_zeros)

    @property
    def _complete_already(self) -> bool:
        """Whether every feature in which some pair differs is in the working set."""
        return self.work.outside.size == 0

    def _finish(self) -> Candidates:
        """Iterate to the required gap, with every feature in the working set."""
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
        """Complete the multiplier to all features, each time sacrificing a smaller share of the bound."""
        objective = self.objective
        completion = Completion(objective)
        share, least = max(FIRST_SHARE, 0.5 * self.tolerance), 0.5 * self.tolerance
        while not self._complete_already:
            if not self._solve(INSIDE * share):
                yield self._candidate(self._last_multiplier())
                return
            if not self.work.reached(share):
                raise StalledError
            # A smaller share leaves room for smaller violations only.
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
        """Return the bound that certifies the current answer, with a small margin."""
        fun = float(self.work.admm.objective.value(self.work.answer))
        return fun - SPARING * self.bench.target.gap(fun)

    def _reach(self, completion: Completion, goal: float) -> bool:
        """Advance the completion until it proves the goal; return False if it stalls or a budget runs out."""
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
        """Return the features outside of the working set with the largest violations of the completion."""
        outside = self.work.outside
        excess = completion.excess[outside]
        return np.sort(outside[np.argsort(-excess)[: self._join_limit]])

    # From the working set to all features.

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
        """Return the current answer, with a dual point if the time allows."""
        try:
            return self._candidate(self._last_multiplier())
        except OutOfTime:
            return Candidate(self._embedded(self.work.answer))

    def _last_multiplier(self) -> PairMultiplier:
        """Return the dual point of an unfinished completion, or else one that needs no search."""
        if self.completion is None or self._complete_already:
            return self._quick_multiplier()
        return self.completion.multiplier()

    def _quick_multiplier(self) -> PairMultiplier:
        """Return a dual point that needs no search.

        With all features in the working set it is that of ADMM. Otherwise the slack is diagonal: the weights
        are scaled until the box contains all entries off the diagonal.
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
