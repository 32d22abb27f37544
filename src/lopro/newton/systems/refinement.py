"""Iterative refinement: what a factorisation has lost in digits is brought back by the residual."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from lopro.linalg.cholesky import SingularSystem
from lopro.newton.arrays import Array, norm
from lopro.newton.curvature import Piece, apply
from lopro.newton.systems.base import System

__all__ = ["refined"]

#: A residual that is still larger than this, next to the right-hand side, belongs to a singular matrix.
_HOPELESS = 0.1


def refined(
    system: System,
    solve: Callable[[Array], Array],
    pieces: Sequence[Piece],
    shift: float,
    rhs: Array,
    *,
    corrections: int,
    wanted: float,
) -> Array:
    """Return the solution that ``solve`` gives, corrected until its relative residual is as wanted.

    The products are counted as those of the system.

    Raises
    ------
    SingularSystem
        If the residual does not fall.
    """

    def residual_of(x: Array) -> Array:
        system.products += 1
        return rhs - apply(pieces, x) - shift * x

    size = norm(rhs)
    x = solve(rhs)
    residual = residual_of(x)
    for _ in range(corrections):
        if norm(residual) <= wanted * size:
            return x
        x = x + solve(residual)
        residual = residual_of(x)
    # Written so that NaN is not taken for a small number.
    if not norm(residual) <= _HOPELESS * size:
        raise SingularSystem("the residual does not fall")
    return x
