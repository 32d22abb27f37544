"""The classical exterior penalty method: minimise tightly, raise the penalty, minimise again."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from lopro.methods.baselines._sequential import SequentialMinimization
from lopro.methods.inner.accelerated import AcceleratedState
from lopro.penalties import MemberPenalties
from lopro.protocol import Card, Workbench

__all__ = ["ExteriorPenalty"]


@dataclass(frozen=True)
class ExteriorPenalty(SequentialMinimization):
    """The quadratic penalty method of Courant, Fiacco and McCormick.

    Problem: min f(x) s.t. c(x) <= 0, f smooth, proximable or a sum, members of the constraint smooth or of
    the form ``M x in Q``. Oracles: gradients, prox, projections on the simple sets ``Q``. Each stage
    minimises ``f(x) + beta/2 dist(M x, Q)^2`` (``beta/2 [c(x)]_+^2`` for a smooth ``c``) tightly, from where
    the last one ended, with ``beta`` ten times as large.

    Theorem: let ``u*`` be a multiplier. The minimiser has ``dist(M x, Q) <= |u*| / beta``, its value is below
    ``f_*`` by at most ``|u*|^2 / beta``, and values and violations are monotone in ``beta``; so
    ``f(P x) - f_* <= G |u*| / (rho beta)``. Stages to eps: ``O(log 1/eps)``. The price is in the stages:
    the condition of the penalised problem grows like ``beta``, that is like ``1/eps``.

    Parameters
    ----------
    stages, growth, stiffness, accuracy, rounds
        How many penalised problems, by how much beta grows, the first beta, how tightly they are
        solved, and when one is given up (times 25 steps).

    References
    ----------
    A. V. Fiacco, G. P. McCormick, "Nonlinear Programming: Sequential Unconstrained Minimization
    Techniques", Wiley (1968).

    Departures
    ----------
    The bound ``2 |u*| / beta`` of the textbooks on the violation is halved: the minimiser is a proximal step
    on the dual from zero, which cannot pass the length of ``u*``. A projection after each stage is new.

    Examples
    --------
    >>> import numpy as np, lopro
    >>> from lopro.methods.baselines import ExteriorPenalty
    >>> f = lopro.objectives.Linear(np.array([1.0, 2.0]))
    >>> ball = lopro.constraints.ResidualBall(np.diag([1.0, 3.0]), np.zeros(2), 1.0)
    >>> result = lopro.solve(lopro.Problem(f, ball), method=ExteriorPenalty(), tol=1e-4)
    >>> result.success, round(result.fun, 3), result.counts.projections == len(result.history)
    (True, -1.202, True)
    """

    card: ClassVar[Card] = Card(
        assumptions="f smooth or proximable (or a sum), members of the constraint smooth or M x in Q",
        oracles="gradients, prox, projections on the simple sets Q",
        rate="O~(eps^-1/2) gradients in each of O(log 1/eps) stages: their condition grows like 1/eps",
        projections="1 per stage",
        reference="Courant (1943); Fiacco, McCormick (1968)",
    )

    stages: int = 8

    def following(
        self,
        bench: Workbench,
        before: MemberPenalties | None,
        penalty: MemberPenalties,
        state: AcceleratedState,
    ) -> MemberPenalties:
        return penalty.stiffened(self.growth)
