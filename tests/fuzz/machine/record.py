"""The record of a call: plain data that is passed between processes and written to a file."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from typing import Any

from fuzz.judge.verdict import Class, Verdict

__all__ = ["Record"]


@dataclass(frozen=True)
class Record:
    """One call and its verdict."""

    kind: str
    seed: int
    verdict: str
    label: str = ""
    detail: str = ""
    seconds: float = 0.0
    tags: dict[str, Any] = field(default_factory=dict)
    facts: dict[str, Any] = field(default_factory=dict)
    warnings: tuple[str, ...] = ()

    @staticmethod
    def of(kind: str, seed: int, verdict: Verdict, **rest: Any) -> Record:
        """Write down a verdict."""
        return Record(
            kind,
            seed,
            verdict.kind.value,
            verdict.label,
            verdict.detail,
            facts=verdict.facts,
            **rest,
        )

    @property
    def name(self) -> str:
        """The name that ``--case`` takes."""
        return f"{self.kind}:{self.seed}"

    @property
    def fails(self) -> bool:
        """Whether the call was a defect."""
        return Class(self.verdict).fails

    def as_dict(self) -> dict[str, Any]:
        """Return plain data for JSON."""
        return asdict(self) | {"case": self.name}
