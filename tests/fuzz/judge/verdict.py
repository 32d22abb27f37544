"""Verdicts of judges on a call, and the short names under which findings are counted."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from enum import Enum
from typing import Any

__all__ = ["Class", "Finding", "Verdict", "worst"]


class Class(Enum):
    """The classes of the summary, best first."""

    CERTIFIED = "certified"
    REFUSED = "refused"
    HONEST = "honest"
    UNKNOWN = "unknown"
    OVERRUN = "overrun"
    CRASH = "crash"
    WRONG = "wrong"

    @property
    def fails(self) -> bool:
        """Whether a call of this class is a defect."""
        return self in (Class.WRONG, Class.CRASH, Class.OVERRUN)


_ORDER = list(Class)


class Finding(Exception):
    """Raised by a check that has found a false claim; ``label`` names the kind of falsehood."""

    def __init__(self, label: str, detail: str) -> None:
        super().__init__(f"{label}: {detail}")
        self.label, self.detail = label, detail


@dataclass(frozen=True)
class Verdict:
    """The class of a call, the label it is counted under, and the evidence in words."""

    kind: Class
    label: str = ""
    detail: str = ""
    facts: dict[str, Any] = field(default_factory=dict)

    def __str__(self) -> str:
        words = [self.kind.value, self.label, self.detail]
        return ": ".join(word for word in words if word)

    @property
    def fails(self) -> bool:
        """Whether the call was a defect."""
        return self.kind.fails


def worst(verdicts: Iterable[Verdict]) -> Verdict:
    """Return the worst of several verdicts: that of a call with several results."""
    return max(verdicts, key=lambda verdict: _ORDER.index(verdict.kind))
