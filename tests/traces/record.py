"""Run the sections and write what they did; read it again."""

from __future__ import annotations

import json
import platform
import sys
import time
import warnings
from importlib.metadata import version
from pathlib import Path
from typing import Any

from traces.sections import SECTIONS

__all__ = ["read", "record", "write"]


def record(only: list[str] | None = None) -> dict[str, Any]:
    """Run the sections of these names, all by default; return their traces and what was left out, and why."""
    wrong = sorted(set(only or ()) - SECTIONS.keys())
    if wrong:
        raise ValueError(f"no section {', '.join(wrong)}; there are {', '.join(SECTIONS)}")
    found: dict[str, Any] = {"machine": _machine(), "seconds": {}, "skipped": {}, "sections": {}}
    for name in only or SECTIONS:
        begin = time.process_time()
        try:
            traces = section(name)
        except LookupError as reason:
            found["skipped"][name] = str(reason)
            print(f"{name}: skipped, {reason}", file=sys.stderr, flush=True)
            continue
        seconds = round(time.process_time() - begin, 1)
        found["sections"][name], found["seconds"][name] = traces, seconds
        print(f"{name}: {len(traces)} traces, {seconds} s", file=sys.stderr, flush=True)
    return found


def section(name: str) -> dict[str, Any]:
    """Return the traces of a section; a call that returns a list makes several of them."""
    found: dict[str, Any] = {}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for trace, call in SECTIONS[name]():
            found |= flat(trace, call())
    return found


def flat(trace: str, entry: Any) -> dict[str, Any]:
    """Return the entries of one call by name, numbered where there are several."""
    if isinstance(entry, list):
        return {f"{trace} [{i}]": one for i, one in enumerate(entry)}
    return {trace: entry}


def _machine() -> dict[str, str]:
    packages = ("numpy", "scipy", "piqp", "clarabel")
    return {"python": platform.python_version()} | {name: version(name) for name in packages}


def write(found: dict[str, Any], path: Path) -> None:
    """Write a record, one trace on a line."""
    head = {key: value for key, value in found.items() if key != "sections"}
    parts = []
    for name, traces in found["sections"].items():
        lines = (f"{json.dumps(k)}: {json.dumps(v)}" for k, v in traces.items())
        parts.append(f"{json.dumps(name)}: {{\n" + ",\n".join(lines) + "\n}")
    text = json.dumps(head)[:-1] + ', "sections": {\n' + ",\n".join(parts) + "\n}}\n"
    path.write_text(text, encoding="utf-8")


def read(path: Path) -> dict[str, Any]:
    """Read a record."""
    found: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    return found
