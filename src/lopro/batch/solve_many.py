"""`solve_many`: problems of one shape are solved together, the others one by one."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from lopro.batch.programs import QuadraticPrograms, taken
from lopro.batch.results import Batch, Results
from lopro.batch.solve import solve_batch
from lopro.batch.stacking import Group, grouped, posed, slices, stacked
from lopro.core.arrays import Array
from lopro.core.deadline import Deadline
from lopro.driver.options import Callback, Options
from lopro.driver.result import Iterate, Result, Status
from lopro.driver.run import Run
from lopro.driver.stopping import Rule
from lopro.functions.atoms import Interval
from lopro.methods.auto import Auto
from lopro.problem import Problem
from lopro.protocol import Method
from lopro.solving import run_to_the_end

__all__ = ["solve_many"]


def solve_many(
    problems: Sequence[Problem] | QuadraticPrograms,
    method: Method | None = None,
    *,
    tol: float = 1e-6,
    max_iter: int | None = None,
    max_projections: int | None = None,
    time_limit: float | None = None,
    stop: Rule | Callable[[Iterate], bool] | None = None,
    callback: Callback | None = None,
    seed: int | np.random.Generator | None = None,
) -> Results:
    """Solve many problems; those of one shape together, where their data are.

    Least-squares, quadratic and linear objectives over rows, boxes and equations with dense data are
    solved in batches by one interior-point method with one batched factorisation a step; each problem has
    its own certificate. Problems of other kinds, and those that the batch could not prove, go through
    `lopro.solve` one by one, as do all of them with a ``method``, a ``callback``, a ``stop`` or
    ``max_projections``.

    Parameters
    ----------
    problems : sequence of Problem, or QuadraticPrograms
        Problems of any shapes, which are sorted into groups; or stacked arrays.
    method, tol, max_iter, max_projections, time_limit, stop, callback, seed
        As in `lopro.solve`. The time limit is that of the whole call, ``max_iter`` that of each problem.

    Returns
    -------
    Results
        A sequence of `lopro.Result` in the order of the problems. After the time limit or Ctrl-C, problems
        that are not solved say so in their status.

    Examples
    --------
    >>> import numpy as np, lopro
    >>> rng = np.random.default_rng(0)
    >>> ball = lopro.constraints.Polyhedron.box(-np.ones(4), np.ones(4))
    >>> problems = [
    ...     lopro.Problem(
    ...         lopro.objectives.LeastSquares(rng.standard_normal((6, 4)), rng.standard_normal(6)),
    ...         ball,
    ...     )
    ...     for _ in range(100)
    ... ]
    >>> results = lopro.solve_many(problems)
    >>> results
    Results(100 problems, 100 certified)
    >>> (
    ...     bool((results.gap <= 1e-6 * np.maximum(results.fun, 1e-6)).all()),
    ...     results[3].iterations < 15,
    ... )
    (True, True)
    """
    options = Options(
        tol, max_iter, max_projections, time_limit, stop, callback, progress=False, seed=seed
    )
    deadline = Deadline(options.time_limit)
    with deadline.active():
        if isinstance(problems, QuadraticPrograms):
            return _solve_stacked(problems, method, options, deadline)
        _check(problems)
        batchable = tol > 0.0 and not any((method, max_projections, stop, callback))
        groups, others = grouped(problems) if batchable else ([], list(range(len(problems))))
        entries: list[Any] = [None] * len(problems)
        for group in groups:
            batch = _solve_group(group, options, deadline)
            certified = batch.certified
            for k, place in enumerate(group.places):
                entries[place] = (batch, k)
                if not certified[k] and batch.otherwise is Status.STALLED:
                    others.append(place)
        for place in sorted(others):
            if not deadline.passed or entries[place] is None:
                entries[place] = _solve_one(problems[place], method, options, deadline)
        return Results(entries)


def _check(problems: Any) -> None:
    if isinstance(problems, Problem):
        raise TypeError("problems must be a sequence of problems; one alone is for lopro.solve")
    for k, problem in enumerate(problems):
        if not isinstance(problem, Problem):
            raise TypeError(f"problems[{k}] must be a lopro.Problem, got {problem!r}")


def _solve_one(
    problem: Problem, method: Method | None, options: Options, deadline: Deadline
) -> Result:
    """Solve a problem by itself; after the deadline nothing is tried."""
    options = options.within_call()
    if not deadline.passed:
        return run_to_the_end(problem, None, method, options)
    run = Run(problem, method or Auto(), None, options)
    run.give_up()
    return run.result()


def _solve_stacked(
    programs: QuadraticPrograms, method: Method | None, options: Options, deadline: Deadline
) -> Results:
    """Solve stacked programs; those that are not proved one by one."""
    batchable = not any((method, options.max_projections, options.stop, options.callback))
    if options.tol == 0.0 or not batchable:
        one_by_one = (posed(programs, k) for k in range(len(programs)))
        return Results([_solve_one(each, method, options, deadline) for each in one_by_one])
    entries: list[Any] = []
    failed: list[int] = []
    rows = 0 if programs.A is None else programs.A.shape[1]
    for part in slices(len(programs), programs.size, rows, programs.like):
        batch = _solve(taken(programs, part), options, deadline, _as_they_are)
        if batch.otherwise is Status.STALLED:
            failed += [len(entries) + int(k) for k in np.flatnonzero(~batch.certified)]
        entries += [(batch, k) for k in range(part.stop - part.start)]
    for place in failed:
        if not deadline.passed:
            entries[place] = _solve_one(posed(programs, place), method, options, deadline)
    return Results(entries)


def _as_they_are(rows: Array, box: Array | None) -> tuple[Array, ...]:
    """Return the multipliers of all rows, if there are any, and of the box, if there is one."""
    return (*((rows,) if rows.shape[0] else ()), *((box,) if box is not None else ()))


def _solve_group(group: Group, options: Options, deadline: Deadline) -> Batch:
    sets = [t for t in group.problems[0].constraint.terms if isinstance(t.atom, Interval)]
    sizes = [None if term.map is None else term.map.shape[0] for term in sets]

    def split(rows: Array, box: Array | None) -> tuple[Array, ...]:
        found, start, free = [], 0, box
        for size in sizes:
            if size is None:
                assert box is not None
                # Of several boxes the first carries the multipliers of all.
                found.append(box if free is not None else 0.0 * box)
                free = None
            else:
                found.append(rows[start : start + size])
                start += size
        return tuple(found)

    return _solve(stacked(group.problems), options, deadline, split)


def _solve(
    programs: QuadraticPrograms,
    options: Options,
    deadline: Deadline,
    split: Callable[[Array, Array | None], tuple[Array, ...]],
) -> Batch:
    begin = deadline.elapsed
    answers = solve_batch(programs, options.tol, deadline, options.max_iter)
    # Those that are not proved go to `lopro.solve`, unless a limit has ended them.
    otherwise = Status.STALLED if options.max_iter is None else Status.MAX_ITER
    if deadline.passed:
        otherwise = Status.INTERRUPTED if deadline.stopped_by_user else Status.TIME_LIMIT
    return Batch(answers, options.tol, otherwise, deadline.elapsed - begin, programs.like, split)
