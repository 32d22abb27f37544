"""Corrections of a nearly feasible X that satisfy the rows in the cone: ``X + X (A*h) X``, or a projection.

The first is ``R (I + R'(A*h)R) R'`` for ``X = R R'``: positive semidefinite if the correction is small
relative to X in every direction, even where X is nearly singular.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import scipy  # parts of it load when first used

from lopro.linalg.conjugate_gradients import conjugate_gradients
from lopro.linalg.dense import EPS, Array, SingularSystem, norm
from lopro.newton.multipliers import never
from lopro.newton.sdp.multipliers import minimised
from lopro.newton.sdp.program import ScaledProgram, SemidefiniteBlock, SemidefiniteProgram

__all__ = ["nearest_blocks", "onto_rows"]

#: The residual to reach in a projection, in normalised units: rounding.
_TOLERANCE = 8.0 * EPS


def onto_rows(
    program: SemidefiniteProgram, X: Sequence[Array], stopped: Callable[[], bool]
) -> tuple[Array, ...]:
    """Return X corrected so that ``A X = b`` up to rounding, as far as corrections halve the residual.

    Examples
    --------
    >>> import numpy as np
    >>> from lopro.newton.sdp import SemidefiniteProgram
    >>> from lopro.newton.sdp.onto_rows import onto_rows
    >>> program = SemidefiniteProgram.dense(np.eye(2), [np.eye(2)], [1.0])
    >>> (X,) = onto_rows(program, [np.diag([0.6, 0.3])], lambda: False)
    >>> round(float(np.trace(X)), 12), bool(X[1, 1] < X[0, 0])
    (1.0, True)
    """
    points = tuple(X)
    size = norm(program.b - program.rows(points))
    while size > EPS * norm(program.b) and not stopped():
        moved = _corrected(program, points, program.b - program.rows(points))
        residual = norm(program.b - program.rows(moved))
        if residual < size:
            points = moved
        if not residual < 0.5 * size:
            break
        size = residual
    return points


def _corrected(
    program: SemidefiniteProgram, X: tuple[Array, ...], residual: Array
) -> tuple[Array, ...]:
    def moved(h: Array) -> list[Array]:
        images = zip(program.adjoint(h), X, strict=True)
        return [x * x * a if x.ndim == 1 else x @ a @ x for a, x in images]

    h = _solution(program, X, residual, lambda h: program.rows(moved(h)))
    return tuple(
        x + d if x.ndim == 1 else x + 0.5 * (d + d.T) for x, d in zip(X, moved(h), strict=True)
    )


def _solution(
    program: SemidefiniteProgram,
    X: tuple[Array, ...],
    residual: Array,
    product: Callable[[Array], Array],
) -> Array:
    """Solve ``A (X A*h X) = residual``, by an eigendecomposition if the images of the rows fit in memory."""
    m = len(residual)
    if not program.has_few_images:
        try:
            return np.asarray(conjugate_gradients(product, residual, 1e-8, None, 100)[0])
        except SingularSystem:
            return np.zeros(m)
    M = np.zeros((m, m))
    for block, x in zip(program.blocks, X, strict=True):
        if block.diagonal:
            M += ((block.A * (x * x)) @ block.A.T).toarray()
            continue
        n = block.size
        half = np.asarray(block.A.reshape(m * n, n) @ x).reshape(m, n, n)
        images = np.matmul(x, half).reshape(m, n * n)
        M += block.A @ images.T
    M = 0.5 * (M + M.T)
    sizes = M.diagonal()
    # Rows that X cannot change have size 0; dividing by it would overflow.
    moves = sizes > np.finfo(float).eps ** 2 * float(sizes.max(initial=0.0))
    scale = np.where(moves, 1.0 / np.sqrt(np.where(moves, sizes, 1.0)), 0.0)
    values, vectors = scipy.linalg.eigh(M * (scale[:, None] * scale))
    # Directions in which X cannot change are left out.
    use = values > 1e-13 * values[-1]
    V = vectors[:, use]
    return np.asarray(scale * (V @ ((V.T @ (scale * residual)) / values[use])))


def nearest_blocks(
    program: SemidefiniteProgram, X: tuple[Array, ...], stopped: Callable[[], bool] = never
) -> tuple[Array, ...]:
    """Return the feasible point of a program that is nearest to X, to the accuracy of Newton's method.

    Examples
    --------
    >>> import numpy as np
    >>> from lopro.newton.sdp import SemidefiniteProgram
    >>> from lopro.newton.sdp.onto_rows import nearest_blocks
    >>> program = SemidefiniteProgram.dense(np.eye(2), [np.eye(2)], [1.0])
    >>> nearest_blocks(program, (np.diag([0.75, 0.75]),))[0].round(12)
    array([[0.5, 0. ],
           [0. , 0.5]])
    """
    scaled = ScaledProgram.of(program)
    blocks = tuple(
        SemidefiniteBlock(p.size, p.diagonal, 0.0 * p.C, p.A) for p in scaled.program.blocks
    )
    flat, y = SemidefiniteProgram(scaled.program.b, blocks), np.zeros(len(program.b))
    centre = tuple(x / scaled.x for x in X)
    try:
        point, _ = minimised(flat, centre, y, _TOLERANCE, stopped)
    except SingularSystem:
        return X
    return scaled.matrices(point.X)
