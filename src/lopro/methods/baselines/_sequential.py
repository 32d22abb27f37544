"""Sequential unconstrained minimisation: solve a penalised problem tightly, change the penalty, repeat.

The frame that the classical penalty method and the classical augmented Lagrangian share; they differ in
how the penalty of the next stage is made. Both are about points that are not feasible. A projection
after each stage makes one of them that is, so that stages can be compared and certified.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from lopro.core.arrays import Array
from lopro.core.validation import check_count, check_number
from lopro.methods.inner.accelerated import AcceleratedState
from lopro.methods.subproblems import check_penalties, first_stiffness, minimised
from lopro.penalties import MemberPenalties
from lopro.problem import Problem
from lopro.protocol import Candidate, Candidates, PenalisedMinimum, Workbench

__all__ = ["SequentialMinimization"]


@dataclass(frozen=True)
class SequentialMinimization:
    """Stages of tight unconstrained minimisation, with one projection after each.

    Parameters
    ----------
    stages : int
        How many penalised problems are solved.
    growth : float
        By how much the penalty is stiffened.
    stiffness : float, optional
        The first stiffness; by default the one at which a violation of the size of the start balances
        the slope of the objective.
    accuracy : float
        How tightly: the slope of a penalised problem times the size of a solution, relative to the value.
    rounds : int
        A problem is given up after so many times 25 steps.
    """

    stages: int
    growth: float = 10.0
    stiffness: float | None = None
    accuracy: float = 1e-9
    rounds: int = 200

    def __post_init__(self) -> None:
        check_count("stages", self.stages)
        check_number("growth", self.growth, minimum=1.0, exclusive=True)
        if self.stiffness is not None:
            check_number("stiffness", self.stiffness, minimum=0.0, exclusive=True)
        check_number("accuracy", self.accuracy, minimum=0.0, exclusive=True)
        check_count("rounds", self.rounds)

    def check(self, problem: Problem) -> None:
        check_penalties(problem, type(self).__name__)

    def run(self, bench: Workbench, x0: Array) -> Candidates:
        beta = first_stiffness(bench, x0) if self.stiffness is None else self.stiffness
        penalty = MemberPenalties.of(bench.constraint, beta)
        x, L, before = x0, None, None
        for _ in range(self.stages):
            F = bench.penalised(penalty, x)
            state = minimised(bench, F, x, L, self._wanted(bench), steps=25, rounds=self.rounds)
            x, L = state.x, state.L
            yield Candidate(bench.project(x), PenalisedMinimum(F), before=x)
            before, penalty = penalty, self.following(bench, before, penalty, state)

    def following(
        self,
        bench: Workbench,
        before: MemberPenalties | None,
        penalty: MemberPenalties,
        state: AcceleratedState,
    ) -> MemberPenalties:
        """Return the penalty of the next stage, from the last two and where the last one has led."""
        raise NotImplementedError

    def _wanted(self, bench: Workbench) -> Callable[[float], float]:
        return lambda fun: self.accuracy * bench.target.unit(fun)
