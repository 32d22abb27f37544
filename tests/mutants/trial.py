"""A trial of a mutant: a copy of the checkout with the error, and the tests that should detect it."""

from __future__ import annotations

import compileall
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from py_compile import PycInvalidationMode

from mutants.listing import Mutant

__all__ = ["Outcome", "copy_checkout", "run_tests", "try_mutant"]

#: Exit statuses of pytest.
_PASSED, _FAILED = 0, 1


@dataclass(frozen=True)
class Outcome:
    """The outcome of the tests on a mutant."""

    mutant: Mutant
    verdict: str  # "noticed", "too slow", "survived", "broken"
    by: str  # the first test that failed, or the end of the output
    seconds: float

    @property
    def as_expected(self) -> bool:
        """Whether an error was noticed, and an equivalent change was not."""
        noticed = self.verdict in ("noticed", "too slow")
        return not noticed and self.verdict != "broken" if self.mutant.equivalent else noticed


def copy_checkout(root: Path, to: Path) -> Path:
    """Copy the sources and the tests, and link what else tests may read; the checkout stays as it is."""
    to.mkdir()
    for entry in root.iterdir():
        if entry.name in ("src", "tests"):
            shutil.copytree(entry, to / entry.name, ignore=shutil.ignore_patterns("__pycache__"))
        elif entry.is_file():
            shutil.copy(entry, to / entry.name)
        elif not entry.name.startswith("."):
            (to / entry.name).symlink_to(entry)
    # Compiled code is found by the contents of its source: two errors of one length within a second
    # would have the same size and time.
    compileall.compile_dir(to / "src", quiet=1, invalidation_mode=PycInvalidationMode.CHECKED_HASH)
    return to


def run_tests(
    copy: Path, tests: tuple[str, ...], limit: float | None = None, workers: int = 0
) -> tuple[int | None, str]:
    """Run tests in a copy until one fails; return pytest's exit status (None: out of time) and its output."""
    paths = os.pathsep.join(str(copy / part) for part in ("src", "tests"))
    environment = os.environ | {"PYTHONPATH": paths, "PYTHONDONTWRITEBYTECODE": "1"}
    options = ["-x", "-q", "-rfE", "--tb=no", "-p", "no:cacheprovider", "-n", str(workers)]
    command = [sys.executable, "-m", "pytest", *options, *tests]
    process = subprocess.Popen(
        command,
        cwd=copy,
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        start_new_session=True,
    )
    try:
        output, _ = process.communicate(timeout=limit)
    except subprocess.TimeoutExpired:
        _kill(process)
        output, _ = process.communicate()
        return None, output
    return process.returncode, output


def _kill(process: subprocess.Popen[str]) -> None:
    """End a process, with those that it has started where the system has process groups (not on Windows)."""
    if hasattr(os, "killpg"):
        os.killpg(process.pid, signal.SIGKILL)
    else:
        process.kill()


def try_mutant(mutant: Mutant, copy: Path, limit: float) -> Outcome:
    """Put the error into the copy, run its tests, and take it out again."""
    source = copy / mutant.file
    right = source.read_text(encoding="utf-8")
    source.write_text(mutant.applied_to(right), encoding="utf-8")
    started = time.perf_counter()
    try:
        status, output = run_tests(copy, mutant.tests, limit)
    finally:
        source.write_text(right, encoding="utf-8")
    seconds = time.perf_counter() - started
    if status is None:
        return Outcome(mutant, "too slow", f"more than {limit:g} s", seconds)
    if status == _PASSED:
        return Outcome(mutant, "survived", "", seconds)
    failed = re.findall(r"^FAILED (.+?)(?: - .*)?$", output, flags=re.MULTILINE)
    if status == _FAILED and failed:
        return Outcome(mutant, "noticed", failed[0], seconds)
    # No test failed, but pytest reports an error: the module may not even load.
    return Outcome(mutant, "broken", output[-2000:], seconds)
