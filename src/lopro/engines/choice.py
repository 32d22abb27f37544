"""Which engine solves a quadratic or linear program, and the order in which the others follow.

Measured with ``python -m benchmarks.general.programs`` (one thread, residuals of 1e-9 or less, judged alike):

- sparse quadratic programs: PIQP, the fastest and most robust on 65 problems of Maros and Meszaros;
- dense quadratic programs: PIQP where all variables or at least as many rows have bounds (2 to 12 times as
  fast as our Newton method up to 1000 variables), our Newton method where rows are few, and beyond;
- linear programs: sparse and structured ones HiGHS; dense ones PIQP (on random ones 4 to 30 times as fast as
  HiGHS, and up to 40 times as fast as our Newton method), then our Newton method;
- Clarabel comes last: slower on these, but it fails on others than they do.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

from lopro.engines.answer import Answer
from lopro.engines.clarabel import solve_by_clarabel
from lopro.engines.forms import QuadraticProgram
from lopro.engines.highs import solve_by_highs
from lopro.engines.piqp import solve_by_piqp

__all__ = ["ENGINES", "Engine", "engines_for"]

Engine: TypeAlias = Callable[[QuadraticProgram, float, float | None], Answer]

#: The engines by name.
ENGINES: dict[str, Engine] = {
    "piqp": solve_by_piqp,
    "highs": solve_by_highs,
    "clarabel": solve_by_clarabel,
}


def engines_for(program: QuadraticProgram) -> tuple[Engine, ...]:
    """Return the engines to run, the most promising first; one may raise `EngineUnavailable`."""
    if program.P is None:
        return (solve_by_highs, solve_by_piqp, solve_by_clarabel)
    return (solve_by_piqp, solve_by_clarabel)
