"""Objectives as parts of a cone program, term by term."""

from __future__ import annotations

import numpy as np
import scipy  # parts of it load when first used

from lopro.conic_forms.sets import real_matrix, real_vector
from lopro.core.arrays import Array, is_complex
from lopro.core.real_vectors import to_real_vector
from lopro.engines import ConicProgram
from lopro.functions.cone_program import RealImage
from lopro.functions.term import Term
from lopro.objectives import Objective

__all__ = ["add_objective"]


def add_objective(f: Objective, program: ConicProgram, zero: Array) -> None:
    """Add an objective to a cone program; what is constant goes to ``program.constant``.

    Parameters
    ----------
    f : Objective
        What is added: the atoms of its terms know their conic forms.
    program : ConicProgram
        Where it is added.
    zero : array
        The origin, of the shape, library and dtype of the points.

    Raises
    ------
    MissingCapabilityError
        Where an atom has no conic form.

    Examples
    --------
    >>> import numpy as np
    >>> from lopro.conic_forms import ConicProgram, add_objective
    >>> from lopro.objectives import L1Norm, SquaredDistance
    >>> program, zero = ConicProgram(2), np.zeros(2)
    >>> add_objective(SquaredDistance(np.array([3.0, 0.5])) + L1Norm(), program, zero)
    >>> program.solve(1e-9).x[:2].round(5) + 0.0
    array([2., 0.])
    """
    for term in f.terms:
        term.atom.add_to_cone_program(program, _real_image(term, zero), term.scale)


def _real_image(term: Term, zero: Array) -> RealImage:
    """Return the image of a term as a matrix on real vectors."""
    twofold = is_complex(zero)
    if term.map is None:
        size = to_real_vector(zero).size
        b = np.zeros(size) if term.offset is None else _real_offset(term.offset, twofold)
        return RealImage(scipy.sparse.eye_array(size, format="csr"), b, twofold, True)
    D = real_matrix(term.map, twofold)
    b = np.zeros(D.shape[0]) if term.offset is None else _real_offset(term.offset, twofold)
    return RealImage(D, b, twofold)


def _real_offset(b: Array, twofold: bool) -> np.ndarray[tuple[int, ...], np.dtype[np.float64]]:
    return real_vector(b.reshape(-1) if b.ndim > 1 else b, twofold)
