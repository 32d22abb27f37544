"""Counts of `lopro.bpdn` and `lopro.lasso` on some hundred instances: products, columns, steps, methods.

Counts are exact, so that two commits can be compared on a busy machine:

    python -m benchmarks.bpdn.counts before.json              # record
    python -m benchmarks.bpdn.counts after.json before.json   # record and compare
    python -m benchmarks.bpdn.counts after.json before.json dense   # those with this word in their name
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from benchmarks.bpdn.counted import INSTANCES

__all__ = ["compare", "record"]

#: Numbers that depend on rounding, with the relative and absolute differences that are ignored.
CLOSE = {"fun": (1e-9, 0.0), "bound": (1e-9, 0.0), "gap": (0.1, 1e-9), "violation": (0.1, 1e-9)}
COUNTERS = ("matvecs", "rmatvecs", "columns", "passes", "projections")


def rows_of(result: Any) -> Iterator[dict[str, Any]]:
    """Yield the record of one result, or of each of several."""
    for one in result if isinstance(result, list) else [result]:
        counts = {name: int(getattr(one.counts, name)) for name in COUNTERS}
        yield {
            **counts,
            "iterations": int(one.iterations),
            "fun": float(one.fun),
            "bound": float(one.certificate.lower_bound),
            "gap": float(one.certificate.relative_gap),
            "violation": float(one.certificate.violation),
            "status": one.status.name,
            "method": one.method,
        }


def record(names: list[str] | None = None) -> dict[str, Any]:
    """Return the counts of each instance."""
    found: dict[str, Any] = {}
    for name in names or list(INSTANCES):
        started = time.perf_counter()
        try:
            rows: Any = list(rows_of(INSTANCES[name]()))
        except Exception as error:
            rows = [{"raised": f"{type(error).__name__}: {error}"}]
        found[name] = rows
        print(f"{time.perf_counter() - started:7.2f} s  {name}: {_short(rows)}", flush=True)
    return found


def _short(rows: Any) -> str:
    row = rows[0]
    if "raised" in row:
        return str(row["raised"])
    numbers = " ".join(f"{name} {sum(r[name] for r in rows)}" for name in (*COUNTERS, "iterations"))
    return f"{row['status']} {numbers} gap {max(r['gap'] for r in rows):.1e} {row['method']}"


def compare(after: dict[str, Any], before: dict[str, Any]) -> int:
    """Print where counts, values or statuses differ; return the number of such instances."""
    differing = 0
    for name, rows in after.items():
        old = before.get(name)
        lines = ["is new"] if old is None else list(_differences(rows, old))
        differing += bool(lines)
        for line in lines:
            print(f"{name}: {line}")
    print(f"{differing} of {len(after)} instances differ")
    return differing


def _differences(rows: list[dict[str, Any]], old: list[dict[str, Any]]) -> Iterator[str]:
    if len(rows) != len(old):
        yield f"{len(old)} results became {len(rows)}"
        return
    for i, (now, then) in enumerate(zip(rows, old, strict=True)):
        keys = {**then, **now}
        changed = [f"{k} {then.get(k)} -> {now.get(k)}" for k in keys if not _same(k, then, now)]
        if changed:
            yield f"[{i}] " + ", ".join(changed)


def _same(key: str, then: dict[str, Any], now: dict[str, Any]) -> bool:
    """Return whether two numbers agree up to rounding; gaps up to a tenth."""
    a, b = then.get(key), now.get(key)
    if a == b or (a != a and b != b):
        return True
    if key not in CLOSE or a is None or b is None:
        return False
    relative, absolute = CLOSE[key]
    return bool(abs(a - b) <= max(absolute, relative * abs(a)))


def main(arguments: list[str]) -> int:
    """Write the record to the first file; compare with the second, if given."""
    names = [name for name in INSTANCES if any(word in name for word in arguments[2:])]
    found = record(names or None)
    Path(arguments[0]).write_text(json.dumps(found, indent=1), encoding="utf-8")
    if len(arguments) > 1:
        compare(found, json.loads(Path(arguments[1]).read_text(encoding="utf-8")))
    return 0


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
