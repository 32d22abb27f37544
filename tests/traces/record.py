"""Run the sections, and write and read their records."""

from __future__ import annotations

import json
import platform
import sys
import time
import warnings
from importlib.metadata import version
from pathlib import Path
from typing import Any

from traces.entry import SECONDS
from traces.sections import SECTIONS

__all__ = ["flat", "read", "record", "section", "write"]

#: Traces that take longer, in seconds, are named while the record is made.
SLOW = 10.0


def record(only: list[str] | None = None, path: Path | None = None) -> dict[str, Any]:
    """Run the sections of these names, all by default; return their traces and what was left out, and why.

    With a path, the record is written after every section.
    """
    wrong = sorted(set(only or ()) - SECTIONS.keys())
    if wrong:
        raise ValueError(f"no section {', '.join(wrong)}; there are {', '.join(SECTIONS)}")
    found: dict[str, Any] = {"machine": _machine(), "seconds": {}, "skipped": {}, "sections": {}}
    for name in only or SECTIONS:
        begin = time.process_time()
        try:
            found["sections"][name] = section(name)
            found["seconds"][name] = round(time.process_time() - begin, 1)
            words = f"{len(found['sections'][name])} traces, {found['seconds'][name]} s"
        except LookupError as reason:
            found["skipped"][name] = str(reason)
            words = f"skipped, {reason}"
        print(f"{name}: {words}", file=sys.stderr, flush=True)
        if path is not None:
            write(found, path)
    return found


def section(name: str) -> dict[str, Any]:
    """Return the traces of a section; a call that returns a list makes several of them."""
    found: dict[str, Any] = {}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for trace, call in SECTIONS[name]():
            entries = flat(trace, call())
            seconds = sum(entry[SECONDS] for entry in entries.values())
            if seconds > SLOW:
                print(f"{name}: {trace} takes {seconds:.0f} s", file=sys.stderr, flush=True)
            found |= entries
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
