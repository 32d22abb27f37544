"""The two functions that describe a residual ball: the squared residual of the paper, and the norm."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, TypeAlias

__all__ = ["ResidualForm", "ResidualNorm", "SquaredResidual"]


@dataclass(frozen=True)
class SquaredResidual:
    """``c(x) = |A x - y|^2 - sigma^2``: smooth everywhere, steep far away.

    Examples
    --------
    >>> import lopro.constraints as lc
    >>> lc.SquaredResidual().value(3.0, 2.0)
    5.0
    """

    #: Whether the gradient is Lipschitz continuous everywhere; otherwise the function itself is.
    smooth: ClassVar[bool] = True

    def value(self, length: float, sigma: float) -> float:
        """Return ``c`` for a residual of this length."""
        return length**2 - sigma**2

    def slope(self, length: float) -> float:
        """Return the factor between the residual and the gradient in the image."""
        return 2.0

    def regularity(self, smallest: float, inner_radius: float, sigma: float) -> float:
        """Return rho, from ``|w|^2 - s^2 >= 2 s (|w| - s)`` for the part ``w`` in the range of A."""
        return 2.0 * smallest * inner_radius


@dataclass(frozen=True)
class ResidualNorm:
    """``c(x) = |A x - y| - sigma``: Lipschitz everywhere, no gradient where ``A x = y``.

    Examples
    --------
    >>> import lopro.constraints as lc
    >>> lc.ResidualNorm().value(3.0, 2.0)
    1.0
    """

    smooth: ClassVar[bool] = False

    def value(self, length: float, sigma: float) -> float:
        """Return ``c`` for a residual of this length."""
        return length - sigma

    def slope(self, length: float) -> float:
        """Return the factor between the residual and the (sub)gradient in the image."""
        return 1.0 / length if length > 0.0 else 0.0

    def regularity(self, smallest: float, inner_radius: float, sigma: float) -> float:
        """Return rho: the slope of ``sqrt(w^2 + e^2)`` at the boundary, times ``smallest``."""
        return smallest * (inner_radius / sigma if sigma > 0.0 else 1.0)


ResidualForm: TypeAlias = SquaredResidual | ResidualNorm
