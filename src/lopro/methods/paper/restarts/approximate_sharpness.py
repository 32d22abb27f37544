"""Restarts under approximate sharpness: a search over its constants (Adcock, Colbrook, Neyra-Nesterenko)."""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace

from lopro.core.arrays import Array
from lopro.core.validation import check_fields, check_offers
from lopro.methods.paper.epochs import Epoch, Plan
from lopro.methods.paper.restarts.subproblem_solvers import (
    Solver,
    SubgradientSolver,
    initial_setting,
    target_gap,
)
from lopro.methods.setting import GivenConstants, Setting
from lopro.methods.theory import ProblemConstants
from lopro.protocol import Workbench

__all__ = ["ApproximateSharpness", "SharpnessCell"]


@dataclass(frozen=True, order=True)
class SharpnessCell:
    """A pair of constants: ``alpha = alpha_0 4^i`` and ``beta = 2^j``.

    Examples
    --------
    >>> from lopro.methods.paper.restarts.approximate_sharpness import SharpnessCell
    >>> SharpnessCell(0, 1).distance(0.25, scale=1.0)
    0.5
    """

    i: int
    j: int

    @property
    def beta(self) -> float:
        """The exponent."""
        return 2.0**self.j

    @property
    def weight(self) -> float:
        """The factor on its cost in the search, 1 for the central cell; the sum of 1 / weight is finite."""
        return float((abs(self.i) + 1) ** 2 * (self.j + 1) ** 2)

    def alpha(self, scale: float) -> float:
        """Return the factor."""
        return scale * math.pow(4.0, self.i)

    def distance(self, gap: float, scale: float) -> float:
        """Return a bound on the distance of a point with this gap to a solution, for these constants.

        The exponent may be anything from ``beta / 2`` (but at least 1) to ``beta``.
        """
        ratio = gap / self.alpha(scale)
        return math.pow(ratio, 1.0 / self.beta if ratio <= 1.0 else min(2.0 / self.beta, 1.0))


@dataclass(frozen=True)
class SharpnessSearch:
    """State of the search: the best point, and for each cell its number of restarts and their cost."""

    setting: Setting
    eps0: float
    target: float
    start: Array
    best: float
    #: The cell of the current restart.
    cell: SharpnessCell | None = None
    restarts: dict[SharpnessCell, int] = field(default_factory=dict)
    cost: dict[SharpnessCell, int] = field(default_factory=dict)

    @property
    def total(self) -> int:
        """The cost of all restarts so far."""
        return sum(self.cost.values())

    def after(self, cell: SharpnessCell, cost: int) -> SharpnessSearch:
        """Return the state after one more restart of this cell."""
        restarts = {**self.restarts, cell: self.restarts.get(cell, 0) + 1}
        costs = {**self.cost, cell: self.cost.get(cell, 0) + cost}
        return replace(self, cell=cell, restarts=restarts, cost=costs)


@dataclass(frozen=True)
class ApproximateSharpness(GivenConstants):
    """Restart as if ``dist(x, Omega_*) <= ((f(x) - f_* + eta) / alpha)^(1/beta)``, for many alpha and beta.

    Problem: as for the solver, with a sharpness of unknown ``alpha > 0``, ``beta >= 1`` and ``eta >= 0``
    (``theta = 1 / beta`` and ``sigma = alpha^(-1/beta)`` where ``eta = 0``). Each pair
    ``alpha_i = 4^i eps0 / D``, ``beta_j = 2^j`` (a cell) counts its restarts. After ``U`` of them the next
    one starts from the best point of all cells, assumes that its gap is ``2^-U eps0``, and runs the ``n``
    steps after which the solver halves it. The cell with the least ``(|i| + 1)^2 (j + 1)^2 (spent + n)`` is
    next.

    Theorem: for a cell with ``alpha_i <= alpha`` and ``beta_j / 2 < beta <= beta_j``, the best point has
    ``f - f_* <= max(eta, 2^-U eps0)`` after its U restarts, independent of the other cells. All others
    together cost a constant factor, so the rate is that of known constants. One projection per restart.

    Parameters
    ----------
    solver : Solver
        `SubgradientSolver` for `lopro.LoPGD`, `AcceleratedSolver` for `lopro.LoPNAG`.
    restarts : int
        Limit of the restarts of all cells; fewer if every cell has reached the target or costs more than the
        rest of the budget.
    budget : int
        Limit of the iterations of all restarts.
    reach : int
        The cells have alpha from ``4^-reach`` to ``4^reach`` times ``eps0 / D`` and beta up to
        ``2^(reach / 2)``.
    target : float, optional
        A cell ends when its assumed gap is below this; by default the gap requested from `lopro.solve`, or
        1e-6 relative if that is 0.
    eps0, constants, radius
        As in `LogScaleGrid`.

    References
    ----------
    B. Adcock, M. J. Colbrook, M. Neyra-Nesterenko, "Restarts subject to approximate sharpness: a
    parameter-free and optimal scheme for first-order methods", Foundations of Computational Mathematics
    (2024).

    Departures
    ----------
    The authors' measure of infeasibility is replaced by the projection: restarts begin at feasible points.
    Their search over an infinite grid is limited by ``reach``, and cells end at the target; otherwise those
    whose restarts cost one step each would use up the projections. Every restart halves the assumed gap.

    Examples
    --------
    >>> import numpy as np, lopro
    >>> from lopro.methods.paper.restarts import ApproximateSharpness
    >>> half = lopro.constraints.Polyhedron(np.array([[-2.0, -1.0]]), np.array([-1.0]))
    >>> problem = lopro.Problem(lopro.objectives.L1Norm(), half)
    >>> scheme = lopro.LoPGD(ApproximateSharpness(restarts=200))
    >>> result = lopro.solve(problem, np.array([0.0, 1.0]), scheme, tol=0)
    >>> round(result.fun, 2), result.counts.projections
    (0.5, 200)
    """

    solver: Solver = SubgradientSolver()
    restarts: int = 500
    budget: int = 100_000
    reach: int = 6
    target: float | None = None
    eps0: float | None = None
    constants: ProblemConstants | None = None
    radius: float | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        check_offers("solver", self.solver, "tuned", "steps")
        check_fields(self, counts=("restarts", "budget", "reach"), positive=("target", "eps0"))

    @property
    def cells(self) -> tuple[SharpnessCell, ...]:
        """All cells."""
        i, j = range(-self.reach, self.reach + 1), range(self.reach // 2 + 1)
        return tuple(SharpnessCell(a, b) for a in i for b in j)

    def init(self, bench: Workbench, x: Array) -> tuple[Plan | None, SharpnessSearch | None]:
        """Return the first restart."""
        found = initial_setting(bench, x, self.needs, self.eps0)
        if found is None:
            return None, None
        s, eps0 = found
        with bench.observe():
            value = float(bench.objective.value(s.start))
        target = target_gap(bench, s.start, self.target)
        return self._restart(SharpnessSearch(s, eps0, target, s.start, value))

    def next(
        self, bench: Workbench, state: SharpnessSearch | None, epoch: Epoch
    ) -> tuple[Plan | None, SharpnessSearch | None]:
        """Return the restart of least weighted cost, from the best point of all cells."""
        assert state is not None
        if sum(state.restarts.values()) == self.restarts:
            return None, state
        if epoch.verdict.fun < state.best:
            state = replace(state, start=epoch.x, best=epoch.verdict.fun)
        return self._restart(state)

    def _restart(self, search: SharpnessSearch) -> tuple[Plan | None, SharpnessSearch]:
        """Return the plan of the next cell; None if all have ended or the next one exceeds the budget."""
        cells = [cell for cell in self.cells if self.gap(search, cell) > search.target]
        if not cells:
            return None, search

        def weighted_cost(cell: SharpnessCell) -> float:
            return cell.weight * (search.cost.get(cell, 0) + self.cost(search, cell))

        cell = min(cells, key=lambda cell: (weighted_cost(cell), cell))
        steps = self.cost(search, cell)
        if search.total + steps > self.budget:
            return None, search
        penalty, inner = self.solver.tuned(search.setting, 0.5 * self.gap(search, cell))
        return Plan(penalty, inner, steps, search.start), search.after(cell, steps)

    def gap(self, search: SharpnessSearch, cell: SharpnessCell) -> float:
        """Return the gap of the best point that a cell assumes."""
        return search.eps0 / 2.0 ** search.restarts.get(cell, 0)

    def cost(self, search: SharpnessSearch, cell: SharpnessCell) -> int:
        """Return the steps of the next restart of a cell."""
        s, gap = search.setting, self.gap(search, cell)
        # The perturbation eta may add as much as the gap itself.
        delta = cell.distance(2.0 * gap, self.scale(s, search.eps0))
        # The ball bounds the distance to a solution.
        return self.solver.steps(s, min(delta, 2.0 * s.ball.radius), 0.5 * gap)

    def scale(self, s: Setting, eps0: float) -> float:
        """Return ``alpha_0``: the ratio of the first gap to the radius of the ball."""
        return eps0 / s.ball.radius
