"""Sequential unconstrained minimisation: the exterior penalty method and the augmented Lagrangian method.

Both minimise a sequence of penalised problems to high accuracy and differ in the penalty of the next stage.
Their iterates are not feasible; a projection after each stage makes a feasible point that the driver can
certify.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import ClassVar

from lopro.constraints import Constraint
from lopro.core.arrays import Array, norm
from lopro.core.validation import check_fields, check_number
from lopro.methods.inner.accelerated import AcceleratedState
from lopro.methods.multipliers import check_penalties, first_stiffness, minimised
from lopro.penalties import CentredHinge, MemberPenalties, SetPenalty
from lopro.problem import Problem
from lopro.protocol import Candidate, Candidates, Card, PenalisedMinimum, Workbench

__all__ = ["AugmentedLagrangian", "ExteriorPenalty", "SequentialMinimization"]

#: Accelerated steps between two checks of the stopping rule: a stage makes up to 24 steps more than it needs.
STEPS_PER_CHECK = 25


@dataclass(frozen=True)
class Stage:
    """A penalised problem with its minimiser, and the penalty of the previous stage."""

    constraint: Constraint
    before: MemberPenalties | None
    penalty: MemberPenalties
    state: AcceleratedState


@dataclass(frozen=True)
class SequentialMinimization:
    """Stages of unconstrained minimisation to a high accuracy, with one projection after each."""

    stages: int
    growth: float = 10.0
    stiffness: float | None = None
    accuracy: float = 1e-9
    rounds: int = 200

    def __post_init__(self) -> None:
        check_fields(self, counts=("stages", "rounds"), positive=("stiffness", "accuracy"))
        check_number("growth", self.growth, minimum=1.0, exclusive=True)

    def check(self, problem: Problem) -> None:
        check_penalties(problem, type(self).__name__)

    def run(self, bench: Workbench, x0: Array) -> Candidates:
        beta = first_stiffness(bench, x0) if self.stiffness is None else self.stiffness
        penalty = MemberPenalties.of(bench.constraint, beta)
        x, L, before = x0, None, None

        def accuracy(fun: float) -> float:
            return self.accuracy * bench.target.unit(fun)

        for _ in range(self.stages):
            F = bench.penalised(penalty, x)
            state = minimised(bench, F, x, L, accuracy, steps=STEPS_PER_CHECK, rounds=self.rounds)
            x, L = state.x, state.L
            yield Candidate(bench.project(x), PenalisedMinimum(F), before=x)
            stage = Stage(bench.constraint, before, penalty, state)
            before, penalty = penalty, self.following(stage)

    def following(self, stage: Stage) -> MemberPenalties:
        """Return the penalty of the next stage."""
        raise NotImplementedError


@dataclass(frozen=True)
class ExteriorPenalty(SequentialMinimization):
    """The quadratic penalty method of Courant, Fiacco and McCormick.

    Problem: min f(x) s.t. c(x) <= 0, f smooth, proximable or a sum, members of the constraint smooth or of
    the form ``M x in Q``. Oracles: gradients, prox, projections on the simple sets ``Q``. Each stage
    minimises ``f(x) + beta/2 dist(M x, Q)^2`` (``beta/2 [c(x)]_+^2`` for a smooth ``c``) from the minimiser
    of the last one, with ``beta`` ten times as large.

    Theorem: let ``u*`` be a multiplier. The minimiser has ``dist(M x, Q) <= |u*| / beta``, its value is below
    ``f_*`` by at most ``|u*|^2 / beta``, and values and violations are monotone in ``beta``; so
    ``f(P x) - f_* <= G |u*| / (rho beta)``. Stages to eps: ``O(log 1/eps)``, but the condition number
    of the penalised problem grows like ``beta``, that is like ``1/eps``.

    Parameters
    ----------
    stages : int
        Number of penalised problems.
    growth : float
        Factor by which beta increases; 10 is a usual choice (J. Nocedal, S. J. Wright, "Numerical
        Optimization" (2006), section 17.1).
    stiffness : float, optional
        The first beta; by default the one at which the gradient of the penalty, for a violation of the size
        of the start, has the norm of the gradient of the objective.
    accuracy : float
        Accuracy of each penalised problem: norm of its gradient times the size of a solution, relative to f.
    rounds : int
        Limit of the inner iterations of a stage, in units of 25 steps.

    References
    ----------
    A. V. Fiacco, G. P. McCormick, "Nonlinear Programming: Sequential Unconstrained Minimization
    Techniques", Wiley (1968).

    Departures
    ----------
    The bound ``2 |u*| / beta`` of the textbooks on the violation is halved: the minimiser is a proximal step
    on the dual from zero, whose norm is at most ``|u*|``. The projection after each stage is added here.

    Examples
    --------
    >>> import numpy as np, lopro
    >>> f = lopro.objectives.Linear(np.array([1.0, 2.0]))
    >>> ball = lopro.constraints.ResidualBall(np.diag([1.0, 3.0]), np.zeros(2), 1.0)
    >>> method = lopro.baselines.ExteriorPenalty()
    >>> result = lopro.solve(lopro.Problem(f, ball), method=method, tol=1e-4)
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

    def following(self, stage: Stage) -> MemberPenalties:
        return stage.penalty.stiffened(self.growth)


@dataclass(frozen=True)
class AugmentedLagrangian(SequentialMinimization):
    """The method of multipliers of Hestenes and Powell, for inequalities as by Rockafellar.

    Problem and oracles as for `ExteriorPenalty`. Each stage minimises
    ``f(x) + beta/2 dist(M x + u/beta, Q)^2``; then ``u`` becomes the multiplier found, and ``beta`` grows
    only if the residual has not decreased to a quarter.

    Theorem (Rockafellar 1976; Gueler 1991): the multipliers are proximal points of the dual, so
    ``|u_k - u*|`` never grows for any multiplier ``u*``, and after K stages the dual value is within
    ``|u_0 - u*|^2 / (2 sum beta_k)`` of ``f_*``; linear where the dual is curved. ``beta`` may stay small.

    It shares penalties and inner algorithm with `lopro.MultiplierMethod` and differs in three choices: every
    stage is solved to the same accuracy, where `MultiplierMethod` stops when the gradient contributes less
    than the residual; every stage ends with a projection, where the other projects when the estimated gap has
    decreased to a tenth; and ``beta`` grows by the textbook rule.

    Parameters
    ----------
    stages, growth, stiffness, accuracy, rounds
        As for `ExteriorPenalty`.
    enough : float
        Required ratio of the residual to the previous one; beta grows if it is exceeded. A quarter, and a
        growth of 10, are recommended by D. P. Bertsekas, "Constrained Optimization and Lagrange Multiplier
        Methods" (1982), section 2.2.5.

    References
    ----------
    M. R. Hestenes, "Multiplier and gradient methods", JOTA 4 (1969).
    R. T. Rockafellar, "Augmented Lagrangians and applications of the proximal point algorithm in convex
    programming", Mathematics of Operations Research 1 (1976).
    O. Gueler, "On the convergence of the proximal point algorithm", SIAM J. Control Optim. 29 (1991).

    Departures
    ----------
    The projection after each stage is added here: it makes the points feasible, and the driver certifies
    them.

    Examples
    --------
    >>> import numpy as np, lopro
    >>> f = lopro.objectives.Linear(np.array([1.0, 2.0]))
    >>> ball = lopro.constraints.ResidualBall(np.diag([1.0, 3.0]), np.zeros(2), 1.0)
    >>> method = lopro.baselines.AugmentedLagrangian()
    >>> result = lopro.solve(lopro.Problem(f, ball), method=method)
    >>> result.success, round(result.fun, 5), result.counts.projections == len(result.history)
    (True, -1.20185, True)
    """

    card: ClassVar[Card] = replace(
        ExteriorPenalty.card,
        rate="O(1/K) in K stages, linear where the dual is curved; each stage is solved to high accuracy",
        reference="Hestenes (1969), Powell (1969), Rockafellar (1976)",
    )

    stages: int = 40
    enough: float = 0.25

    def __post_init__(self) -> None:
        super().__post_init__()
        check_number("enough", self.enough, minimum=0.0, maximum=1.0)

    def following(self, stage: Stage) -> MemberPenalties:
        image = stage.state.image_x[-stage.constraint.image_length :]
        following = stage.penalty.recentred(stage.constraint, image)
        last = math.inf if stage.before is None else residual(stage.before, stage.penalty)
        stiffer = residual(stage.penalty, following) > self.enough * last
        return following.stiffened(self.growth) if stiffer else following


def residual(old: MemberPenalties, new: MemberPenalties) -> float:
    """Return the residual of feasibility and complementarity: ``|u_new - u_old| / beta``."""
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
