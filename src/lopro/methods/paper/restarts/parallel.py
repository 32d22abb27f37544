"""Parallel restarts (Renegar and Grimmer): one run for each accuracy; improved points pass to finer runs."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, ClassVar

from lopro.core.arrays import Array
from lopro.core.validation import check_fields, check_offers
from lopro.methods.inner import InnerAlgorithm
from lopro.methods.paper.restarts.subproblem_solvers import (
    Solver,
    SubgradientSolver,
    initial_gap,
    target_gap,
)
from lopro.methods.setting import NeedsConstants, Setting, feasible_candidate
from lopro.methods.theory import ProblemConstants
from lopro.penalties import Hinge
from lopro.penalties.penalised import Penalised
from lopro.protocol import Candidate, Candidates, Card, PenalisedMinimum, Workbench

__all__ = ["ParallelRestarts"]


@dataclass
class Copy:
    """One of the parallel runs: its accuracy, its state, and the value at its last start."""

    eps: float
    inner: InnerAlgorithm
    F: Penalised  # the penalised objective of the solver
    state: Any
    value: float  # of the exact penalty at the last start
    inbox: tuple[Array, float] | None = None

    def restart(self, bench: Workbench, x: Array, value: float) -> None:
        """Restart from a better point."""
        self.state, self.value = self.inner.init(self.F, x, bench.rng), value


@dataclass(frozen=True)
class ParallelRestarts(NeedsConstants):
    """Interleaved runs for the accuracies ``eps/2, eps, 2 eps, 4 eps, ...`` on one exact penalty.

    Problem: as for the solver; a local error bound speeds it up and need not be known. The runs make one step
    each in turn. A run that has decreased ``F = f + lam [c]_+`` by its own accuracy since its last start
    restarts from that point and passes it to the next finer run, which restarts from it if it is an
    improvement by its own accuracy.

    Theorem: let the solver need ``K_n`` steps for the accuracy ``eps_n`` from any point with
    ``F - f_* <= 5 eps_n``. After ``sum_n (3 K_n + 1)`` steps of each run the best point has
    ``F - f_* < eps``, and so has ``f`` at its projection; for ``theta = 1`` that is ``O(log 1/eps)``
    steps for each of ``O(log 1/eps)`` runs. Projections: one for each report, after 128, 256, 512, ...
    steps; none is needed in between.

    Parameters
    ----------
    solver : Solver
        `SubgradientSolver`, or `AcceleratedSolver` for smooth c.
    reports : int
        Number of reports; the last one is made after ``first * 2^(reports - 1)`` steps of each run.
    first : int
        Steps before the first report.
    target : float, optional
        eps; by default the gap requested from `lopro.solve`, or 1e-6 relative if that is 0.
    constants, radius
        As in `LogScaleGrid`.

    References
    ----------
    J. Renegar, B. Grimmer, "A simple nearly optimal restart scheme for speeding up first-order methods",
    Foundations of Computational Mathematics 22 (2022).

    Departures
    ----------
    The bound is re-derived for the synchronous scheme, with K_n counted at the accuracies used here. The
    authors' methods project in every step; here all runs share an exact penalty, whose values are compared
    without a projection.

    Examples
    --------
    >>> import numpy as np, lopro
    >>> from lopro.methods.paper.restarts import ParallelRestarts
    >>> half = lopro.constraints.Polyhedron(np.array([[-2.0, -1.0]]), np.array([-1.0]))
    >>> problem = lopro.Problem(lopro.objectives.L1Norm(), half)
    >>> result = lopro.solve(problem, np.array([0.0, 1.0]), ParallelRestarts(), tol=1e-3)
    >>> result.success, round(result.fun, 2)
    (True, 0.5)
    """

    card: ClassVar[Card] = Card(
        assumptions="f and c convex and Lipschitz with known constants, error bound (unknown)",
        oracles="those of the solver, and values of f and c",
        rate="that of the solver with known error bound, times O(log 1/eps) for the runs",
        projections="O(log T): one per report",
        reference="Renegar, Grimmer (Found. Comput. Math. 2022)",
    )

    solver: Solver = SubgradientSolver()
    reports: int = 8
    first: int = 128
    target: float | None = None
    constants: ProblemConstants | None = None
    radius: float | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        check_offers("solver", self.solver, "tuned", "steps")
        check_fields(self, counts=("reports", "first"), positive=("target",))

    def run(self, bench: Workbench, x0: Array) -> Candidates:
        s = self.needs.find(bench, x0)
        eps0 = initial_gap(bench.counted, s)
        if s.solved or eps0 <= 0.0 or s.weight == 0.0:
            yield feasible_candidate(s.start)
            return
        exact = bench.penalised(Hinge(s.weight), s.start)
        best = s.start, exact.value(s.start)
        copies = self._copies(bench, s, eps0, best[1])
        steps = self.first
        for report in range(self.reports):
            for _ in range(steps):
                best = min(best, self._advance(bench, copies, exact), key=lambda found: found[1])
                if bench.exhausted:
                    break
            yield Candidate(bench.project(best[0]), PenalisedMinimum(exact), before=best[0])
            # The numbers of steps are first, first, 2 first, 4 first, ...: the totals double.
            steps = self.first * 2**report

    def accuracies(self, eps: float, eps0: float) -> list[float]:
        """Return the accuracies of the runs, finest first; five times the coarsest is at least ``eps0``.

        Examples
        --------
        >>> from lopro.methods.paper.restarts import ParallelRestarts
        >>> ParallelRestarts().accuracies(1.0, 10.0)
        [0.5, 1.0, 2.0]
        """
        count = 1 + max(0, math.ceil(math.log2(eps0 / (2.5 * eps))))
        return [0.5 * eps * 2.0**n for n in range(count)]

    def _copies(self, bench: Workbench, s: Setting, eps0: float, value: float) -> list[Copy]:
        eps = target_gap(bench, s.start, self.target)
        copies = []
        for accuracy in self.accuracies(eps, eps0):
            penalty, inner = self.solver.tuned(s, accuracy)
            F = bench.penalised(penalty, s.start)
            copies.append(Copy(accuracy, inner, F, inner.init(F, s.start, bench.rng), value))
        return copies

    def _advance(
        self, bench: Workbench, copies: list[Copy], exact: Penalised
    ) -> tuple[Array, float]:
        """Make a step of every run, then exchange points; return the best of the new points."""
        seen = []
        for copy, finer in zip(copies, [None, *copies[:-1]], strict=True):
            copy.state = bench.advance(copy.inner, copy.F, copy.state, 1)
            x = copy.inner.output(copy.state)
            value = exact.value(x)
            seen.append((x, value))
            if self.improved(copy, value):
                copy.restart(bench, x, value)
                if finer is not None:
                    finer.inbox = x, value
        for copy in copies:
            if copy.inbox is not None and self.improved(copy, copy.inbox[1]):
                copy.restart(bench, *copy.inbox)
            copy.inbox = None
        return min(seen, key=lambda found: found[1])

    def improved(self, copy: Copy, value: float) -> bool:
        """Whether a value is below that of the run's last start by the run's accuracy."""
        return value <= copy.value - copy.eps
