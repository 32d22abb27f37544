"""Engines for quadratic and linear programs: thin wrappers around well-kept libraries."""

from lopro.newton.engines.answer import Answer, AnswerStatus
from lopro.newton.engines.by_clarabel import solve_by_clarabel
from lopro.newton.engines.by_highs import solve_by_highs
from lopro.newton.engines.by_piqp import solve_by_piqp
from lopro.newton.engines.certified import NotConvex, solve_program
from lopro.newton.engines.program import QuadraticProgram, in_handy_units
from lopro.newton.engines.rule import ENGINES, engines_for, quick_by_piqp

__all__ = [
    "ENGINES",
    "Answer",
    "AnswerStatus",
    "NotConvex",
    "QuadraticProgram",
    "engines_for",
    "in_handy_units",
    "quick_by_piqp",
    "solve_by_clarabel",
    "solve_by_highs",
    "solve_by_piqp",
    "solve_program",
]
