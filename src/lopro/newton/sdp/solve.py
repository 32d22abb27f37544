"""Solve a semidefinite program and prove the answer.

In ``python -m benchmarks.constants newton.sdp`` a tenth of `_STEPS`, or ten times `_MOMENT`, moves one of
twelve problems to Clarabel. The other constants decide about larger problems and about runs that stall; a
tenth and ten times as much change nothing there.
"""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np

from lopro.certificates.certificate import Outcome, Status
from lopro.core.deadline import EIGH, Deadline
from lopro.core.validation import check_number
from lopro.engines import EngineUnavailable, solve_cones
from lopro.linalg.dense import SingularSystem, norm
from lopro.newton.sdp.dual_form import dual_form, primal_blocks
from lopro.newton.sdp.multipliers import DualIterate, iterate
from lopro.newton.sdp.program import ScaledProgram, SemidefiniteBlock, SemidefiniteProgram
from lopro.newton.sdp.search import SemidefiniteSearch

__all__ = ["cliques", "order_of_engines", "solve", "work_of_a_step"]

#: Attempts with Clarabel: whether the program is scaled beforehand, as Clarabel scales it, too, and the
#: required accuracy. If that cannot be reached, the answer may be worse than with a lower accuracy.
_ATTEMPTS = (False, 1e-8), (True, 1e-8), (True, 1e-10)
#: Outer steps after which rays are checked and a proof is attempted, whatever its estimate.
_CHECKS = frozenset(int(8 * 1.4**k) for k in range(40))
#: Number of outer steps without smaller residuals after which a run has stalled.
_WAITING = 300
#: Approximate number of eigendecompositions of Newton's method.
_NEWTON = 60.0
#: Approximate number of steps of an interior-point method; each factors a dense block of triangle size.
_STEPS = 15.0
#: Number of operations, hundredths of a second, up to which the more robust engine runs first.
_MOMENT = 1e9
#: Cliques are determined for slacks with at most this share of nonzero entries.
_SPARSE = 0.2


def solve(
    program: SemidefiniteProgram,
    tol: float = 1e-6,
    seconds: float | None = None,
    scale: float = 1.0,
    engines: tuple[str, ...] | None = None,
    terms: bool = False,
) -> Outcome:
    """Minimise ``<C, X>`` over ``A X = b``, X positive semidefinite, and prove the answer.

    Parameters
    ----------
    program : SemidefiniteProgram
        The program.
    tol : float
        The gap to prove, relative to ``max(|<C, X>|, scale)``.
    seconds : float, optional
        Time limit.
    scale : float
        The least value that the gap is relative to.
    engines : tuple of "newton" and "clarabel", optional
        The solvers in the order in which they run, by default chosen by the sizes. All answers are proved.
    terms : bool
        Whether the gap is relative to the sum of the absolute terms of ``<C, X>`` instead of its value.

    Examples
    --------
    The least eigenvalue of a matrix:

    >>> import numpy as np
    >>> from lopro.newton.sdp import SemidefiniteProgram, solve
    >>> program = SemidefiniteProgram.dense(np.array([[2.0, 1.0], [1.0, 2.0]]), [np.eye(2)], [1.0])
    >>> found = solve(program)
    >>> found.status.name, round(found.fun, 5), round(found.lower_bound, 5)
    ('CONVERGED', 1.0, 1.0)
    """
    tol = check_number("tol", tol, minimum=0.0, exclusive=True)
    scale = check_number("scale", scale, minimum=0.0)
    deadline = Deadline(seconds)
    work = EIGH * sum(p.size**3 for p in program.blocks if not p.diagonal)

    def stopped() -> bool:
        return deadline.passed or not deadline.affords(work)

    with deadline.active():
        search = SemidefiniteSearch(program, tol, scale, stopped, terms)
        newton = _NewtonRun(search)
        for engine, limit in _order(engines, search):
            search.engine = engine
            if engine == "newton":
                newton.run(limit)
            else:
                _by_clarabel(search, deadline)
            if search.ended is not None or search.converged or stopped():
                break
    late = Status.STOPPED if stopped() else Status.STALLED
    found = search.outcome(Status.CONVERGED if search.converged else late)
    return replace(found, steps=newton.decompositions)


def _order(
    engines: tuple[str, ...] | None, search: SemidefiniteSearch
) -> tuple[tuple[str, float], ...]:
    if engines is None:
        return order_of_engines(search.normalised.program)
    unknown = [name for name in engines if name not in ("newton", "clarabel")]
    if unknown:
        raise ValueError(f"engines must be of 'newton' and 'clarabel', got {unknown[0]!r}")
    return tuple((name, math.inf) for name in engines)


def _by_clarabel(search: SemidefiniteSearch, deadline: Deadline) -> None:
    """Solve by Clarabel; repeat with a looser accuracy or a margin if the bound of its answer is too weak."""
    for scaled, accuracy in _ATTEMPTS:
        in_units = ScaledProgram.of if scaled else ScaledProgram.plain
        search.units = in_units(search.face.program)
        search.margin = 0.0
        while True:
            try:
                answer = solve_cones(
                    dual_form(search.program),
                    accuracy,
                    max(deadline.left, 1e-3),
                    scaled=False,
                    threads=1,
                )
            except EngineUnavailable:  # Newton's method remains
                return
            if not answer.finite or search.stopped():
                return
            X, y = primal_blocks(search.program, answer.rows), answer.x
            no_solution = answer.status.empty or answer.status.unbounded
            if no_solution and search.check_rays(X, y):
                return
            if search.evaluate(X, y):
                return
            if not search.widen():
                break


class _NewtonRun:
    """The method of multipliers, continued with a margin if only the bound is too weak."""

    def __init__(self, search: SemidefiniteSearch) -> None:
        self.search = search
        self.last: DualIterate | None = None
        self.decompositions = 0
        self.waited = 0
        self.least = math.inf

    def run(self, limit: float) -> None:
        """Iterate until the search ends or ``limit`` eigendecompositions are made."""
        self.search.units = self.search.normalised
        self.search.margin, self.least = 0.0, math.inf
        self.waited = 0
        try:
            while self._continued(limit):
                pass
        except SingularSystem:
            return

    def _continued(self, limit: float) -> bool:
        """Iterate; return whether to continue with a wider margin."""
        search, start, before = self.search, None, self.decompositions
        if self.last is not None:
            start = self.last.point.X, self.last.point.y, self.last.centre.sigma
        for k, state in enumerate(iterate(search.program, search.stopped, start), 1):
            self.last, self.decompositions = state, before + state.decompositions
            X, y = state.point.X, state.point.y
            if search.promising(X, y, state.dual):
                if search.evaluate(X, y):
                    return False
                if search.widen():
                    return True
            # Where rows are badly scaled, a proof can succeed although the floating-point gap is too large.
            if k in _CHECKS and (search.check_rays(X, y) or search.evaluate(X, y)):
                return False
            if self._stalled(state):
                search.check_rays(X, y)
                return False
            if self.decompositions >= limit:
                return False
        if self.last is not None:
            search.evaluate(self.last.point.X, self.last.point.y)
        return False

    def _stalled(self, state: DualIterate) -> bool:
        """Return whether the residuals are rounding, or have not decreased for `_WAITING` steps."""
        residual = max(state.primal, state.dual)
        self.waited += 1
        if residual < 0.9 * self.least:
            self.least, self.waited = residual, 0
        rounded = residual <= 1e-13 * (1.0 + norm(state.point.y))
        return rounded or self.waited >= _WAITING


def order_of_engines(program: SemidefiniteProgram) -> tuple[tuple[str, float], ...]:
    """Return the engines in the order in which to try them, each with its limit of eigendecompositions.

    Interior-point methods take few steps for any condition number, but each costs the cube of the number of
    entries of a block: they suit small blocks, and slacks so sparse that they decompose into cliques.

    Examples
    --------
    >>> import numpy as np
    >>> from lopro.newton.sdp import SemidefiniteProgram
    >>> from lopro.newton.sdp.solve import order_of_engines
    >>> order_of_engines(SemidefiniteProgram.dense(np.eye(3), [np.eye(3)], [1.0]))
    (('clarabel', inf), ('newton', inf))
    """
    matrices = [block for block in program.blocks if not block.diagonal]
    interior, cubes = _STEPS * work_of_a_step(program), sum(float(p.size) ** 3 for p in matrices)
    if interior <= max(_MOMENT, _NEWTON * EIGH * cubes):
        return ("clarabel", math.inf), ("newton", math.inf)
    # Newton's method runs for as long as the other engine would take.
    return ("newton", interior / (EIGH * cubes)), ("clarabel", math.inf), ("newton", math.inf)


def work_of_a_step(program: SemidefiniteProgram) -> float:
    """Return the approximate number of operations of an interior-point step for the dual form."""
    sizes = [size for block in program.blocks if not block.diagonal for size in cliques(block)]
    return sum((0.5 * size * (size + 1)) ** 3 / 3.0 for size in sizes)


def cliques(block: SemidefiniteBlock) -> list[int]:
    """Return the sizes of the cliques in an elimination of the sparse slack of a block by minimum degree.

    A pattern that is not sparse is a single clique.
    """
    n = block.size
    if np.count_nonzero(block.C) > _SPARSE * n * n:
        return [n]
    places = np.unique(np.concatenate([block.A.indices, np.flatnonzero(block.C.ravel())]))
    i, j = places // n, places % n
    if len(places) > _SPARSE * n * n:
        return [n]
    neighbours: list[set[int]] = [set() for _ in range(n)]
    for a, b in zip(i[i > j].tolist(), j[i > j].tolist(), strict=True):
        neighbours[a].add(b)
        neighbours[b].add(a)
    left, sizes = set(range(n)), []
    while left:
        least = min(left, key=lambda v: len(neighbours[v]))
        around = neighbours[least]
        sizes.append(len(around) + 1)
        if len(around) + 1 == len(left):
            break
        left.discard(least)
        for v in around:
            neighbours[v] |= around
            neighbours[v] -= {v, least}
    return sizes
