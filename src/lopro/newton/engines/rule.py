"""Which engine solves a program, and the order in which the others are asked.

Measured with ``python -m benchmarks.general.programs`` (one thread, residuals of 1e-9 or less, judged alike):

- sparse quadratic programs: PIQP, the fastest and most robust on 65 problems of Maros and Meszaros;
- dense quadratic programs: our Newton method, then PIQP (ProxQP is a peer in the benchmark);
- linear programs: dense ones our Newton method, sparse and structured ones HiGHS;
- Clarabel is the last to be asked: slower on these, but it fails on others than they do.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

from lopro.newton.engines.answer import Answer
from lopro.newton.engines.by_clarabel import solve_by_clarabel
from lopro.newton.engines.by_highs import solve_by_highs
from lopro.newton.engines.by_piqp import solve_by_piqp
from lopro.newton.engines.program import QuadraticProgram

__all__ = ["Engine", "engines_for"]

Engine: TypeAlias = Callable[[QuadraticProgram, float, float | None], Answer]


def engines_for(program: QuadraticProgram) -> tuple[Engine, ...]:
    """Return the engines to ask, the most promising first."""
    if program.P is None:
        return (solve_by_highs, solve_by_piqp, solve_by_clarabel)
    return (solve_by_piqp, solve_by_clarabel)
