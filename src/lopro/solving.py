"""The two ways to run a method: `solve`, and `iterate` for control over each step."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import nullcontext

import numpy as np

from lopro.core.arrays import Array
from lopro.core.deadline import Deadline
from lopro.driver.progress import Progress
from lopro.driver.result import Iterate, Result
from lopro.driver.run import Run
from lopro.driver.stopping import Rule
from lopro.driver.workbench import Callback, Options
from lopro.maps import StreamedMap
from lopro.methods.auto import Auto
from lopro.problem import Problem
from lopro.protocol import Method

__all__ = ["iterate", "run_to_the_end", "solve"]


def solve(
    problem: Problem,
    x0: Array | None = None,
    method: Method | None = None,
    *,
    tol: float = 1e-6,
    max_iter: int | None = None,
    max_projections: int | None = None,
    time_limit: float | None = None,
    stop: Rule | Callable[[Iterate], bool] | None = None,
    callback: Callback | None = None,
    progress: bool = False,
    seed: int | np.random.Generator | None = None,
    multipliers0: Sequence[Array] | None = None,
    warm_start: Result | None = None,
) -> Result:
    """Minimise a convex function over a convex set, and prove a bound on the error of the answer.

    Parameters
    ----------
    problem : Problem
        Objective and constraint.
    x0 : array, optional
        Start; it need not be feasible. Zeros by default. Never modified.
    method : Method, optional
        `Auto` by default; or `LoPGD`, `LoPNAG`, `OneProjection`.
    tol : float
        Certified relative gap to stop at: ``f(x) - lower bound`` divided by the sum of the absolute terms
        of ``f(x)`` (see `Problem` for ``gap_scale``); 0 runs the whole schedule of the method.
    max_iter, max_projections : int, optional
        Budgets of inner iterations and of projections.
    time_limit : float, optional
        Seconds of wall time for the whole call.
    stop : rule or callable, optional
        A further reason to stop, from `lopro.stopping`, or a function of an `Iterate`.
    callback : callable, optional
        Called with an `Iterate` after each candidate; returning True stops the run.
    progress : bool
        Show progress on the terminal.
    seed : int or Generator, optional
        For stochastic inner algorithms.
    multipliers0 : sequence of arrays, optional
        Multipliers to begin with, for solving again after a small change: ``multipliers`` of an earlier
        result, one array for each set. Methods that cannot use them add a warning.
    warm_start : Result, optional
        An earlier result of a problem with as many variables and rows: its point and multipliers are
        the start, where ``x0`` and ``multipliers0`` are not given.

    Returns
    -------
    Result
        A point with its certificate; feasible and proved if ``success``. Ctrl-C returns the best so far.

    Examples
    --------
    >>> import numpy as np, lopro
    >>> f = lopro.objectives.L1Norm()
    >>> set_ = lopro.constraints.ResidualBall(np.array([[2.0, 1.0]]), np.array([2.0]), sigma=1.0)
    >>> result = lopro.solve(lopro.Problem(f, set_))
    >>> result.x.round(4), result.status.name
    (array([0.5, 0. ]), 'CONVERGED')
    """
    x0, multipliers0 = _begin(x0, multipliers0, warm_start)
    options = Options(
        tol, max_iter, max_projections, time_limit, stop, callback, progress, seed, multipliers0
    )
    return run_to_the_end(problem, x0, method, options)


def _begin(
    x0: Array | None, multipliers0: Sequence[Array] | None, result: Result | None
) -> tuple[Array | None, Sequence[Array] | None]:
    """Return the given start, or else that of an earlier result."""
    if result is None:
        return x0, multipliers0
    if not isinstance(result, Result):
        raise TypeError(f"warm_start must be a result of lopro.solve, got {result!r}")
    x0 = result.x if x0 is None else x0
    return x0, result.multipliers if multipliers0 is None else multipliers0


def run_to_the_end(
    problem: Problem, x0: Array | None, method: Method | None, options: Options
) -> Result:
    """Solve with a complete set of options; every entry point ends here."""
    deadline = Deadline(options.time_limit)
    with deadline.active():
        run = Run(problem, Auto() if method is None else method, x0, options, deadline)
        with _progress(problem) if options.progress else nullcontext() as shown:
            run.bench.progress = shown
            for iterate in run:
                if options.callback is not None:
                    run.call_back(options.callback, iterate)
        return run.result()


def _progress(problem: Problem) -> Progress:
    """Return the progress line, with the bytes read if a matrix is in a file or on a cluster."""
    return Progress(any(isinstance(term.map, StreamedMap) for term in problem.terms))


def iterate(
    problem: Problem,
    x0: Array | None = None,
    method: Method | None = None,
    *,
    tol: float = 1e-6,
    max_iter: int | None = None,
    max_projections: int | None = None,
    time_limit: float | None = None,
    stop: Rule | Callable[[Iterate], bool] | None = None,
    seed: int | np.random.Generator | None = None,
    multipliers0: Sequence[Array] | None = None,
    warm_start: Result | None = None,
) -> Run:
    """Return the run as an iterator over its iterates, on the code path of `solve`.

    The iteration may stop at any time; ``result()`` then returns the result so far.

    Examples
    --------
    >>> import numpy as np, lopro
    >>> f = lopro.objectives.SquaredDistance(np.array([3.0, 0.0]))
    >>> box = lopro.constraints.Polyhedron.box(-np.ones(2), np.ones(2))
    >>> run = lopro.iterate(lopro.Problem(f, box))
    >>> for state in run:
    ...     if state.gap < 0.1:
    ...         break
    >>> bool(run.result().fun < 2.1)
    True
    """
    x0, multipliers0 = _begin(x0, multipliers0, warm_start)
    options = Options(
        tol, max_iter, max_projections, time_limit, stop, seed=seed, multipliers0=multipliers0
    )
    return Run(problem, Auto() if method is None else method, x0, options)
