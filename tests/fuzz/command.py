"""The command line: ``python -m fuzz``."""

from __future__ import annotations

import argparse
import json
import os
import secrets
import sys
import time
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from fuzz.kinds import KINDS, plan
from fuzz.machine.pool import Pool
from fuzz.machine.record import Record
from fuzz.machine.summary import Summary

__all__ = ["main"]

#: Number of failures of one label that are reduced; further ones add little information.
_EXAMPLES = 2


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the fuzzer; return 1 if there was a defect."""
    options = _parser().parse_args(arguments)
    seed = secrets.randbelow(10**6) if options.seed is None else options.seed
    if options.case:
        cases = [_case(text) for text in options.case]
    else:
        count = options.count
        if count is None:
            count = 1000 if options.minutes is None else 10**6
        cases = plan(count, seed, options.kind)
        print(f"seed {seed}, {options.jobs} jobs", flush=True)
    with Pool(min(options.jobs, max(1, len(cases))), options.cpu_clock) as pool:
        summary = _run(pool, cases, seed, options)
        if not options.no_shrink:
            _shrink(pool, summary.failures, options.failures)
    print("\n" + summary.text())
    return 1 if summary.failures else 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m fuzz", description="Random and adversarial calls, judged independently."
    )
    parser.add_argument("--count", "-n", type=int, help="calls (default 1000)")
    parser.add_argument(
        "--seed", type=int, help="other seeds give other cases (default: at random)"
    )
    parser.add_argument(
        "--minutes", type=float, help="start no new call after this number of minutes"
    )
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1, help="worker processes")
    parser.add_argument(
        "--kind", action="append", choices=list(KINDS), help="only calls of this kind"
    )
    parser.add_argument("--case", action="append", metavar="KIND:SEED", help="run this case again")
    parser.add_argument(
        "--failures",
        type=Path,
        default=Path("fuzz-failures"),
        help="folder for programs that show failures (default fuzz-failures)",
    )
    parser.add_argument("--json", type=Path, help="write every record and the summary to this file")
    parser.add_argument(
        "--cpu-clock", action="store_true", help="limits in processor time: for a busy machine"
    )
    parser.add_argument("--no-shrink", action="store_true", help="store no programs")
    return parser


def _case(text: str) -> tuple[str, int]:
    kind, _, seed = text.partition(":")
    if kind not in KINDS or not seed.isdecimal():
        raise SystemExit(f"--case takes KIND:SEED with a kind of {', '.join(KINDS)}, got {text!r}")
    return kind, int(seed)


def _run(pool: Pool, cases: list[tuple[str, int]], seed: int, options: Any) -> Summary:
    stop = None if options.minutes is None else time.monotonic() + 60.0 * options.minutes
    summary, reported = Summary(), time.monotonic()
    for _, record in pool.run(cases, lambda: stop is None or time.monotonic() < stop):
        summary.add(record)
        if record.fails or options.case:
            print(_line(record), flush=True)
        if time.monotonic() - reported > 30.0:
            reported = time.monotonic()
            print(f"  {len(summary.records)} calls, {len(summary.failures)} failures", flush=True)
            _write(summary, seed, options.json)  # keeps the records of an interrupted run
    _write(summary, seed, options.json)
    return summary


def _write(summary: Summary, seed: int, path: Path | None) -> None:
    if path is not None:
        found = {"seed": seed, **summary.as_dict()}
        path.write_text(json.dumps(found, indent=1, default=str), encoding="utf-8")


def _line(record: Record) -> str:
    words = ": ".join(word for word in (record.verdict, record.label, record.detail) if word)
    return f"{record.name}  {words}  ({record.seconds:.2f} s)"


def _shrink(pool: Pool, failures: list[Record], folder: Path) -> None:
    """Shrink a few failures of every label and print the programs."""
    seen: Counter[tuple[str, str, str]] = Counter()
    tasks = []
    for record in failures:
        key = (record.kind, record.verdict, record.label)
        seen[key] += 1
        # A call that was killed would reach the limit again in every attempt to reduce it.
        if seen[key] <= _EXAMPLES and record.label not in ("hang", "process died"):
            tasks.append((record.kind, record.seed, str(folder)))
    for _, text in pool.run(tasks):
        print(f"\n{text}", flush=True)
    if tasks:
        print(f"\nprograms are in {folder}{os.sep}", file=sys.stderr)
