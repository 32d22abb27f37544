"""The benchmark of the general solver: a family at toy size, and the profile of invented runs."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import pytest
from support.benchmark_runs import ROOT, needs_benchmarks, run_benchmark

pytestmark = needs_benchmarks
for _module in ("osqp", "proxsuite", "matplotlib"):
    pytest.importorskip(_module, reason='the benchmark needs more: pip install "lopro[bench]"')


@pytest.fixture
def profile(monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.syspath_prepend(str(ROOT))
    import benchmarks.general.profile

    return benchmarks.general.profile


def row(peer: str, problem: str, seconds: float, gap: float, violation: float = 0.0) -> Any:
    judged = {"fun": 1.0, "gap": gap, "violation": violation, "reach": None}
    return {"problem": problem, "peer": peer, "seconds": seconds, "judged": judged, "note": ""}


def test_ratios_are_to_the_fastest_that_solved(profile: Any, tmp_path: Path) -> None:
    """On p the fastest is not feasible; q is solved by one; r by none, and is left out."""
    runs = [
        row("a", "p", 1.0, 1e-7, violation=2e-6),
        row("b", "p", 2.0, 1e-7),
        row("c", "p", 6.0, 1e-9),
        row("a", "q", 5.0, 1e-7),
        row("b", "q", 1.0, 1e-3),
        {"problem": "q", "peer": "c", "seconds": 1.0, "judged": None, "note": "failed"},
        row("a", "r", 1.0, 1.0),
    ]
    (tmp_path / "general_made_up.json").write_text(json.dumps({"runs": runs}), encoding="utf-8")
    matrices = [
        {"file": "m", "peer": "a", "seconds": 3.0, "status": "CONVERGED", "gap": 9e-5},
        {"file": "m", "peer": "b", "seconds": 1.0, "status": "STALLED", "gap": 1e-9},
    ]
    (tmp_path / "general_sdplib.json").write_text(json.dumps({"runs": matrices}), encoding="utf-8")
    entries = profile.entries_of(tmp_path)
    first = [e for e in entries if e.collection == "general_made_up"]
    assert profile.profile(first) == {
        "a": [1.0, math.inf],
        "b": [1.0, math.inf],
        "c": [3.0, math.inf],
    }
    assert profile.profile(e for e in entries if e not in first) == {"a": [1.0], "b": [math.inf]}
    assert "c               1/2       0     0     1" in profile.table(entries)
    profile.draw(entries).savefig(tmp_path / "profile.png")
    assert (tmp_path / "profile.png").stat().st_size > 1000


def test_a_family_runs_at_toy_size_and_ours_solves_all() -> None:
    run = run_benchmark("general", "polyhedral", "--small")
    assert run.returncode == 0, run.stderr
    ours = [line for line in run.stdout.splitlines() if " lopro " in line or "0.001lopro" in line]
    assert len(ours) == 10
    for line in ours:
        numbers = line.split("lopro")[1].split()
        assert float(numbers[2]) <= 1e-9 and float(numbers[3]) <= 1e-6


def test_rows_of_sequences_and_images_are_entries_of_the_table(
    profile: Any, tmp_path: Path
) -> None:
    from benchmarks.general import imaging, sequences

    steps = {"sequence": "s", "steps": 3, "warm solved": 3, "piqp solved": 2, "proxqp solved": 3}
    runs = sequences.entries([steps | {"warm": 4.0, "piqp": 1.0, "proxqp": math.nan}])
    image = {"problem": "p", "tol": 1e-3, "seconds": 2.0, "peer": 1.0, "success": True}
    runs += imaging.entries([image])
    (tmp_path / "general_made_up.json").write_text(json.dumps({"runs": runs}), encoding="utf-8")
    found = profile.profile(profile.entries_of(tmp_path))
    assert found["lopro"] == [1.0, 1.0]
    assert found["piqp"] == found["primal-dual"] == [math.inf, math.inf]
    assert "proxqp" not in found


def test_everyday_problems_are_solved_at_toy_size(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(ROOT))
    from benchmarks.general import everyday

    for name in ("quantile", "svm", "poisson", "assets"):
        ours, *peers = everyday.measured(name, everyday.CASES[name](True))
        assert ours.note.startswith("CONVERGED")
        assert peers and all(peer.judged.gap <= 1e-4 for peer in peers)
