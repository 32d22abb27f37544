"""Scheduled restarts over a logarithmic grid (Roulet and d'Aspremont)."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

from lopro.core.arrays import Array
from lopro.core.validation import check_count, check_fields, check_offers
from lopro.methods.paper.epochs import Epoch, Plan
from lopro.methods.paper.restarts.subproblem_solvers import (
    Solver,
    SubgradientSolver,
    initial_setting,
)
from lopro.methods.setting import GivenConstants, Setting
from lopro.methods.theory import ProblemConstants
from lopro.protocol import Workbench

__all__ = ["LogScaleGrid"]

#: Largest number of epochs of a cell: a gap of 2^-50 relative to the first is four units of rounding.
HALVINGS = 50


@dataclass(frozen=True)
class _Place:
    """State of the schedule: the number of an epoch of one cell."""

    setting: Setting
    eps0: float
    cell: int = 0
    epoch: int = 1


@dataclass(frozen=True)
class LogScaleGrid(GivenConstants):
    """Restart with epochs of ``C 2^(a (k-1))`` steps, for every ``C`` and ``a`` of a logarithmic grid.

    Problem: as for the solver, with a local error bound ``dist(x, Omega_*) <= sigma (f(x) - f_*)^theta``
    of unknown constants. The accuracy halves from epoch to epoch. Theorem: where
    ``C >= 4 sigma^2 Gbar^2 / eps0^(2 (1-theta))`` and ``a >= 2 (1-theta)`` (for the accelerated solver
    see `cell_for`), epoch k ends with ``f(x_k) - f_* <= eps0 / 2^k``. One cell of the grid is within a
    factor of two of the best such ``C``, and the grid has ``O(log^2)`` cells: the cost of unknown constants.
    Projections: one per epoch, `projections` in all.

    Parameters
    ----------
    solver : Solver
        `SubgradientSolver` for `lopro.LoPGD`, `AcceleratedSolver` for `lopro.LoPNAG`.
    budget : int
        Limit of the iterations of each cell.
    eps0 : float, optional
        A bound on the gap of the start; by default from the problem.
    constants : ProblemConstants, optional
        Constants of the problem (not of the error bound); by default those that it provides.
    radius : float, optional
        Bound on the distance from the start to a solution. By default from the problem.

    References
    ----------
    V. Roulet, A. d'Aspremont, "Sharpness, restart, and acceleration", SIAM Journal on Optimization 30
    (2020).

    Departures
    ----------
    The authors restart an accelerated method on one smooth function; here every epoch also halves the
    smoothing or the step size, as in Theorems 2 and 3 of the paper, so that it applies to nonsmooth
    penalties. Growth is therefore relative to halved accuracies, and exponents ``a`` beyond 2 are not needed.
    Cells start from the same point, one after the other, as in their analysis.

    Examples
    --------
    >>> import numpy as np, lopro
    >>> from lopro.methods.paper.restarts import LogScaleGrid
    >>> half = lopro.constraints.Polyhedron(np.array([[-2.0, -1.0]]), np.array([-1.0]))
    >>> problem = lopro.Problem(lopro.objectives.L1Norm(), half)
    >>> grid = LogScaleGrid(budget=500)
    >>> result = lopro.solve(problem, np.array([0.0, 1.0]), lopro.LoPGD(grid), tol=0)
    >>> round(result.fun, 2), result.counts.projections == grid.projections
    (0.5, True)
    """

    solver: Solver = SubgradientSolver()
    budget: int = 4096
    eps0: float | None = None
    constants: ProblemConstants | None = None
    radius: float | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        check_offers("solver", self.solver, "tuned", "steps")
        check_count("budget", self.budget, minimum=2)
        check_fields(self, positive=("eps0",))

    @property
    def cells(self) -> tuple[tuple[int, float], ...]:
        """All pairs ``(C, a)``: powers of two up to the budget, and ``0, 2, 1, 1/2, ...``."""
        most = int(math.log2(self.budget))
        # With a smaller exponent epochs grow by less than a factor of two within log2(budget) epochs.
        finest = math.ceil(math.log2(max(2, most)))
        exponents = (0.0, *(2.0 ** (1 - j) for j in range(finest + 1)))
        return tuple((2**i, a) for i in range(1, most + 1) for a in exponents)

    def lengths(self, cell: tuple[int, float]) -> tuple[int, ...]:
        """Return the steps of each epoch of a cell: as many epochs as fit the budget, at least one.

        Examples
        --------
        >>> from lopro.methods.paper.restarts import LogScaleGrid
        >>> LogScaleGrid(budget=30).lengths((2, 1.0))
        (2, 4, 8, 16)
        """
        C, a = cell
        lengths: list[int] = []
        while len(lengths) < HALVINGS:
            following = math.ceil(C * 2.0 ** (a * len(lengths)))
            if lengths and sum(lengths) + following > self.budget:
                break
            lengths.append(following)
        return tuple(lengths)

    @property
    def projections(self) -> int:
        """The number of epochs, hence of projections, of all cells."""
        return sum(len(self.lengths(cell)) for cell in self.cells)

    def init(self, bench: Workbench, x: Array) -> tuple[Plan | None, _Place | None]:
        """Return the first epoch of the first cell."""
        found = initial_setting(bench, x, self.needs, self.eps0)
        if found is None:
            return None, None
        place = _Place(*found)
        return self._plan(place, place.setting.start), place

    def next(
        self, bench: Workbench, state: _Place | None, epoch: Epoch
    ) -> tuple[Plan | None, _Place | None]:
        """Return the next epoch of the cell, or the first of the next cell."""
        assert state is not None
        if state.epoch < len(self.lengths(self.cells[state.cell])):
            place = replace(state, epoch=state.epoch + 1)
            return self._plan(place, epoch.x), place
        if state.cell + 1 == len(self.cells):
            return None, state
        place = replace(state, cell=state.cell + 1, epoch=1)
        return self._plan(place, place.setting.start), place

    def _plan(self, place: _Place, start: Array) -> Plan:
        """Return the plan of an epoch of its cell."""
        k = place.epoch
        penalty, inner = self.solver.tuned(place.setting, self.accuracy(place.eps0, k))
        return Plan(penalty, inner, self.lengths(self.cells[place.cell])[k - 1], start)

    def accuracy(self, eps0: float, k: int) -> float:
        """Return the accuracy of epoch ``k`` of a cell."""
        return eps0 / 2.0**k

    def cell_for(self, s: Setting, eps0: float, sigma: float, theta: float) -> tuple[int, float]:
        """Return the smallest cell that the theorem covers for a known error bound.

        Its first epoch is long enough, and its epochs grow at least as fast as required.
        """
        first = self.solver.steps(s, sigma * eps0**theta, 0.5 * eps0)
        later = self.solver.steps(s, sigma * (0.25 * eps0) ** theta, 0.125 * eps0)
        growth = max(0.0, 0.5 * math.log2(later / first) - 1e-9)
        fits = [(C, a) for C, a in self.cells if first <= C and growth <= a]
        if not fits:
            raise ValueError(f"no cell of the grid allows {first} steps: raise the budget")
        return min(fits)
