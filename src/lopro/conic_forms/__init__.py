"""Our objectives and sets as cone programs: the one package that knows both.

Each type contributes its own rows, by one function that is registered for it: `set_rows` for
constraints, `add_objective` for objectives. A new type registers one more.
"""

from lopro.cones import ConeRows
from lopro.conic_forms import norms as _norms  # noqa: F401 (registers its forms)
from lopro.conic_forms.objectives import add_half_square, add_objective
from lopro.conic_forms.sets import set_rows
from lopro.engines import ConicProgram

__all__ = [
    "ConeRows",
    "ConicProgram",
    "add_half_square",
    "add_objective",
    "set_rows",
]
