"""The record of a call: a plain dictionary for each result, for JSON.

The keys fall into three groups. What the call did (`WORK`: statuses, counts) must stay as it is. What it is
called (`NAMES`) may be reworded. All other keys are numbers and hashes, which even the
order of a summation changes. An exception is recorded by the name of its class.
"""

from __future__ import annotations

import hashlib
import time
from collections.abc import Callable
from typing import Any

import numpy as np

__all__ = ["NAMES", "PROVED", "SECONDS", "WORK", "digest", "measured", "outcome", "row"]

#: What a call did.
WORK = (
    "status", "certified", "counts", "certificate_counts", "iterations", "steps", "multipliers", "warnings",
)  # fmt: skip
#: Which method and which proof, in words.
NAMES = ("method", "source")
#: Processor time of the whole call; never a part of a comparison of behaviour.
SECONDS = "seconds"

#: Statuses that are claims with a proof.
PROVED = ("CONVERGED", "INFEASIBLE", "UNBOUNDED")

_INTEGERS = ("iterations", "projections", "exact")
_NUMBERS = ("fun", "violation", "lower_bound", "regularity")


def digest(x: Any) -> str:
    """Return a short hash of the bytes of an array."""
    x = np.ascontiguousarray(x)
    return hashlib.sha256(str(x.dtype).encode() + x.tobytes()).hexdigest()[:16]


def row(iterate: Any) -> tuple[list[Any], list[str]]:
    """Return a line of the trace: what was done so far, and the numbers."""
    numbers = [repr(getattr(iterate, name, None)) for name in _NUMBERS]
    return [getattr(iterate, name, None) for name in _INTEGERS], [digest(iterate.x), *numbers]


def outcome(result: Any, rows: list[Any] | None = None) -> dict[str, Any]:
    """Return everything about a result that must not change."""
    c = result.certificate
    multipliers = getattr(result, "multipliers", None)
    found = {
        "status": result.status.name,
        "certified": result.status.name in PROVED,
        "method": result.method,
        "source": c.source,
        "counts": {k: v for k, v in result.counts.to_dict().items() if v},
        "certificate_counts": {k: v for k, v in result.certificate_counts.to_dict().items() if v},
        "iterations": result.iterations,
        "multipliers": None if multipliers is None else [np.shape(v) for v in multipliers],
        "warnings": len(result.warnings),
        "x": digest(result.x),
        "fun": repr(float(result.fun)),
        "lower_bound": repr(float(c.lower_bound)),
        "certificate": [repr(float(v)) for v in (c.gap, c.relative_gap, c.violation, c.radius)],
        "duals": [digest(v) for v in multipliers or ()],
    }
    if rows is not None:
        found |= {"steps": [done for done, _ in rows], "rows": [numbers for _, numbers in rows]}
    return _plain(found)


def measured(call: Callable[[], Any], entry: Callable[[Any], Any] = outcome) -> Any:
    """Return the entry of what a call returns, or the name of its exception; with processor time."""
    begin = time.process_time()
    try:
        result = call()
    except Exception as error:  # the words may improve, the class is part of the behaviour
        found: Any = {"status": type(error).__name__, "certified": False}
        return found | {SECONDS: time.process_time() - begin}
    seconds = time.process_time() - begin
    if isinstance(result, (list, tuple)):
        parts = [entry(one) | {SECONDS: seconds / len(result)} for one in result]
        # They share the limit: where it has cut one short, the others depend on time as well.
        late = any(part["status"] == "TIME_LIMIT" for part in parts)
        return [part | {"timed": True} for part in parts] if late else parts
    return entry(result) | {SECONDS: seconds}


def _plain(value: Any) -> Any:
    """Return the value as JSON gives it back, so that what was read equals what was recorded."""
    if isinstance(value, dict):
        return {str(k): _plain(v) for k, v in value.items()}
    if isinstance(value, (list, tuple)):
        return [_plain(v) for v in value]
    return value.item() if isinstance(value, np.generic) else value
