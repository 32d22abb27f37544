"""The table of a run: by kind and by class, the quotas, and the failures by label."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from fuzz.judge.verdict import Class
from fuzz.machine.record import Record

__all__ = ["Quota", "Summary"]

_COLUMNS = (
    Class.CERTIFIED,
    Class.REFUSED,
    Class.HONEST,
    Class.WRONG,
    Class.CRASH,
    Class.OVERRUN,
    Class.UNKNOWN,
)


@dataclass(frozen=True)
class Quota:
    """The limit on calls of a group that end without success and report it."""

    name: str
    calls: int
    honest: int

    @property
    def share(self) -> float:
        """The share of the group, 0 for an empty one."""
        return self.honest / self.calls if self.calls else 0.0

    def __str__(self) -> str:
        return f"{self.name}: {self.honest} of {self.calls} ({100 * self.share:.2f} %)"


class Summary:
    """Counts records."""

    def __init__(self, records: Iterable[Record] = ()) -> None:
        self.records = list(records)

    def add(self, record: Record) -> None:
        """Count one more."""
        self.records.append(record)

    @property
    def failures(self) -> list[Record]:
        """Calls that were defects, in the order of their names."""
        return sorted((r for r in self.records if r.fails), key=lambda r: (r.kind, r.seed))

    def counts(self, kind: str | None = None) -> dict[str, int]:
        """Return how many calls there were of each class, of one kind or of all."""
        chosen = [r for r in self.records if kind in (None, r.kind)]
        found = Counter(r.verdict for r in chosen)
        return {"calls": len(chosen)} | {c.value: found[c.value] for c in _COLUMNS}

    def quotas(self) -> list[Quota]:
        """Return the two shares of results without success but with true claims that the project limits."""
        sane = [r for r in self.records if r.tags.get("sane")]
        patient = [r for r in self.records if r.tags.get("two_seconds")]
        return [
            Quota("honest, sane bpdn", len(sane), _honest(sane)),
            Quota("honest, everything with a limit of 2 s", len(patient), _honest(patient)),
        ]

    def by_label(self) -> list[tuple[str, str, int, str]]:
        """Return ``(class, label, count, example)`` of all failures, the most frequent first."""
        found: Counter[tuple[str, str]] = Counter((r.verdict, r.label) for r in self.failures)
        example = {(r.verdict, r.label): r.name for r in reversed(self.failures)}
        return [(*key, count, example[key]) for key, count in found.most_common()]

    def table(self) -> str:
        """Return the table in the form that the documentation shows."""
        kinds = list(dict.fromkeys(sorted(r.kind for r in self.records)))
        heads = ["kind", "calls", *(c.value for c in _COLUMNS)]
        rows: list[Sequence[Any]] = [[k, *self.counts(k).values()] for k in kinds]
        rows.append(["all", *self.counts().values()])
        lines = [heads, ["---"] + ["---:"] * (len(heads) - 1), *rows]
        widths = [max(len(str(line[i])) for line in lines) for i in range(len(heads))]
        return "\n".join(
            "| " + " | ".join(str(v).ljust(w) for v, w in zip(line, widths, strict=True)) + " |"
            for line in lines
        )

    def text(self) -> str:
        """Return everything there is to print."""
        lines = [self.table(), "", *(str(q) for q in self.quotas())]
        failures = self.by_label()
        if failures:
            lines += ["", "failures:"]
            lines += [
                f"  {n:5d}  {kind}: {label}  (e.g. {name})" for kind, label, n, name in failures
            ]
        return "\n".join(lines)

    def as_dict(self) -> dict[str, Any]:
        """Return everything as plain data."""
        kinds = sorted({r.kind for r in self.records})
        quotas = [
            {"name": q.name, "calls": q.calls, "honest": q.honest, "share": q.share}
            for q in self.quotas()
        ]
        return {
            "all": self.counts(),
            "kinds": {kind: self.counts(kind) for kind in kinds},
            "quotas": quotas,
            "labels": [
                {"class": c, "label": label, "count": n, "example": name}
                for c, label, n, name in self.by_label()
            ],
            "records": [r.as_dict() for r in self.records],
        }


def _honest(records: Sequence[Record]) -> int:
    return sum(r.verdict == Class.HONEST.value for r in records)
