"""Tables in Markdown: the gap of every method on a problem, and the methods that do not apply."""

from __future__ import annotations

import math
import re
from collections import defaultdict
from collections.abc import Sequence

from benchmarks.compare.records import Record
from benchmarks.compare.run import Curve

__all__ = ["reached", "refusals", "short"]

HEAD = (
    "| Method | gap | proved gap | seconds | gradients of f | gradients of c | proxes "
    "| projections | status |\n"
    "|---|--:|--:|--:|--:|--:|--:|--:|---|"
)


def reached(record: Record) -> str:
    """Return a table of the methods that ran, best first, at their best points."""
    rows = [_row(record, curve) for curve in record.ranked()]
    failed = [f"| {c.method} | {c.failed} |" for c in record.curves if c.failed]
    text = "\n".join([HEAD, *rows]) + "\n"
    return text + ("\n| Failed | |\n|---|---|\n" + "\n".join(failed) + "\n" if failed else "")


def _row(record: Record, curve: Curve) -> str:
    best, reference = curve.best, record.reference
    minimisations = best.linear_minimizations
    cells = [
        record.label(curve) if curve.method == "Auto" else curve.method,
        _small(reference.gap(best.fun)),
        _small(reference.relative(curve.certified)),
        f"{best.seconds:.2g}" if best.seconds < 10.0 else f"{best.seconds:.0f}",
        _count(best.gradients),
        _count(best.constraint_gradients),
        _count(best.proxes),
        f"{best.projections}" + (f" (+ {minimisations} linear)" if minimisations else ""),
        curve.status.lower().replace("_", " "),
    ]
    return "| " + " | ".join(cells) + " |"


def _count(number: float) -> str:
    return f"{number:.0f}" if number >= 10.0 or number == int(number) else f"{number:.1f}"


def _small(number: float) -> str:
    if not math.isfinite(number):
        return "none"
    # Smaller differences of two values are rounding errors.
    return "< 1e-12" if number < 1e-12 else f"{number:.1e}"


def short(reason: str) -> str:
    """Return the part of a message that names the missing capability, without the advice that follows."""
    named = re.sub(r"<[\w.]*?(\w+) object at 0x[0-9a-f]+>", r"\1", reason)
    return re.split(r"; |, got |: use |: give |\. Use |, and it is not known here", named)[0]


def refusals(records: Sequence[Record]) -> str:
    """Return a table of the methods that do not apply, with the reason each of them gives."""
    found: dict[tuple[str, str], list[str]] = defaultdict(list)
    for record in records:
        for curve in record.curves:
            if curve.refused:
                found[curve.method, short(curve.refused)].append(record.name)
    rows = [
        f"| {method} | {', '.join(names)} | {_escaped(reason)} |"
        for (method, reason), names in sorted(found.items())
    ]
    return "\n".join(["| Method | Does not apply to | Reason |", "|---|---|---|", *rows]) + "\n"


def _escaped(text: str) -> str:
    return re.sub(r"([|*_~<])", r"\\\1", text)
