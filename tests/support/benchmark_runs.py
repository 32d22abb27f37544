"""The benchmarks at toy size: run as commands, or imported from the checkout."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PRESENT = (ROOT / "benchmarks").exists()
ABSENT = "a source distribution has tests but no benchmarks"
needs_benchmarks = pytest.mark.skipif(not PRESENT, reason=ABSENT)


def run_benchmark(module: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Run ``python -m benchmarks.MODULE`` with the sources of the checkout."""
    return subprocess.run(
        [sys.executable, "-m", f"benchmarks.{module}", *arguments],
        cwd=ROOT,
        env=os.environ | {"PYTHONPATH": str(ROOT / "src")},
        capture_output=True,
        text=True,
        timeout=240,
    )


@contextmanager
def benchmarks_importable() -> Iterator[None]:
    """Put the folders from which the benchmarks import each other on the path, within the block."""
    sys.path[:0] = [str(ROOT), str(ROOT / "benchmarks")]
    try:
        yield
    finally:
        del sys.path[:2]
