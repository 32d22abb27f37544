"""Record traces of every method, and compare two records.

    python -m traces record FILE          (PYTHONPATH=src:tests)
    python -m traces compare OLD NEW

A trace is every iterate's hash, value, violation, bound and counts, and the final status, counts and
certificate. Two records of one machine agree exactly unless behaviour has changed.
"""

from __future__ import annotations

import hashlib
import json
import sys
import warnings
from typing import Any

import numpy as np

import lopro
from traces.methods import methods
from traces.problems import applications, problems

_COLUMNS = ("iterations", "projections", "fun", "violation", "lower_bound", "exact", "regularity")


def digest(x: Any) -> str:
    """Return a short hash of the bytes of an array."""
    x = np.ascontiguousarray(x)
    return hashlib.sha256(str(x.dtype).encode() + x.tobytes()).hexdigest()[:16]


def outcome(result: Any, rows: list[Any]) -> dict[str, Any]:
    """Return everything about a run that must not change."""
    c = result.certificate
    return {
        "rows": rows,
        "status": result.status.name,
        "x": digest(result.x),
        "fun": repr(result.fun),
        "certificate": [repr(v) for v in (c.gap, c.relative_gap, c.lower_bound, c.violation)],
        "source": c.source,
        "counts": {k: v for k, v in result.counts.to_dict().items() if v},
        "certificate_counts": {k: v for k, v in result.certificate_counts.to_dict().items() if v},
        "iterations": result.iterations,
    }


def row(iterate: Any) -> list[str]:
    """Return a line of the trace."""
    return [digest(iterate.x), *(repr(getattr(iterate, name, None)) for name in _COLUMNS)]


def record() -> dict[str, Any]:
    """Run everything."""
    found: dict[str, Any] = {}
    for name, problem in problems():
        for method_name, method in methods():
            found[f"{name} by {method_name}"] = _run(problem, method)
        print(name, file=sys.stderr, flush=True)
    for name, call in applications():
        rows: list[Any] = []
        result = call(callback=lambda i, rows=rows: rows.append(row(i)), seed=0)
        found[name] = outcome(result, rows)
    return found


def _run(problem: Any, method: Any) -> Any:
    rows: list[Any] = []
    try:
        result = lopro.solve(
            problem,
            method=method,
            max_iter=1500,
            max_projections=400,
            seed=0,
            callback=lambda i: rows.append(row(i)),
        )
    except Exception as error:  # also a crash is a trace
        return type(error).__name__  # the words may improve
    return outcome(result, rows)


def compare(old: dict[str, Any], new: dict[str, Any]) -> list[str]:
    """Return a line for every trace that differs, with what differs in it first."""
    lines = []
    for name in sorted(old.keys() | new.keys()):
        a, b = old.get(name), new.get(name)
        if a != b:
            lines.append(f"{name}: {_first_difference(a, b)}")
    return lines


def _first_difference(a: Any, b: Any) -> str:
    if not (isinstance(a, dict) and isinstance(b, dict)):
        return f"{str(a)[:200]} -> {str(b)[:200]}"
    parts = []
    for key in a.keys() | b.keys():
        if a.get(key) == b.get(key):
            continue
        if key == "rows":
            pairs = zip(a[key], b[key], strict=False)
            at = next(
                (i for i, (p, q) in enumerate(pairs) if p != q), min(len(a[key]), len(b[key]))
            )
            parts.append(f"rows from {at} of {len(a[key])}/{len(b[key])}")
        else:
            parts.append(f"{key}: {a.get(key)} -> {b.get(key)}")
    return "; ".join(parts)


def main(arguments: list[str]) -> int:
    """Run the command."""
    warnings.simplefilter("ignore")
    if arguments[:1] == ["record"] and len(arguments) == 2:
        with open(arguments[1], "w") as file:
            json.dump(record(), file, indent=1)
        return 0
    if arguments[:1] == ["compare"] and len(arguments) == 3:
        records = []
        for path in arguments[1:]:
            with open(path) as file:
                records.append(json.load(file))
        lines = compare(*records)
        print(f"{len(records[0])} traces, {len(lines)} differ", *lines, sep="\n")
        return 1 if lines else 0
    print(__doc__)
    return 2


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
