"""The loop that runs every method: it certifies and records candidates and assigns the status of the run.

No other code assigns the status.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import TypeVar

import numpy as np

from lopro.certificates import Certificate
from lopro.core.arrays import Array, copy
from lopro.core.counting import Counts, counting
from lopro.core.deadline import Deadline, OutOfTime, current_deadline
from lopro.driver.candidate import Candidate, Judged, PenalisedMinimum, Verdict
from lopro.driver.fit import next_candidate, required_fit
from lopro.driver.incumbent import Incumbent
from lopro.driver.method import Candidates, Method
from lopro.driver.result import History, Iterate, Result, Status
from lopro.driver.unfinished import keep_reached
from lopro.driver.workbench import Callback, Options, RunWorkbench, Spent
from lopro.errors import (
    InfeasibleError,
    NonFiniteError,
    ProjectionError,
    StalledError,
    UnboundedError,
)
from lopro.problem import Problem

__all__ = ["Run"]

T = TypeVar("T")

_NO_SOLUTION = (Status.INFEASIBLE, Status.UNBOUNDED)


class Run:
    """One run of a method, as an iterator of `Iterate`; `result` returns its result at any time."""

    def __init__(
        self,
        problem: Problem,
        method: Method,
        x0: Array | None,
        options: Options,
        deadline: Deadline | None = None,
    ) -> None:
        self.deadline = Deadline(options.time_limit) if deadline is None else deadline
        if not isinstance(problem, Problem):
            raise TypeError(f"problem must be a lopro.Problem, got {problem!r}")
        if isinstance(method, type) or not (hasattr(method, "run") and hasattr(method, "check")):
            raise TypeError(f"method must be a method such as lopro.Auto(), got {method!r}")
        with counting(Counts()) as prepared:
            self.method, self._fit = method, required_fit(method, problem)
        self.warnings: list[str] = []
        self.history = History()
        self.status: Status | None = None  # None while running
        self._x0 = problem.start(x0)
        self.bench = RunWorkbench(problem, options, self.deadline, self._x0)
        # The transfers made by `fit` belong to the run: forms of the problem, with matrices copied for them.
        self.bench.counts.transfers += prepared.transfers
        self.bench.counts.bytes_transferred += prepared.bytes_transferred
        bench = self.bench  # no reference to the run: only the garbage collector frees cycles
        #: The best point and bounds.
        self.incumbent = Incumbent(bench.counted, bench.target, self.warnings, lambda: bench.unit)
        self._rule = options.rule
        self._stopped_by = "the caller"
        self._nonfinite = ""
        self._ray: object = None
        #: The distance from zero within which the set is proved to be empty; 0 where nothing is known.
        self._empty_within = 0.0
        self._loop = self._candidate_by_candidate()

    @property
    def counts(self) -> Counts:
        """The operations of the method so far."""
        return self.bench.counts

    @property
    def certificate_counts(self) -> Counts:
        """The operations of certificates and records so far."""
        return self.bench.certificate_counts

    def stop(self, by: str) -> None:
        """End the run after the present candidate."""
        if self.status is None:
            self.status, self._stopped_by = Status.STOPPED, by

    def call_back(self, callback: Callback, iterate: Iterate) -> None:
        """Call a user's function with an iterate; it may stop the run."""
        try:
            answer = callback(iterate)
        except OutOfTime:  # the function has called the library after the deadline
            self.status = self.status or self.bench.why_late
            return
        # NumPy's True counts; other truthy values are more likely an accident than a request to stop.
        if isinstance(answer, (bool, np.bool_)) and answer:
            self.stop("the callback")

    def give_up(self) -> None:
        """End the run before it starts, because the time is up: the start is the point, without a value."""
        self.status = self.bench.why_late
        self.warnings.append("there was no time to evaluate the start")
        self.incumbent.keep(Judged(self._x0, math.nan, math.inf))

    def __iter__(self) -> Iterator[Iterate]:
        return self

    def __next__(self) -> Iterate:
        if current_deadline() is self.deadline:
            return next(self._loop)
        with self.deadline.active():
            return next(self._loop)

    def _candidate_by_candidate(self) -> Iterator[Iterate]:
        candidates = self._fit.run(self.bench, self._x0)
        verdict: Verdict | None = None
        while self.status is None:
            candidate = self._next_candidate(candidates, verdict)
            if candidate is None:
                break
            candidate = candidate.in_precision_of(self._x0)
            evaluated = self._guarded(functools.partial(self._evaluate, candidate))
            if evaluated is None:
                break
            iterate, verdict = evaluated
            self._decide(iterate)
            yield iterate

    def _next_candidate(self, candidates: Candidates, verdict: Verdict | None) -> Candidate | None:
        with counting(self.bench.counts):
            candidate = self._guarded(functools.partial(next_candidate, candidates, verdict))
        if candidate is None and self.status is None:
            done = Status.CONVERGED if self.incumbent.certified else Status.SCHEDULE_DONE
            self.status = self.bench.ended or done
        return candidate

    def _guarded(self, part: Callable[[], T]) -> T | None:
        """Run a part of the loop; return None for exceptions that end the run, which become its status."""
        try:
            return part()
        except NonFiniteError as error:
            self.status, self._nonfinite = Status.NONFINITE, str(error)
            self.warnings.append(str(error))
        except OverflowError as error:
            self.status = Status.NONFINITE
            self.warnings.append(f"overflow: {error}")
        except (InfeasibleError, UnboundedError) as error:
            self.status = self._without_solution(error)
            self.warnings.append(str(error))
            if self.status in _NO_SOLUTION:
                self._ray = error.ray
        except ProjectionError as error:
            self.status = Status.PROJECTION_FAILED
            self.warnings.append(str(error))
        except StalledError:
            stalled = Status.CONVERGED if self.incumbent.certified else Status.STALLED
            self.status = self.bench.ended or stalled
        except Spent:
            self.status = self.bench.ended or Status.MAX_PROJECTIONS
        except OutOfTime as late:
            self.status = self.bench.ended or self.bench.why_late
            if str(late):
                self.warnings.append(str(late))
        except KeyboardInterrupt:
            self.status = Status.INTERRUPTED
        return None

    def _without_solution(self, error: InfeasibleError | UnboundedError) -> Status:
        """Return the status after a report that there is no solution, which a feasible point refutes."""
        if isinstance(error, UnboundedError):
            return Status.UNBOUNDED
        best = self.incumbent.best
        refuted = best is not None and best.feasible
        if math.isinf(error.radius):
            return Status.PROJECTION_FAILED if refuted else Status.INFEASIBLE
        if not refuted:
            self._empty_within = error.radius
        if self.incumbent.certified:
            return Status.CONVERGED
        return self.bench.ended or Status.STALLED

    def _evaluate(self, candidate: Candidate) -> tuple[Iterate, Verdict]:
        """Certify the candidate, keep the best point, and append a row to the history."""
        bench = self.bench
        with bench.observe(), self.deadline.wrapping_up():
            judged = self.incumbent.judge(
                candidate.x, candidate.image, candidate.objective_image, candidate.violation
            )
            if not math.isfinite(judged.fun):
                raise NonFiniteError(f"the objective has the value {judged.fun}")
            penalised_value = candidate.penalised_value(judged.fun)
            regularity = candidate.regularity(self.bench.constraint)
            self.incumbent.update(candidate, judged.fun, penalised_value)
        evidence = candidate.evidence
        penalty = evidence.F.penalty if isinstance(evidence, PenalisedMinimum) else None
        verdict = Verdict(judged.fun, penalised_value, lambda: self.incumbent.certificate)
        certificate = verdict.certificate()
        iterate = Iterate(
            x=copy(candidate.x),  # a callback may write on it
            epoch=len(self.history) + 1,
            iterations=bench.iterations,
            projections=bench.counts.projections,
            products=bench.products,
            fun=judged.fun,
            violation=judged.violation,
            lower_bound=certificate.lower_bound,
            gap=certificate.gap,
            relative_gap=certificate.relative_gap,
            penalty_weight=math.nan if penalty is None else float(penalty.weight),
            exact=verdict.exact,
            regularity=regularity,
            seconds=bench.seconds,
            claimed_bound=self.incumbent.claimed,
        )
        self.history.append(iterate)
        if bench.progress is not None:
            bench.progress.show(iterate)
        return iterate, verdict

    def _decide(self, iterate: Iterate) -> None:
        """Set the status if the run is over."""
        bench = self.bench
        if bench.target.tol > 0.0 and self.incumbent.certified:
            self.status = Status.CONVERGED  # with tol = 0 the schedule is run to its end
        elif bench.ended is not None:
            self.status = bench.ended
        elif bench.spent:
            self.status = Status.MAX_PROJECTIONS
        elif self.deadline.passed:
            self.status = bench.why_late
        elif self._rule is not None and self._rule.met(iterate):
            self.stop(f"the rule {self._rule!r}")

    def result(self) -> Result:
        """Return the best feasible point with its certificate, which was computed at that very point."""
        known, bench = self.incumbent, self.bench
        if bench.options.multipliers0 is not None and not bench.began_with_multipliers:
            self.warnings.append("the method did not use multipliers0")
        if known.best is None and self.status not in _NO_SOLUTION:
            keep_reached(bench, known, self._x0, self.status, self.warnings)
        status = self.status or bench.ended or Status.STOPPED
        best = known.best
        with bench.observe(), self.deadline.active(), self.deadline.wrapping_up():
            certificate = known.certificate
            absolute = known.measure()
        if absolute != certificate.absolute_violation or self._empty_within > 0.0:
            certificate = replace(
                certificate, absolute_violation=absolute, empty_within=self._empty_within
            )
        return Result(
            x=copy(self._x0 if best is None else best.x),
            fun=math.nan if best is None else best.fun,
            status=status,
            message=self._message(status, certificate),
            certificate=certificate,
            # Copies: the run may continue after this result.
            counts=bench.counts.copy(),
            certificate_counts=bench.certificate_counts.copy(),
            iterations=bench.iterations,
            seconds=bench.seconds,
            method=" -> ".join([repr(self.method), *bench.methods]),
            history=self.history.snapshot(),
            warnings=tuple(self.warnings),
            multiplier=known.multiplier,
            multipliers=None if known.multiplier is None else known.multiplier.dual,
            ray=self._ray,
            claim=known.claim,
        )

    def _message(self, status: Status, certificate: Certificate) -> str:
        """Return the status in words, with what limits or explains it."""
        text = status.value
        if status is Status.STOPPED:
            text = f"stopped by {self._stopped_by}"
        if status is Status.NONFINITE and self._nonfinite:
            return f"{text}: {self._nonfinite}"
        if status is Status.CONVERGED and math.isfinite(certificate.radius):
            text = f"{text}, among the points within a distance of {certificate.radius:.3g}"
        if not math.isfinite(certificate.lower_bound) and status not in _NO_SOLUTION:
            text = f"{text} ({certificate.source})"
        claim = self.incumbent.claim
        if status is Status.SCHEDULE_DONE and claim is not None:
            text = f"{text}; claimed, not proved: {claim.gap:.3g} ({claim.source})"
        return text
