"""Objectives and sets as cone programs.

The atoms of an objective know their conic forms (`add_objective` goes through its terms); a set has its rows
by a function that is registered for its type, `set_rows`.
"""

from lopro.cones import ConeRows
from lopro.conic_forms.objectives import add_objective
from lopro.conic_forms.sets import set_rows
from lopro.engines import ConicProgram

__all__ = [
    "ConeRows",
    "ConicProgram",
    "add_objective",
    "set_rows",
]
