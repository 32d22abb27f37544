r"""Sparse metric learning on few features by an interior point method, where ADMM converges slowly.

If the l1 norm is negligible for features of large scale and not for others, no scaling suits all of them, and
ADMM converges slowly. With few features Newton steps are cheap. Clarabel solves

    min ``1/2 a'H a - l'a + sum_k c_k u_k``  over  ``|a_k| <= u_k`` off the diagonal,  ``A`` psd,

where ``a`` are the entries of the upper triangle of ``A``. Its solution is verified: the point is
projected, and the multiplier serves as a dual point like those of ADMM.
"""

from __future__ import annotations

import math
from typing import Any, TypeAlias

import numpy as np
import scipy  # parts of it load when first used

from lopro.engines import ConeProgram, solve_cones
from lopro.engines.cones import Cone, Nonnegative, PSDTriangle
from lopro.metric.loss_step import ByEntries

__all__ = ["interior_point"]

Matrix: TypeAlias = "np.ndarray[Any, np.dtype[np.float64]]"


def interior_point(
    loss: ByEntries, tau: Matrix, trace: Matrix, accuracy: float
) -> tuple[Matrix, Matrix]:
    """Return the solution, and the multiplier ``S`` of the cone.

    Parameters
    ----------
    loss : ByEntries
        The loss as a quadratic function of the entries.
    tau : array of shape (d, d)
        The weight of each entry off the diagonal.
    trace : array of shape (d,)
        The weight of each entry of the diagonal.
    accuracy : float
        Relative tolerance of the gap and the residuals.

    Examples
    --------
    >>> import numpy as np
    >>> from lopro.metric.interior import interior_point
    >>> from lopro.metric.loss import PairLoss
    >>> from lopro.metric.loss_step import ByEntries
    >>> X = np.array([[0.0, 0.0], [1.0, 0.0], [0.0, 2.0]])
    >>> loss = ByEntries(PairLoss(X, ([0, 0], [1, 2]), [0.0, 2.0]))
    >>> A, S = interior_point(loss, np.full((2, 2), 0.1), np.zeros(2), 1e-9)
    >>> A.round(2) + 0.0
    array([[0. , 0. ],
           [0. , 0.5]])
    """
    d, (H, linear) = len(tau), loss.quadratic
    rows, columns = loss.places
    off = rows != columns
    # Entries off the diagonal represent two, and are stored with a factor of sqrt(2).
    slopes = math.sqrt(2.0) * tau[rows, columns][off]
    costs = np.zeros(len(rows))
    costs[~off] = trace
    a, u = scipy.sparse.eye_array(len(rows), format="csr"), scipy.sparse.eye_array(len(slopes))
    # Clarabel stores triangles by columns.
    cone = scipy.sparse.hstack([a[np.lexsort((rows, columns))], _zeros(len(rows), len(slopes))])
    constraints = scipy.sparse.vstack(
        [-cone, scipy.sparse.hstack([a[off], -u]), scipy.sparse.hstack([-a[off], -u])]
    )
    P = scipy.sparse.block_diag([scipy.sparse.csc_array(H), _zeros(len(slopes), len(slopes))])
    cones: list[Cone] = [PSDTriangle(d), Nonnegative(2 * len(slopes))]
    q, b = np.concatenate([costs - linear, slopes]), np.zeros(constraints.shape[0])
    solved = solve_cones(ConeProgram(P, q, constraints, b, cones), accuracy)
    multiplier = np.empty(len(rows))
    multiplier[np.lexsort((rows, columns))] = solved.rows[: len(rows)]
    return loss.matrix_of(solved.x[: len(rows)]), loss.matrix_of(multiplier)


def _zeros(rows: int, columns: int) -> Any:
    return scipy.sparse.csc_array((rows, columns))
