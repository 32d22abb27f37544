"""One run: the workbench a scheme works at, and the one loop around it.

The loop takes epochs from a scheme, certifies and records them, and says how the run ended. Status is
assigned here and nowhere else.
"""

from __future__ import annotations

import functools
import math
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from dataclasses import replace
from typing import Any, TypeVar

from lopro._arrays import Array, copy, equal, isfinite, norm
from lopro._progress import Progress
from lopro._validation import check_seed
from lopro.budget import Budget
from lopro.certificates import Certificate
from lopro.epochs import Epoch, Scheme
from lopro.errors import InfeasibleError, ProjectionError, StalledError
from lopro.inner.base import InnerAlgorithm
from lopro.knowledge import Knowledge
from lopro.oracles import Counts, ledger, watched
from lopro.penalised import Penalised
from lopro.penalties import Penalty
from lopro.problem import Problem
from lopro.result import History, Iterate, Result, Status

__all__ = ["Run"]

T = TypeVar("T")


class _NonFinite(Exception):
    """An inner algorithm left the finite numbers."""


class _Spent(Exception):
    """A scheme asks for one projection more than the budget has."""


class Run:
    """One run of a scheme: the workbench it works at, and the loop around it.

    It is an iterator of `Iterate`; when it is exhausted, `result` tells how it ended.
    """

    def __init__(
        self, problem: Problem, method: Scheme, x0: Array | None, budget: Budget, seed: Any
    ) -> None:
        if not isinstance(problem, Problem):
            raise TypeError(f"problem must be a lopro.Problem, got {problem!r}")
        if isinstance(method, type) or not (hasattr(method, "epochs") and hasattr(method, "check")):
            raise TypeError(f"method must be a scheme such as lopro.Auto(), got {method!r}")
        method.check(problem)
        self.problem: Problem = watched(problem)
        self.method = method
        self.budget = budget
        self.rng = check_seed("seed", seed)
        self.counts = Counts()
        self.certificate_counts = Counts()
        self.history = History()
        self.knowledge = Knowledge(self.problem)
        self.warnings = self.knowledge.warnings
        self.iterations = 0
        self.status: Status | None = None  # None while running
        self.progress: Progress | None = None
        self._x0 = problem.start(x0)
        self._started = time.perf_counter()
        self._reached: Callable[[], Array] = lambda: self._x0  # where the run stands
        self._projected: Array | None = None  # the last feasible point
        self._cut_short = False  # whether the last epoch got fewer steps than its theorem asks
        self._loop = self._epoch_by_epoch()

    # The workbench.

    def penalised(self, penalty: Penalty, like: Array) -> Penalised:
        return Penalised(self.problem.objective, self.problem.constraint, penalty, like)

    def minimize(self, inner: InnerAlgorithm, F: Penalised, x: Array, steps: int) -> Any:
        return self.advance(inner, F, inner.init(F, x, self.rng), steps)

    def advance(self, inner: InnerAlgorithm, F: Penalised, state: Any, steps: int) -> Any:
        asked = steps
        if self.budget.max_iter is not None:
            steps = min(steps, self.budget.max_iter - self.iterations)
        if self._spent:
            steps = 0  # no projection is left that could make use of them
        # A single step may be long, so a time limit is looked at after each one.
        period = 16 if self.budget.time_limit is None else 1
        done = 0
        try:
            while done < steps:
                state = inner.step(F, state)
                done += 1
                if done % period == 0 and self._interrupted_by_clock(done):
                    break
        except KeyboardInterrupt:
            self.status = Status.INTERRUPTED
        self.iterations += done
        self._cut_short = done < asked
        self._reached = lambda: inner.output(state)
        if self.budget.max_iter is not None and self.iterations >= self.budget.max_iter:
            self.status = self.status or Status.MAX_ITER
        return state

    def tick(self) -> bool:
        self.iterations += 1
        if self.budget.max_iter is not None and self.iterations >= self.budget.max_iter:
            self.status = self.status or Status.MAX_ITER
        return not (self._interrupted_by_clock(0) or self._spent)

    def _interrupted_by_clock(self, done: int) -> bool:
        if self.progress is not None:
            self.progress.tick(self.iterations + done)
        limit = self.budget.time_limit
        if limit is not None and self.seconds >= limit:
            self.status = self.status or Status.TIME_LIMIT
        return self.status is not None

    def project(self, x: Array) -> Array:
        if not isfinite(x):
            raise _NonFinite
        if self._spent:
            raise _Spent
        projected = self._projected = self.problem.constraint.project(x)
        self._reached = lambda: projected
        return projected

    @property
    def _spent(self) -> bool:
        limit = self.budget.max_projections
        return limit is not None and self.counts.projections >= limit

    def observe(self) -> AbstractContextManager[Any]:
        return ledger(self.certificate_counts)

    @property
    def tol(self) -> float:
        return self.budget.tol

    def gap_wanted(self, fun: float) -> float:
        return self.tol * max(self.problem.gap_scale, abs(fun))

    @property
    def exhausted(self) -> bool:
        return self.status is not None

    @property
    def seconds(self) -> float:
        """Wall time since the start."""
        return time.perf_counter() - self._started

    # The loop.

    def __iter__(self) -> Iterator[Iterate]:
        return self

    def __next__(self) -> Iterate:
        return next(self._loop)

    def _epoch_by_epoch(self) -> Iterator[Iterate]:
        with self.observe():
            reason = self.problem.constraint.infeasibility()
        if reason is not None:
            self.warnings.append(reason)
            self.status = Status.INFEASIBLE
            return
        epochs = self.method.epochs(self, self._x0)
        while self.status is None:
            epoch = self._next_epoch(epochs)
            if epoch is None:
                break
            iterate = self._guarded(functools.partial(self._look_at, epoch))
            if iterate is None:
                break
            self._decide()
            yield iterate

    def _next_epoch(self, epochs: Iterator[Epoch]) -> Epoch | None:
        with ledger(self.counts):
            epoch = self._guarded(lambda: next(epochs, None))
        if epoch is None and self.status is None:
            self.status = Status.CONVERGED if self._certified else Status.SCHEDULE_DONE
        return epoch

    def _guarded(self, part: Callable[[], T]) -> T | None:
        """Run a part of the loop; what ends the run on purpose becomes a status, and None."""
        try:
            return part()
        except _NonFinite:
            self.status = Status.NONFINITE
        except OverflowError as error:
            self.status = Status.NONFINITE
            self.warnings.append(f"a number grew beyond all bounds: {error}")
        except InfeasibleError as error:
            self.status = Status.INFEASIBLE
            self.warnings.append(str(error))
        except ProjectionError as error:
            self.status = Status.PROJECTION_FAILED
            self.warnings.append(str(error))
        except StalledError:
            self.status = self.status or (Status.CONVERGED if self._certified else Status.STALLED)
        except _Spent:
            self.status = self.status or Status.MAX_PROJECTIONS
        except KeyboardInterrupt:
            self.status = Status.INTERRUPTED
        return None

    def _look_at(self, epoch: Epoch) -> Iterate:
        """Certify the epoch's point, keep the best one, and write the row of the history."""
        with self.observe():
            candidate = self.knowledge.judge(epoch.x)
            epoch.fun = candidate.fun
            if not math.isfinite(epoch.fun):
                raise _NonFinite
            if equal(epoch.x, epoch.x_hat):
                # The projection had nothing to do: F(x_hat) >= f(x_hat) = f(x) is all there is to know.
                epoch.penalised_value, regularity = epoch.fun, math.nan
            else:
                epoch.penalised_value = epoch.F.value(epoch.x_hat)
                excess = self.problem.constraint.value(epoch.x_hat)
                regularity = max(excess, 0.0) / norm(epoch.x_hat - epoch.x)
            self.knowledge.learn(epoch, complete=not self._cut_short)
        epoch.certificate = certificate = self.knowledge.certificate
        weight = getattr(epoch.F.penalty, "lam", getattr(epoch.F.penalty, "beta", math.nan))
        iterate = Iterate(
            x=copy(epoch.x),  # a callback may write on it
            epoch=len(self.history) + 1,
            iterations=self.iterations,
            projections=self.counts.projections,
            fun=epoch.fun,
            violation=candidate.violation,
            lower_bound=certificate.lower_bound,
            gap=certificate.gap,
            relative_gap=certificate.relative_gap,
            penalty_weight=float(weight),
            exact=epoch.exact,
            regularity=regularity,
            seconds=self.seconds,
        )
        self.history.append(iterate)
        if self.progress is not None:
            self.progress.show(iterate)
        return iterate

    def _decide(self) -> None:
        """Set the status if the run is over; the scheme's own budgets may have set it already."""
        if self.budget.tol > 0.0 and self._certified:  # with tol = 0 the schedule is run to its end
            self.status = Status.CONVERGED
        elif self.status is not None:
            return
        elif self._spent:
            self.status = Status.MAX_PROJECTIONS
        elif self.budget.time_limit is not None and self.seconds >= self.budget.time_limit:
            self.status = Status.TIME_LIMIT

    @property
    def _certified(self) -> bool:
        """Whether the best point is feasible and its gap is within the tolerance."""
        best = self.knowledge.best
        if best is None or not best.feasible:
            return False
        return self.knowledge.certificate.relative_gap <= self.budget.tol

    def result(self) -> Result:
        """Return the best feasible point with its certificate, which was computed at that very point."""
        known = self.knowledge
        if known.best is None and self.status is not Status.INFEASIBLE:
            self._settle()
        status = self.status or Status.STOPPED
        best, certificate = known.best, known.certificate
        return Result(
            x=copy(self._x0 if best is None else best.x),
            fun=math.nan if best is None else best.fun,
            status=status,
            message=self._message(status, certificate),
            certificate=certificate,
            # Copies: the run may go on after this look at it.
            counts=replace(self.counts),
            certificate_counts=replace(self.certificate_counts),
            iterations=self.iterations,
            seconds=self.seconds,
            method=repr(self.method),
            history=self.history.snapshot(),
            warnings=tuple(self.warnings),
        )

    def _settle(self) -> None:
        """Make a feasible point of what a run without a complete epoch has reached."""
        x = self._reached()
        lost = self.status in (Status.NONFINITE, Status.PROJECTION_FAILED)
        if lost or self._spent:
            x = self._projected
        elif x is not self._projected:
            try:
                with ledger(self.counts):
                    x = self.project(x)
            except (_NonFinite, InfeasibleError, ProjectionError) as error:
                self.warnings.append(f"the interrupted point could not be projected: {error}")
                x = self._projected
        if x is not None:
            with self.observe():
                self.knowledge.judge(x)

    def _message(self, status: Status, certificate: Certificate) -> str:
        if not math.isfinite(certificate.lower_bound) and status is not Status.INFEASIBLE:
            return f"{status.value} ({certificate.source})"
        return status.value
