"""Compare two records, section by section.

A trace is *identical*; or has *other bits* (statuses and counts are equal, numbers or hashes are not); or it
is *different*: a status, a count, a certification, or name and bits at once. Of runs with a time limit only
the certification counts, and whether their intervals from lower bound to value contradict each other.
"""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import dataclass, field
from typing import Any

from traces.entry import NAMES, SECONDS, WORK

__all__ = ["SectionComparison", "compare", "set_apart"]

#: A run is listed as slower if it takes longer by this share, and by this number of seconds (the clock is
#: coarse).
SLOWER_SHARE, SLOWER_SECONDS = 0.1, 0.02
#: Lower bounds and values of two certified runs may pass each other by this share: ten times the tolerance.
CONTRADICTION = {"sdplib": 1e-3}
_CONTRADICTION = 1e-5


@dataclass
class SectionComparison:
    """The comparison of the traces of one section."""

    name: str
    identical: int = 0
    #: Largest relative difference of values, and of lower bounds, among traces with other bits.
    fun: float = 0.0
    bound: float = 0.0
    other_bits: list[str] = field(default_factory=list)
    different: list[str] = field(default_factory=list)
    #: Differences in traces whose counts rounding alone can change.
    sensitive: list[str] = field(default_factory=list)
    #: Changes that are no difference: certifications gained, names, times.
    notes: list[str] = field(default_factory=list)
    renamed: Counter[str] = field(default_factory=Counter)
    seconds: tuple[float, float] = (0.0, 0.0)

    def lines(self, details: int) -> list[str]:
        """Return the report, with a limited number of traces of each kind."""
        total = sum(map(len, (self.other_bits, self.different, self.sensitive)), self.identical)
        head = f"{self.name}: {total} traces, {self.identical} identical, "
        head += f"{len(self.other_bits)} with equal counts and other bits"
        if self.other_bits:
            head += f" (fun within {self.fun:.1e}, bound within {self.bound:.1e})"
        old, new = self.seconds
        head += f", {len(self.sensitive)} different by rounding" if self.sensitive else ""
        head += f", {len(self.different)} different; {old:.1f} -> {new:.1f} s"
        names = [f"renamed {n} times: {words}" for words, n in self.renamed.most_common()]
        kinds = {
            "different": self.different, "by rounding": self.sensitive,
            "other bits": self.other_bits, "note": self.notes + names,
        }  # fmt: skip
        shown = []
        for kind, found in kinds.items():
            shown += [f"  {kind}: {line}" for line in found[:details]]
            shown += [f"  {kind}: and {len(found) - details} more"] * (len(found) > details)
        return [head, *shown]


def set_apart(sections: list[SectionComparison], others: list[SectionComparison]) -> None:
    """Move differences to `sensitive` where the trace also differs in the other comparison, by rounding."""
    sensitive = {(s.name, line.partition(": ")[0]) for s in others for line in s.different}
    for s in sections:
        for line in list(s.different):
            if (s.name, line.partition(": ")[0]) in sensitive and "True -> False" not in line:
                s.different.remove(line)
                s.sensitive.append(line)


def compare(old: dict[str, Any], new: dict[str, Any], allow_names: bool = False) -> Any:
    """Return a comparison for each section that both records have, and notes on the others."""
    found = []
    for name in old["sections"]:
        if name in new["sections"]:
            found.append(_section(name, old["sections"][name], new["sections"][name], allow_names))
    left_out = sorted(old["sections"].keys() ^ new["sections"].keys())
    notes = [f"{name}: in one record only, not compared" for name in left_out]
    if old["machine"] != new["machine"]:
        notes.append(f"other releases: {old['machine']} -> {new['machine']}")
    return found, notes


def _section(name: str, old: Any, new: Any, allow_names: bool) -> SectionComparison:
    found = SectionComparison(name)
    found.seconds = (_total(old), _total(new))
    for trace in list(old) + [key for key in new if key not in old]:
        if trace not in old or trace not in new:
            found.different.append(f"{trace}: {'new' if trace in new else 'missing'}")
        elif _timed(old[trace]) or _timed(new[trace]):
            _compare_timed(found, trace, old[trace], new[trace])
        else:
            _compare_exactly(found, trace, old[trace], new[trace], allow_names)
        if trace in old and trace in new:
            _compare_seconds(found, trace, old[trace], new[trace])
    # Lost certifications first.
    found.different.sort(key=lambda line: "certified: True -> False" not in line)
    return found


def _timed(entry: Any) -> bool:
    return bool(entry.get("timed")) or entry["status"] == "TIME_LIMIT"


def _total(traces: Any) -> float:
    return sum(entry.get(SECONDS, 0.0) for entry in traces.values())


def _compare_exactly(
    found: SectionComparison, trace: str, a: Any, b: Any, allow_names: bool
) -> None:
    keys = [key for key in a | b if key != SECONDS and a.get(key) != b.get(key)]
    names = [key for key in keys if key in NAMES]
    work = [key for key in keys if key in WORK]
    bits = [key for key in keys if key not in names and key not in work]
    for key in names:
        found.renamed[f"{key} {a.get(key)!r} -> {b.get(key)!r}"] += 1
    if work or (names and bits and not allow_names):
        found.different.append(f"{trace}: {_differences(a, b, work or names)}")
    elif bits:
        fun, bound = (_relative(a.get(key), b.get(key)) for key in ("fun", "lower_bound"))
        found.fun, found.bound = max(found.fun, fun), max(found.bound, bound)
        found.other_bits.append(f"{trace}: fun {fun:.1e}, bound {bound:.1e}; {', '.join(bits)}")
    else:
        found.identical += 1


def _compare_timed(found: SectionComparison, trace: str, a: Any, b: Any) -> None:
    if a["certified"] and not b["certified"]:
        words = f"certified: True -> False ({a['status']} -> {b['status']})"
        found.different.append(f"{trace}: {words}")
    elif _contradict(found.name, a, b):
        found.different.append(f"{trace}: {_differences(a, b, ['status', 'fun', 'lower_bound'])}")
    else:
        found.identical += 1
        if a["status"] != b["status"]:
            found.notes.append(f"{trace}: {a['status']} -> {b['status']}")


def _contradict(section: str, a: Any, b: Any) -> bool:
    """Return whether certified runs differ in status, or the bound of one exceeds the value of the other."""
    if not (a["certified"] and b["certified"]):
        return False
    if a["status"] != b["status"]:
        return True
    share = CONTRADICTION.get(section, _CONTRADICTION)
    for low, high in ((a, b), (b, a)):
        bound, fun = float(low["lower_bound"]), float(high["fun"])
        if math.isfinite(bound) and math.isfinite(fun) and bound - fun > share * abs(fun) + 1e-9:
            return True
    return False


def _compare_seconds(found: SectionComparison, trace: str, a: Any, b: Any) -> None:
    old, new = a.get(SECONDS, 0.0), b.get(SECONDS, 0.0)
    if new > (1.0 + SLOWER_SHARE) * old + SLOWER_SECONDS:
        found.notes.append(f"{trace}: slower, {old:.3f} -> {new:.3f} s")


def _relative(a: Any, b: Any) -> float:
    """Return the relative difference of two numbers that were written with `repr`."""
    if a == b or a is None or b is None:
        return 0.0
    a, b = float(a), float(b)
    size = max(abs(a), abs(b))
    if not math.isfinite(size):
        return math.inf
    return abs(a - b) / size


def _differences(a: Any, b: Any, keys: list[str]) -> str:
    parts = []
    for key in keys:
        old, new = a.get(key), b.get(key)
        if key == "steps" and old is not None and new is not None:
            pairs = zip(old, new, strict=False)
            first = (i for i, (p, q) in enumerate(pairs) if p != q)
            at = next(first, min(len(old), len(new)))
            parts.append(f"steps from {at} of {len(old)} -> {len(new)}")
        elif isinstance(old, dict) and isinstance(new, dict):
            changed = [k for k in old | new if old.get(k) != new.get(k)]
            words = (f"{k} {old.get(k, 0)} -> {new.get(k, 0)}" for k in changed)
            parts.append(f"{key}: {', '.join(words)}")
        else:
            parts.append(f"{key}: {old} -> {new}")
    return "; ".join(parts)
