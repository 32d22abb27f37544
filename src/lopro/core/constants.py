"""Numbers from the theory, with where they come from and where they hold."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import Any

from lopro.core.arrays import Array
from lopro.core.validation import check_constant, check_number

__all__ = ["Ball", "Constant", "Source"]


class Source(Enum):
    """The source of a constant: only given and derived ones may support a claim."""

    GIVEN = "given"
    DERIVED = "derived"
    ESTIMATED = "estimated"


@dataclass(frozen=True, slots=True)
class Constant:
    """A number from the theory, with where it comes from and where it holds.

    Examples
    --------
    >>> from lopro.functions import Constant, Source
    >>> Constant(2.0, Source.DERIVED, "norm of a").value
    2.0
    """

    value: float
    source: Source
    note: str = ""

    @staticmethod
    def given(name: str, value: Any, *, minimum: float = 0.0) -> Constant:
        """Wrap a number supplied by the user under the argument ``name``."""
        return Constant(check_number(name, value, minimum=minimum), Source.GIVEN, name)


@dataclass(frozen=True, slots=True, eq=False)
class Ball:
    """The ball on which a function without a global Lipschitz constant is considered.

    Examples
    --------
    >>> import numpy as np
    >>> from lopro.functions import Ball
    >>> Ball(np.zeros(3), 2.0).radius
    2.0
    """

    center: Array
    radius: float

    def __post_init__(self) -> None:
        check_constant("radius", self.radius)
