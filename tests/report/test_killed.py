"""Killed at fifty moments (SIGKILL), the job resumes without loss and without incomplete parts."""

from __future__ import annotations

import json
import multiprocessing
import os
import signal
import time
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from paper.report import job
from paper.report.blocks import Table
from paper.report.draft import Draft
from paper.report.order import Order
from paper.report.parts import TITLES

pytest.importorskip("matplotlib", reason='needs matplotlib: pip install "lopro[plot]"')
pytest.importorskip("pywt", reason='needs PyWavelets: pip install "lopro[examples]"')

KILLS = 50
#: Large enough for a kill to fall into the writing of it.
CONTENT = os.urandom(1 << 20)


def part(name: str) -> Any:
    """Return a part that takes a few milliseconds and writes some large files."""

    def run(order: Order) -> Draft:
        time.sleep(0.002)
        draft = Draft(f"Title of {name}", {"seed": "0"})
        draft.table(Table(f"numbers of {name}", ("a", "b"), (("x", "1"),)))
        draft.files |= {f"{k}.bin": CONTENT for k in range(4)}
        return draft

    return SimpleNamespace(run=run, parameters=lambda order: {"seed": 0})


def finished(out: Path) -> dict[str, int]:
    """Return the whole parts on disk, with the time at which each was written; half a part fails."""
    found = {}
    for folder in (out / "parts").glob("[!.]*"):
        json.loads((folder / "part.json").read_text(encoding="utf-8"))
        for k in range(4):
            assert (folder / f"{k}.bin").read_bytes() == CONTENT
        found[folder.name] = (folder / "part.json").stat().st_mtime_ns
    return found


def work(out: Path) -> None:
    """The work of the process that is killed: the whole job, with other parts."""
    job.part = part  # type: ignore[assignment]
    job.reproduce(out=out)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="forks: another start would take too long")
@pytest.mark.filterwarnings("ignore::DeprecationWarning")
# JAX warns of it where another test has loaded it.
@pytest.mark.filterwarnings("ignore:os.fork:RuntimeWarning")
def test_fifty_kills_cost_nothing_that_was_finished(tmp_path: Path, capsys):
    fork, rng = multiprocessing.get_context("fork"), np.random.default_rng(0)
    kept: dict[str, int] = {}
    started = time.monotonic()
    whole = fork.Process(target=work, args=(tmp_path / "whole",))
    whole.start()
    whole.join()
    usual = time.monotonic() - started
    assert whole.exitcode == 0 and len(finished(tmp_path / "whole")) == len(TITLES)
    out, killed = tmp_path / "killed", 0
    for _ in range(KILLS):
        process = fork.Process(target=work, args=(out,))
        process.start()
        time.sleep(float(rng.uniform(0.0, 0.3)) * usual)
        assert process.pid is not None
        os.kill(process.pid, signal.SIGKILL)
        process.join()
        killed += process.exitcode == -signal.SIGKILL
        now = finished(out) if (out / "parts").exists() else {}
        assert kept.items() <= now.items()  # what was finished is there, and was not run again
        kept = now
    assert killed >= 10
    last = fork.Process(target=work, args=(out,))
    last.start()
    last.join()
    assert last.exitcode == 0
    now = finished(out)
    assert kept.items() <= now.items() and len(now) == len(TITLES)
    assert list((out / "parts").glob(".*")) == []
    page = (out / "index.html").read_text(encoding="utf-8")
    assert "Not run yet." not in page and all(f"Title of {name}" in page for name in TITLES)
