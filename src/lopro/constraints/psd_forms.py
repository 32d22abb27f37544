"""Functions that describe the cone of positive semidefinite matrices."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np

from lopro.core.validation import check_count

__all__ = ["Distance", "KyFan", "MinEigenvalue", "NegativeSum", "PSDForm", "Values"]

Values: TypeAlias = "np.ndarray[Any, np.dtype[np.float64]]"


class PSDForm:
    """A function ``c`` of the negative eigenvalues; the defaults are those of a norm of all of them."""

    def pairs(self, dim: int) -> int | None:
        """Return the number of smallest eigenpairs that are needed; None for all."""
        return None

    def weigh(self, depths: Values) -> tuple[float, Values]:
        """Return ``c`` and the weights of the eigenvectors in minus its subgradient."""
        return float(depths.sum()), np.ones(len(depths))

    def regularity(self, dim: int) -> float:
        """Return rho, valid for any number of negative eigenvalues."""
        return 1.0

    def lipschitz(self, dim: int) -> float:
        """Return the Lipschitz constant."""
        return 1.0


@dataclass(frozen=True)
class MinEigenvalue(PSDForm):
    """``c(X) = -lambda_min(X)``: one eigenpair; ``rho = 1/sqrt(d)``, slope 1.

    Examples
    --------
    >>> import numpy as np, lopro.constraints as lc
    >>> lc.PSDCone(2, lc.MinEigenvalue()).value(np.diag([-3.0, -4.0]))
    4.0
    """

    def pairs(self, dim: int) -> int | None:
        return 1

    def regularity(self, dim: int) -> float:
        return 1.0 / math.sqrt(dim)


@dataclass(frozen=True)
class KyFan(PSDForm):
    """``c(X)`` = the sum of the ``k`` most negative eigenvalues, sign changed.

    ``rho = min(1, k/sqrt(d))`` with slope ``sqrt(k)``: at ``k`` near ``sqrt(d)`` the ratio of the
    two is ``d^(1/4)``, where one eigenvalue and all of them both give ``sqrt(d)``.

    Examples
    --------
    >>> import numpy as np, lopro.constraints as lc
    >>> lc.PSDCone(3, lc.KyFan(2)).value(np.diag([-3.0, -4.0, -1.0]))
    7.0
    """

    k: int

    def __post_init__(self) -> None:
        check_count("k", self.k)

    def pairs(self, dim: int) -> int | None:
        return self.k

    def regularity(self, dim: int) -> float:
        return min(1.0, self.k / math.sqrt(dim))

    def lipschitz(self, dim: int) -> float:
        return math.sqrt(self.k)


@dataclass(frozen=True)
class NegativeSum(PSDForm):
    """``c(X)`` = the sum of all negative eigenvalues, sign changed; ``rho = 1``, slope sqrt(d).

    Examples
    --------
    >>> import numpy as np, lopro.constraints as lc
    >>> lc.PSDCone(3, lc.NegativeSum()).value(np.diag([-3.0, -4.0, 9.0]))
    7.0
    """

    def lipschitz(self, dim: int) -> float:
        return math.sqrt(dim)


@dataclass(frozen=True)
class Distance(PSDForm):
    """``c(X)`` = the Frobenius distance to the cone: ``rho = 1``, slope 1, all eigenpairs.

    Examples
    --------
    >>> import numpy as np, lopro.constraints as lc
    >>> lc.PSDCone(3, lc.Distance()).value(np.diag([-3.0, -4.0, 9.0]))
    5.0
    """

    def weigh(self, depths: Values) -> tuple[float, Values]:
        length = float(np.linalg.norm(depths))
        return length, depths / length
