"""The one translation of problems into cones: sets and objectives as rows of a conic program.

Each type contributes its own rows, by one function that is registered for it: `set_rows` for
constraints, `add_objective` for objectives. Whoever writes a new type registers one more.
"""

from lopro.conic.cones import ConeRows
from lopro.conic.objectives import add_half_square, add_objective
from lopro.conic.program import ConicAnswer, ConicProgram
from lopro.conic.sets import set_rows

__all__ = [
    "ConeRows",
    "ConicAnswer",
    "ConicProgram",
    "add_half_square",
    "add_objective",
    "set_rows",
]
