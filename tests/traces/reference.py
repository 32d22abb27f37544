"""The record in the repository: the part that does not depend on the processor, in few bytes.

Records are made with several kernels of the linear algebra. Of each trace the status, counts and numbers in
which all agree are written to ``reference/SECTION.json``; the others are null. So a change of behaviour fails
on every machine, and another order of summation on none.
"""

from __future__ import annotations

import json
import math
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from traces.record import read

__all__ = ["FIELDS", "FOLDER", "differences", "make", "summary"]

FOLDER = Path(__file__).parent / "reference"

#: Kernels of OpenBLAS with vectors of 512, 256 and 256 bits without fused products, and NumPy's own without
#: vectors beyond 128 bits; a processor without them uses those it has.
KERNELS: tuple[dict[str, str], ...] = (
    {},
    {"OPENBLAS_CORETYPE": "Haswell"},
    {"OPENBLAS_CORETYPE": "Sandybridge", "NPY_DISABLE_CPU_FEATURES": "X86_V4 X86_V3"},
)
#: Sections without a time limit, or with one that few of their traces meet.
SECTIONS = ("paper", "catalogue", "fuzz", "bpdn", "metric", "correlation", "cvxpy")

FIELDS = ("status", "iterations", "projections", "products", "fun", "lower_bound")
#: Numbers are kept, with ten digits, where all kernels agree to the first share; tests allow the second.
AGREE, ALLOWED = 1e-10, 1e-9


def summary(entry: Any) -> list[Any]:
    """Return the part of a trace that the reference keeps."""
    if entry["status"] == "TIME_LIMIT" or entry.get("timed"):  # its progress depends on the machine
        return [None] * len(FIELDS)
    counts = entry.get("counts", {})
    products = counts.get("matvecs", 0) + counts.get("rmatvecs", 0)
    numbers = [_number(entry.get(key)) for key in ("fun", "lower_bound")]
    work = [entry.get("iterations", 0), counts.get("projections", 0), products]
    return [entry["status"], *work, *numbers]


def _number(text: Any) -> float | None:
    value = math.nan if text is None else float(text)
    return value if math.isfinite(value) else None


def differences(old: list[Any], new: list[Any]) -> list[str]:
    """Return the differences of two summaries in words; null in the first agrees with everything."""
    return [
        f"{name} {a} -> {b}"
        for name, a, b in zip(FIELDS, old, new, strict=True)
        if a is not None and not _same(a, b, ALLOWED)
    ]


def agreement(summaries: list[list[Any]]) -> list[Any]:
    """Return a summary with null where not all of them agree."""
    first, *others = summaries
    return [
        value if all(_same(value, other[i], AGREE) for other in others) else None
        for i, value in enumerate(first)
    ]


def _same(a: Any, b: Any, share: float) -> bool:
    numbers = isinstance(a, float) and isinstance(b, float)
    return a == b or (numbers and math.isclose(a, b, rel_tol=share))


def _text(kept: list[Any]) -> str:
    """Return a summary as JSON."""
    rounded = [float(f"{v:.10g}") if isinstance(v, float) else v for v in kept]
    return json.dumps(rounded, separators=(",", ":"))


def make(only: list[str] | None, folder: Path = FOLDER) -> None:
    """Record with every kernel and write what they agree on."""
    sections = ",".join(only or SECTIONS)
    records = []
    with tempfile.TemporaryDirectory() as place:
        for i, kernel in enumerate(KERNELS):
            path = Path(place) / f"{i}.json"
            command = [sys.executable, "-m", "traces", "record", str(path), "--only", sections]
            subprocess.run(command, env=os.environ | kernel, check=True)
            records.append(read(path)["sections"])
    keep(records, folder)


def keep(records: list[dict[str, Any]], folder: Path) -> None:
    """Write for each section what the records agree on."""
    for name, traces in records[0].items():
        kept = {t: agreement([summary(r[name][t]) for r in records]) for t in traces}
        lines = (f"{json.dumps(t)}: {_text(v)}" for t, v in kept.items())
        text = "{\n" + ",\n".join(lines) + "\n}\n"
        (folder / f"{name}.json").write_text(text, encoding="utf-8")
