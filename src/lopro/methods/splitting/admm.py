"""The alternating direction method of multipliers (ADMM) on the terms of a problem."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

from lopro.certificates import feasibility_tolerance
from lopro.core.arrays import Array, norm
from lopro.driver.minorants import radius_and_ceiling
from lopro.errors import MissingCapabilityError, StalledError
from lopro.functions.term import Term
from lopro.methods.splitting.base import SplittingMethod
from lopro.methods.splitting.bound import bound_from
from lopro.methods.splitting.parts import SplitTerms
from lopro.methods.splitting.settings import SETTINGS
from lopro.methods.splitting.steps import ADMMState, advance, balanced, first_state, softened
from lopro.methods.stalling import StallCheck
from lopro.problem import Problem
from lopro.protocol import Candidate, Candidates, Card, ProvedBound, Workbench

__all__ = ["ADMM", "admm_reason", "feasible_near", "is_explicit", "is_norm_of_image"]


def admm_reason(problem: Problem, first: bool = True) -> str | None:
    """Return why ADMM should be used, among the first or after other methods; None if it should not be.

    If all matrices are explicit, the order of the methods depends on their costs.

    Examples
    --------
    >>> import numpy as np, lopro
    >>> from lopro.methods.splitting import admm_reason
    >>> noisy = np.zeros(64 * 64)
    >>> f = lopro.objectives.SquaredDistance(noisy) + lopro.objectives.TotalVariation((64, 64))
    >>> admm_reason(lopro.Problem(f))
    'norms of an image of 4096 variables: products and proxes'
    """
    if problem.shape is None or not any(is_norm_of_image(term) for term in problem.terms):
        return None
    size = math.prod(problem.shape)
    if first and size < SETTINGS.many_of_operator and not is_explicit(problem):
        return None
    try:
        SplitTerms.of(problem, problem.shape)
    except MissingCapabilityError:
        return None
    return f"norms of an image of {size} variables: products and proxes"


def is_explicit(problem: Problem) -> bool:
    """Whether the matrices of all terms are explicit."""
    return all(term.is_identity or term.D.explicit for term in problem.terms)


def is_norm_of_image(term: Term) -> bool:
    """Whether a term is a norm of an image, with too many variables for the systems of Newton's method."""
    if term.is_set or term.atom.smooth or term.is_identity:
        return False
    rows, columns = term.D.shape
    return rows < SETTINGS.samples * columns


def feasible_near(bench: Workbench, parts: SplitTerms, x: Array) -> Array:
    """Return a point near ``x``, feasible if one is found; otherwise the projection onto a single set.

    Every round projects onto the sets of the variables, and onto the half-space
    ``sum_i <e_i, D_i x - p_i> <= 0`` that separates the images ``w_i = D_i x`` from their projections
    ``p_i``, with ``e_i = w_i - p_i``.
    """
    sets = [i for i, term in enumerate(parts.split) if term.is_set]
    if not sets:
        return x
    constraint = bench.problem.constraint
    if constraint.projects_in_closed_form:
        return bench.project(x)
    allowed = 0.5 * feasibility_tolerance(x)
    for _ in range(SETTINGS.rounds):
        for i in sets:
            if parts.split[i].is_identity:
                x = parts.split[i].prox(x, 1.0)
        with bench.observe():
            if constraint.violation(x) <= allowed:
                return x
        step = _half_space_step(parts, sets, x)
        if step is None or bench.exhausted:
            break
        x = x + step
    single = len(constraint.members()) == 1
    return bench.project(x) if single and not bench.exhausted else x


def _half_space_step(parts: SplitTerms, sets: list[int], x: Array) -> Array | None:
    """Return the step to the half-space that separates the images from their projections; None inside it."""
    images = parts.images(x)
    excess = [0.0 * w for w in images]
    for i in sets:
        excess[i] = images[i] - parts.split[i].prox(images[i], 1.0)
    slope = parts.pullback(excess)
    square = norm(slope) ** 2
    total = sum(norm(e) ** 2 for e in excess)
    return None if square == 0.0 or total == 0.0 else (-total / square) * slope


@dataclass(frozen=True)
class ADMM(SplittingMethod):
    """The alternating direction method of multipliers: a linear system, and the prox of every term.

    Problem: any sum of terms ``g(D x - b)`` in which every g is quadratic or has a prox, sets included:
    norms and total variation of images, residual balls, boxes, rows, penalised or as constraints. Oracles:
    products with the maps, proxes. Linear systems are solved by conjugate gradients, so operators suffice.

    With small penalties the multipliers become nearly stationary: for a bound, some steps are made with a
    hundredth of the penalties. A least-squares step through all maps and one factor then make the multipliers
    feasible for the dual problem.

    Parameters
    ----------
    every : int
        Steps before the first certificate; each later one follows when the number of steps has grown by half.
    relaxation : float
        At least 1 and below 2. Boyd et al. (2011, section 3.4.3) cite experiments that recommend 1.5 to 1.8.
    patience : int
        Number of consecutive certificates without a smaller gap that are accepted.

    References
    ----------
    S. Boyd, N. Parikh, E. Chu, B. Peleato, J. Eckstein, "Distributed optimization and statistical learning
    via the alternating direction method of multipliers", Found. Trends Mach. Learn. 3 (2011).

    Examples
    --------
    The signal of least variation within a distance of 1 from the measurements:

    >>> import numpy as np, lopro
    >>> f = lopro.objectives.TotalVariation(4)
    >>> ball = lopro.constraints.ResidualBall(np.eye(4), np.array([0.0, 0.0, 3.0, 3.0]), 1.0)
    >>> result = lopro.solve(lopro.Problem(f, ball), method=lopro.ADMM())
    >>> result.success, result.x.round(3), round(result.fun, 4)
    (True, array([0.5, 0.5, 2.5, 2.5]), 2.0)
    """

    card: ClassVar[Card] = Card(
        assumptions="every term quadratic, or with a prox of its image",
        oracles="products, proxes",
        rate="O(1/T); linear near many solutions",
        projections="0 with operators; 1 per certificate where it is a formula",
        reference="Boyd et al. (2011)",
    )

    every: int = 10
    relaxation: float = 1.7
    patience: int = 8

    def check(self, problem: Problem) -> None:
        if problem.shape is None:
            raise MissingCapabilityError("ADMM needs the shape of the points")
        SplitTerms.of(problem, problem.shape)

    def run(self, bench: Workbench, x0: Array) -> Candidates:
        parts = SplitTerms.of(bench.problem, tuple(x0.shape))
        state = first_state(parts, x0, bench.unit)
        progress, steps = StallCheck(self.patience), self.every
        while True:
            state = self._advanced(bench, parts, state, steps)
            x = feasible_near(bench, parts, state.x)
            verdict = yield Candidate(x)
            if bench.exhausted:
                return
            verdict = yield Candidate(x, self._bound(bench, parts, state, verdict.fun))
            if progress.stalled(verdict.merit()):
                raise StalledError
            if bench.exhausted:
                return
            steps = self.next_certificate(steps, SETTINGS.certificate_share)

    def _advanced(
        self, bench: Workbench, parts: SplitTerms, state: ADMMState, steps: int
    ) -> ADMMState:
        """Make steps; penalties change after 10, 20, 40, ... of them (``every`` times a power of two)."""
        while state.steps < steps and bench.tick():
            state = advance(parts, state, self.relaxation)
            rounds, rest = divmod(state.steps, self.every)
            if rest == 0 and rounds.bit_count() == 1:
                state = balanced(parts, state)
        return state

    def _bound(
        self, bench: Workbench, parts: SplitTerms, state: ADMMState, fun: float
    ) -> ProvedBound | None:
        """Return the bound that the multipliers prove after some steps with small penalties."""
        soft, steps = softened(state), max(self.every, int(SETTINGS.bound_share * state.steps))
        for _ in range(steps):
            if not bench.tick():
                break
            soft = advance(parts, soft, self.relaxation)
        with bench.observe():
            radius, ceiling = None, math.inf
            if math.isfinite(fun):
                radius, ceiling = radius_and_ceiling(bench.problem, fun)
            reach = math.inf if radius is None else radius.value
            gap = bench.target.gap(fun)
            return bound_from(parts, soft, gap, (reach, ceiling), bench.problem.constraint)
