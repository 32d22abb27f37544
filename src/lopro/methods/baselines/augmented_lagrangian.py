"""The classical augmented Lagrangian: minimise tightly, move the multiplier, minimise again."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

from lopro.core.arrays import norm
from lopro.core.validation import check_number
from lopro.methods.baselines._sequential import SequentialMinimization
from lopro.methods.inner.accelerated import AcceleratedState
from lopro.penalties import CentredHinge, MemberPenalties, SetPenalty
from lopro.protocol import Card, Workbench

__all__ = ["AugmentedLagrangian"]


@dataclass(frozen=True)
class AugmentedLagrangian(SequentialMinimization):
    """The method of multipliers of Hestenes and Powell, for inequalities as by Rockafellar.

    Problem and oracles as for `ExteriorPenalty`. Each stage minimises
    ``f(x) + beta/2 dist(M x + u/beta, Q)^2`` tightly; then ``u`` becomes the multiplier found, and ``beta``
    grows only where the residual has not fallen to a quarter.

    Theorem (Rockafellar 1976; Gueler 1991): the multipliers are proximal points of the dual, so
    ``|u_k - u*|`` never grows for any multiplier ``u*``, and after K stages the dual value is within
    ``|u_0 - u*|^2 / (2 sum beta_k)`` of ``f_*``; linear where the dual is curved. ``beta`` may stay small.

    It differs from `lopro.MultiplierMethod`, with which it shares penalties and inner solver, in three
    choices: every stage is solved to the same tight accuracy, where the library's own method stops when
    the slope weighs less than the residual; every stage ends with a projection, where the other projects
    once the estimated gap has fallen to a tenth; and ``beta`` grows by the textbook's rule.

    Parameters
    ----------
    stages, growth, stiffness, accuracy, rounds
        How many penalised problems, by how much beta grows when it does, the first beta, how tightly
        they are solved, and when one is given up (times 25 steps).
    enough : float
        The residual has to fall to this part of the last one; else beta grows.

    References
    ----------
    M. R. Hestenes, "Multiplier and gradient methods", JOTA 4 (1969).
    R. T. Rockafellar, "Augmented Lagrangians and applications of the proximal point algorithm in convex
    programming", Mathematics of Operations Research 1 (1976).
    O. Gueler, "On the convergence of the proximal point algorithm", SIAM J. Control Optim. 29 (1991).

    Departures
    ----------
    A projection after each stage is new: it makes the points feasible, and the driver certifies them.

    Examples
    --------
    >>> import numpy as np, lopro
    >>> from lopro.methods.baselines import AugmentedLagrangian
    >>> f = lopro.objectives.Linear(np.array([1.0, 2.0]))
    >>> ball = lopro.constraints.ResidualBall(np.diag([1.0, 3.0]), np.zeros(2), 1.0)
    >>> result = lopro.solve(lopro.Problem(f, ball), method=AugmentedLagrangian())
    >>> result.success, round(result.fun, 5), result.counts.projections == len(result.history)
    (True, -1.20185, True)
    """

    card: ClassVar[Card] = Card(
        assumptions="f smooth or proximable (or a sum), members of the constraint smooth or M x in Q",
        oracles="gradients, prox, projections on the simple sets Q",
        rate="O(1/K) in K stages, linear where the dual is curved; each stage is solved tightly",
        projections="1 per stage",
        reference="Hestenes (1969), Powell (1969), Rockafellar (1976)",
    )

    stages: int = 40
    enough: float = 0.25

    def __post_init__(self) -> None:
        super().__post_init__()
        check_number("enough", self.enough, minimum=0.0, maximum=1.0)

    def following(
        self,
        bench: Workbench,
        before: MemberPenalties | None,
        penalty: MemberPenalties,
        state: AcceleratedState,
    ) -> MemberPenalties:
        constraint = bench.constraint
        image = state.image_x[-constraint.image_length :]
        following = penalty.recentred(constraint, image)
        last = math.inf if before is None else residual(before, penalty)
        stiffer = residual(penalty, following) > self.enough * last
        return following.stiffened(self.growth) if stiffer else following


def residual(old: MemberPenalties, new: MemberPenalties) -> float:
    """Return how far the minimiser is from feasible and complementary: ``|u_new - u_old| / beta``."""
    pairs = zip(old.parts, new.parts, strict=True)
    return math.hypot(*(_move(a, b) / a.beta for a, b in pairs))


def _move(old: CentredHinge | SetPenalty, new: CentredHinge | SetPenalty) -> float:
    if isinstance(old, CentredHinge):
        assert isinstance(new, CentredHinge)
        return abs(new.multiplier - old.multiplier)
    assert isinstance(new, SetPenalty) and new.multiplier is not None
    if old.multiplier is None:
        return math.hypot(*(norm(v) for v in new.multiplier))
    pairs = zip(new.multiplier, old.multiplier, strict=True)
    return math.hypot(*(norm(v - u) for v, u in pairs))
