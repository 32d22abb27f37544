"""The measurement of constants: which it finds, how they are set, and the work that is counted."""

from __future__ import annotations

import dataclasses
import sys
import time
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

ROOT = Path(__file__).parents[2]


@pytest.fixture
def tool(monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.syspath_prepend(str(ROOT))
    return __import__("benchmarks.constants", fromlist=["constants"])


def test_constants_of_a_module_are_found_and_set_where_they_are_imported(
    tool: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    own, other = SimpleNamespace(), SimpleNamespace()
    own.LIMIT = other.LIMIT = 12345.0
    for name, module in (("own", own), ("other", other)):
        monkeypatch.setitem(sys.modules, f"lopro.{name}", module)
    tool._set_global(own, "LIMIT", 7.0)
    assert own.LIMIT == other.LIMIT == 7.0


def test_fields_are_set_in_existing_instances(tool: Any) -> None:
    @dataclasses.dataclass(frozen=True)
    class Settings:
        growth: float = 2.0
        rounds: int = 3

    made = Settings()
    tool._set_field(Settings, "rounds", 30)
    assert (made.rounds, Settings().rounds, Settings().growth) == (30, 30, 2.0)


def test_entries_of_tuples_count_one_by_one(tool: Any) -> None:
    home = SimpleNamespace(__name__="lopro.here", SHARES=(0.5, 0.05), NAMES=("a",))
    found = list(tool._of(home, "SHARES", lambda new: setattr(home, "SHARES", new)))
    assert [(name, value) for name, value, _ in found] == [
        ("here.SHARES[0]", 0.5),
        ("here.SHARES[1]", 0.05),
    ]
    found[1][2](5.0)
    assert home.SHARES == (0.5, 5.0)
    assert list(tool._of(home, "NAMES", print)) == []


def test_every_family_yields_problems_with_work(tool: Any) -> None:
    for package in tool.FAMILIES:
        name, call = next(iter(tool.problems(package)))
        assert name and tool._work(call()) >= 1.0
    with pytest.raises(SystemExit, match="FAMILIES"):
        next(iter(tool.problems("nothing")))


def test_changes_are_described_in_words(tool: Any) -> None:
    base, now = {"a": (9.0, True), "b": (9.0, True)}, {"a": (9.0, True), "b": (19.0, False)}
    assert tool.compare(base, now) == " 1.56 in all,  2.00 at most (b), 1 changed, lost: b"


def test_a_call_that_fails_or_takes_too_long_is_lost(
    tool: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fails() -> Any:
        raise ValueError

    def waits() -> Any:
        time.sleep(10.0)

    monkeypatch.setattr(tool, "LIMIT", 1)
    assert tool._run(fails, False) == tool._run(waits, False) == (float("inf"), False)
    assert tool._run(lambda: 3, False) == (3.0, True)
