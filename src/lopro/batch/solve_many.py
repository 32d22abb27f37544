"""`solve_many`: solve problems of one shape together and the others one by one."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from lopro.batch.programs import QuadraticPrograms
from lopro.batch.results import Batch, Results
from lopro.batch.solve import solve_batch
from lopro.batch.stacking import grouped, like_of, slices, stacked
from lopro.certificates.batched_programs import Programs
from lopro.core.arrays import Array
from lopro.core.deadline import Deadline
from lopro.driver.result import Iterate, Result, Status
from lopro.driver.run import Run
from lopro.driver.stopping import Rule
from lopro.driver.workbench import Callback, Options
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
    """Solve many problems, those of one shape together on the device of their data.

    Least-squares, quadratic and linear objectives over rows, boxes and equations with dense data are
    solved in batches by one interior-point method with one batched factorisation per step; each problem
    has its own certificate. Problems of other kinds, and those that the batch could not prove, are solved
    by `lopro.solve` one by one, and so are all problems with a ``method``, a ``callback``, a ``stop`` or
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
        A sequence of `lopro.Result` in the order of the problems. The status of problems that are not solved
        when the time limit is reached, or at Ctrl-C, is TIME_LIMIT or INTERRUPTED.

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
    batched = tol > 0.0 and not any((method, max_projections, stop, callback))
    deadline = Deadline(options.time_limit)
    with deadline.active():
        if isinstance(problems, QuadraticPrograms):
            problem_at: Callable[[int], Problem] = problems.problem_at
            batches = _of_stacks(problems, options, deadline)
        else:
            _check(problems)
            problem_at = problems.__getitem__
            batches = _of_list(problems, options, deadline)
        results = Results(len(problems))
        for places, batch in batches if batched else ():
            # Problems without a proof go to `lopro.solve`, unless a limit has ended them.
            ended = batch.otherwise is not Status.STALLED or deadline.passed
            results.add(places, batch, ended)
        for place in results.missing():
            results.put(place, _solve_one(problem_at(place), method, options, deadline))
        return results


def _check(problems: Any) -> None:
    if isinstance(problems, Problem):
        raise TypeError("problems must be a sequence of problems; for one problem call lopro.solve")
    for k, problem in enumerate(problems):
        if not isinstance(problem, Problem):
            raise TypeError(f"problems[{k}] must be a lopro.Problem, got {problem!r}")


def _solve_one(
    problem: Problem, method: Method | None, options: Options, deadline: Deadline
) -> Result:
    """Solve one problem; after the deadline nothing is computed."""
    options = options.within_call()
    if not deadline.passed:
        return run_to_the_end(problem, None, method, options)
    run = Run(problem, method or Auto(), None, options)
    run.give_up()
    return run.result()


def _of_stacks(
    programs: QuadraticPrograms, options: Options, deadline: Deadline
) -> Iterator[tuple[Sequence[int], Batch]]:
    """Yield batches of stacked programs, each with the places of its problems."""
    count, n = programs.q.shape
    m = 0 if programs.A is None else programs.A.shape[1]
    boxed = not (programs.least is None and programs.most is None)

    def split(rows: Array, box: Array) -> tuple[Array, ...]:
        return (*((rows,) if m else ()), *((box,) if boxed else ()))

    for part in slices(count, n, m, programs.q):
        batch = _solve(programs.subset(part), programs.q, options, deadline, split)
        yield range(part.start, part.stop), batch


def _of_list(
    problems: Sequence[Problem], options: Options, deadline: Deadline
) -> Iterator[tuple[Sequence[int], Batch]]:
    """Yield batches of problems of one shape, each with their places."""
    for places in grouped(problems)[0]:
        group = [problems[place] for place in places]
        first = group[0]
        sizes = [None if t.map is None else t.map.shape[0] for t in first.constraint.terms]

        def split(
            rows: Array, box: Array, sizes: Sequence[int | None] = sizes
        ) -> tuple[Array, ...]:
            found, start = [], 0
            for size in sizes:
                found.append(box if size is None else rows[start : start + size])
                start += size or 0
            return tuple(found)

        yield places, _solve(stacked(group), like_of(first.terms), options, deadline, split)


def _solve(
    programs: Programs,
    like: Array,
    options: Options,
    deadline: Deadline,
    split: Callable[[Array, Array], tuple[Array, ...]],
) -> Batch:
    begin = deadline.elapsed
    answers = solve_batch(programs, like, options.tol, deadline, options.max_iter)
    otherwise = Status.STALLED if options.max_iter is None else Status.MAX_ITER
    if deadline.passed:
        otherwise = Status.INTERRUPTED if deadline.stopped_by_user else Status.TIME_LIMIT
    return Batch(answers, options.tol, otherwise, deadline.elapsed - begin, like, split)
