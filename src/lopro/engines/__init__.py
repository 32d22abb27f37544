"""Outside solvers behind two standard forms: one adapter each for PIQP, HiGHS and Clarabel.

An engine solves a `QuadraticProgram` or a `ConeProgram` and returns an `Answer`. Limits, units, statuses and
estimates of size are in one place each. No result of an engine counts as a proof.
"""

from lopro.engines.answer import Answer, AnswerStatus, EngineUnavailable, require_room
from lopro.engines.choice import ENGINES, Engine, engines_for
from lopro.engines.clarabel import conic_work, solve_by_clarabel, solve_cones
from lopro.engines.conic_program import ConicProgram
from lopro.engines.forms import ConeProgram, QuadraticProgram, normalised
from lopro.engines.highs import solve_by_highs
from lopro.engines.piqp import solve_by_piqp

__all__ = [
    "ENGINES",
    "Answer",
    "AnswerStatus",
    "ConeProgram",
    "ConicProgram",
    "Engine",
    "EngineUnavailable",
    "QuadraticProgram",
    "conic_work",
    "engines_for",
    "normalised",
    "require_room",
    "solve_by_clarabel",
    "solve_by_highs",
    "solve_by_piqp",
    "solve_cones",
]
