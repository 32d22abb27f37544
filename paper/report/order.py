"""The order for a report: the scale, the data, and the display of progress."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum
from pathlib import Path
from typing import Any, Protocol

from paper.report.draft import Draft

__all__ = ["Order", "Part", "Scale"]


class Scale(Enum):
    """The scale of the parts."""

    SHORT = "short: small instances, about a minute in all"
    USUAL = "usual: Table 1 at the paper's size, the rest cut to fit into ten minutes"
    FULL = "full: the paper's full scale, every row of both tables; hours"


def _silent(line: str) -> None:
    return


@dataclass(frozen=True)
class Order:
    """The scale, the path of the colon-cancer file if any, and a function called with what runs next."""

    scale: Scale = Scale.USUAL
    colon: Path | None = None
    say: Callable[[str], Any] = _silent

    def of(self, short: Any, usual: Any, full: Any) -> Any:
        """Return the value that belongs to the scale.

        Examples
        --------
        >>> from paper.report.order import Order
        >>> Order().of(1, 2, 3)
        2
        """
        return {Scale.SHORT: short, Scale.USUAL: usual, Scale.FULL: full}[self.scale]


class Part(Protocol):
    """A module of `paper.report.sections`."""

    def parameters(self, order: Order) -> dict[str, Any]:
        """Return the parameters of the outcome, apart from machine and versions."""

    def run(self, order: Order) -> Draft:
        """Run the part and describe the outcome."""
