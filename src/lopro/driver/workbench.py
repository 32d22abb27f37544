"""The workbench of a run: counted oracles, inner iterations and projections within the budgets."""

from __future__ import annotations

import math
from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import Any, TypeVar

import numpy as np

from lopro.certificates import Target
from lopro.certificates.tolerances import negligible_share
from lopro.constraints import Constraint
from lopro.core.arrays import Array, isfinite
from lopro.core.counting import Counts, count, counting
from lopro.core.deadline import Deadline, OutOfTime
from lopro.core.validation import (
    check_callable,
    check_count,
    check_number,
    check_seed,
)
from lopro.driver.candidate import checked_multipliers
from lopro.driver.counted import CountedConstraint, counted_problem
from lopro.driver.method import Method, Stepper
from lopro.driver.progress import Progress
from lopro.driver.result import Iterate, Status
from lopro.driver.stopping import Rule, as_rule
from lopro.errors import NonFiniteError
from lopro.functions import Image
from lopro.objectives import Objective
from lopro.penalties import Penalised, Penalty
from lopro.problem import Problem

__all__ = ["Callback", "Options", "RunWorkbench", "Spent"]

F = TypeVar("F")


Callback = Callable[[Iterate], Any]


@dataclass(frozen=True)
class Options:
    """The options that all entry points share; `lopro.solve` documents them."""

    tol: float = 1e-6
    max_iter: int | None = None
    max_projections: int | None = None
    time_limit: float | None = None
    stop: Rule | Callable[[Iterate], bool] | None = None
    callback: Callback | None = None
    progress: bool = False
    seed: Any = None
    multipliers0: Any = None

    def __post_init__(self) -> None:
        check_number("tol", self.tol, minimum=0.0)
        if self.max_iter is not None:
            check_count("max_iter", self.max_iter)
        if self.max_projections is not None:
            check_count("max_projections", self.max_projections)
        if self.time_limit is not None:
            check_number("time_limit", self.time_limit, minimum=0.0, exclusive=True)
        if self.callback is not None:
            check_callable("callback", self.callback)
        if self.stop is not None:
            object.__setattr__(self, "stop", as_rule(self.stop))

    @property
    def rule(self) -> Rule | None:
        """The stopping rule, if there is one."""
        assert self.stop is None or isinstance(self.stop, Rule)
        return self.stop

    @property
    def limited(self) -> bool:
        """Whether a budget may end the run."""
        limits = (self.max_iter, self.max_projections, self.time_limit, self.stop)
        return any(limit is not None for limit in limits)

    def within_call(self) -> Options:
        """Return the options of a subproblem, whose deadline is that of the enclosing call."""
        return self if self.time_limit is None else replace(self, time_limit=None)


class Spent(Exception):
    """A method requests one projection more than the budget has."""


class RunWorkbench:
    """The implementation of `lopro.protocol.Workbench`: it also enforces the budgets."""

    def __init__(
        self, problem: Problem, options: Options, deadline: Deadline, start: Array
    ) -> None:
        self.problem = problem
        self.counted = counted_problem(problem)
        self._seed = options.seed
        if options.seed is not None:
            self._seed = check_seed("seed", options.seed)
        self.options = options
        self.deadline = deadline
        self._start = start
        self.counts, self.certificate_counts = Counts(), Counts()
        self.iterations = 0
        #: The methods that continued the run of another one, in order.
        self.methods: list[str] = []
        self.progress: Progress | None = None
        #: The reason to end the run; None while there is none.
        self.ended: Status | None = None
        #: The last projected point.
        self.projected: Array | None = None
        self.cut_short = False
        self._reached: Callable[[], Array] = lambda: start
        self._multipliers0 = checked_multipliers(problem.constraint, start, options.multipliers0)
        #: Whether a method has used the multipliers to begin with.
        self.began_with_multipliers = False

    @cached_property
    def rng(self) -> np.random.Generator:
        """The random generator, made when it is first used."""
        return check_seed("seed", self._seed)

    @cached_property
    def target(self) -> Target:
        """The required accuracy, relative to ``problem.gap_scale`` or to a share of a typical value."""
        tol, given = self.options.tol, self.problem.gap_scale
        at_start = self.counted, self._start, tol, self.certificate_counts
        return Target(tol, partial(_negligible_value, *at_start) if given is None else given)

    @cached_property
    def unit(self) -> float:
        """A typical length of ``x``: the scale of first steps."""
        with self.observe():
            return self.problem.typical_size(self._start)

    @property
    def multipliers0(self) -> Image | None:
        self.began_with_multipliers = True
        return self._multipliers0

    @property
    def warm(self) -> bool:
        return self._multipliers0 is not None

    @property
    def objective(self) -> Objective:
        return self.counted.objective

    @property
    def constraint(self) -> Constraint:
        return self.counted.constraint

    def penalised(self, penalty: Penalty, like: Array, *, followed: bool = False) -> Penalised:
        constraint = self.followed if followed else self.constraint
        return Penalised(self.objective, constraint, penalty, like, self.unit)

    @cached_property
    def followed(self) -> Constraint:
        cheaper = self.problem.constraint.followed()
        return self.constraint if cheaper is self.problem.constraint else CountedConstraint(cheaper)

    def minimize(self, inner: Stepper[F], F: F, x: Array, steps: int) -> Any:
        return self.advance(inner, F, inner.init(F, x, self.rng), steps)

    def advance(self, inner: Stepper[F], F: F, state: Any, steps: int) -> Any:
        allowed = min(steps, self._steps_left)
        done = 0
        try:
            while done < allowed and not self._interrupted(done):
                state = inner.step(F, state)
                done += 1
        except KeyboardInterrupt:
            self.ended = Status.INTERRUPTED
        except OutOfTime:
            self._interrupted(done)
        self.iterations += done
        self.cut_short = done < steps
        self._reached = lambda: inner.output(state)
        self._check_iterations()
        return state

    def tick(self) -> bool:
        self.iterations += 1
        self._check_iterations()
        return not (self._interrupted(0) or self.spent)

    @property
    def _steps_left(self) -> float:
        if self.spent:
            return 0  # without a projection their result could not be used
        limit = self.options.max_iter
        return math.inf if limit is None else limit - self.iterations

    def _check_iterations(self) -> None:
        limit = self.options.max_iter
        if limit is not None and self.iterations >= limit:
            self.ended = self.ended or Status.MAX_ITER

    def _interrupted(self, done: int) -> bool:
        """Whether the run should end: by the clock, the user or a budget."""
        if self.progress is not None:
            self.progress.tick(self.iterations + done, self.counts)
        if self.deadline.passed:
            self.ended = self.ended or self.why_late
        return self.ended is not None

    @property
    def why_late(self) -> Status:
        """The status of a run whose deadline has passed."""
        return Status.INTERRUPTED if self.deadline.stopped_by_user else Status.TIME_LIMIT

    def project(self, x: Array) -> Array:
        if not isfinite(x):
            raise NonFiniteError("the method left the finite numbers")
        if self.spent:
            raise Spent
        count("projections")
        with self.deadline.wrapping_up():
            projected = self.projected = self.problem.constraint.project(x)
        self._reached = lambda: projected
        return projected

    @property
    def reached(self) -> Array:
        """The current point: the output of the last inner run, or the last projected point."""
        return self._reached()

    @property
    def spent(self) -> bool:
        """Whether the budget of projections is used up."""
        limit = self.options.max_projections
        return limit is not None and self.counts.projections >= limit

    def hand_over(self, method: Method) -> None:
        self.methods.append(repr(method))

    def observe(self) -> AbstractContextManager[Any]:
        return counting(self.certificate_counts)

    @property
    def products(self) -> int:
        """Products with matrices and operators and their adjoints so far, certificates included."""
        own, other = self.counts, self.certificate_counts
        return own.matvecs + own.rmatvecs + other.matvecs + other.rmatvecs

    @property
    def exhausted(self) -> bool:
        return self.ended is not None

    @property
    def seconds(self) -> float:
        """Wall time since the start of the call."""
        return self.deadline.elapsed


def _negligible_value(problem: Problem, start: Array, tol: float, counts: Counts) -> float:
    """Return the value below which others count as zero in relative gaps; f is evaluated at the start."""
    with counting(counts):
        typical = problem.typical_value(start)
    return negligible_share(tol) * typical if math.isfinite(typical) else 0.0
