"""The comparison of two records: identical, other bits, different."""

from __future__ import annotations

from copy import deepcopy
from pathlib import Path
from typing import Any

import pytest

from traces.__main__ import main
from traces.compare import compare, set_apart
from traces.entry import measured
from traces.record import read, record, write

ENTRY = {
    "status": "CONVERGED", "certified": True, "method": "Auto()", "source": "duality",
    "counts": {"projections": 3, "matvecs": 7}, "certificate_counts": {}, "iterations": 5,
    "steps": [[1, 1, None], [5, 3, None]], "rows": [["aa", "1.5"], ["bb", "1.25"]],
    "x": "0123", "fun": "1.25", "lower_bound": "1.0", "seconds": 1.0,
}  # fmt: skip


def a_record(**changes: Any) -> dict[str, Any]:
    entry = deepcopy(ENTRY) | changes
    return {"machine": {}, "seconds": {}, "skipped": {}, "sections": {"one": {"trace": entry}}}


def compared(*, allow_names: bool = False, old: Any = None, **changes: Any) -> Any:
    (found,), notes = compare(a_record(**(old or {})), a_record(**changes), allow_names)
    assert notes == []
    return found


def test_a_record_is_identical_to_itself_at_any_time():
    found = compared(seconds=1.05)
    assert (found.identical, found.other_bits, found.different, found.notes) == (1, [], [], [])


def test_other_numbers_are_other_bits_with_the_largest_relative_difference():
    found = compared(fun="1.25000125", lower_bound="0.5", x="4567")
    assert (found.identical, len(found.other_bits), found.different) == (0, 1, [])
    assert found.fun == pytest.approx(1e-6, rel=1e-5)
    assert found.bound == 0.5


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"status": "STALLED"}, "status: CONVERGED -> STALLED"),
        ({"counts": {"projections": 4, "matvecs": 7}}, "counts: projections 3 -> 4"),
        ({"certificate_counts": {"rmatvecs": 1}}, "certificate_counts: rmatvecs 0 -> 1"),
        ({"iterations": 6}, "iterations: 5 -> 6"),
        ({"steps": [[1, 1, None], [5, 4, None]]}, "steps from 1 of 2 -> 2"),
        ({"steps": [[1, 1, None]]}, "steps from 1 of 2 -> 1"),
        ({"certified": False}, "certified: True -> False"),
    ],
)
def test_counts_and_statuses_are_differences(changes, words):
    assert compared(**changes).different == [f"trace: {words}"]


def test_a_new_name_alone_is_a_note_and_with_other_bits_a_difference():
    words = "method 'Auto()' -> 'piqp'"
    alone = compared(method="piqp")
    assert (alone.identical, alone.different, alone.renamed) == (1, [], {words: 1})
    assert compared(method="piqp", fun="2.0").different == ["trace: method: Auto() -> piqp"]
    allowed = compared(allow_names=True, method="piqp", fun="2.0")
    assert (allowed.different, len(allowed.other_bits)) == ([], 1)


def test_what_rounding_can_change_is_set_apart_unless_a_certification_is_lost():
    def sections(**changes: Any) -> Any:
        return compare(a_record(), a_record(**changes))[0]

    found = sections(iterations=6)
    set_apart(found, sections(iterations=5))
    assert (len(found[0].different), found[0].sensitive) == (1, [])
    set_apart(found, sections(iterations=9))
    assert (found[0].different, found[0].sensitive) == ([], ["trace: iterations: 5 -> 6"])
    lost = sections(certified=False)
    set_apart(lost, sections(iterations=9))
    assert len(lost[0].different) == 1


def test_traces_that_are_missing_or_new_are_differences():
    old, new = a_record(), a_record()
    new["sections"]["one"]["second"] = new["sections"]["one"].pop("trace")
    (found,), _ = compare(old, new)
    assert found.different == ["trace: missing", "second: new"]


@pytest.mark.parametrize("flag", [{"timed": True}, {"status": "TIME_LIMIT"}])
def test_of_runs_with_a_limit_the_certification_counts(flag):
    work = {"counts": {"projections": 9}, "iterations": 1}
    assert compared(old=flag, **flag, **work).identical == 1
    lost = compared(old=flag, **(flag | {"certified": False}))
    assert len(lost.different) == 1 and "certified: True -> False" in lost.different[0]
    won = compared(old=flag | {"certified": False, "status": "TIME_LIMIT"}, **flag)
    assert won.different == []


def test_certified_runs_must_not_contradict_each_other():
    timed = {"timed": True}
    assert compared(old=timed, timed=True, fun="1.1").different == []
    assert len(compared(old=timed, timed=True, fun="0.9").different) == 1  # below the old bound
    assert len(compared(old=timed, timed=True, status="INFEASIBLE").different) == 1


def test_parts_of_a_call_that_was_cut_short_all_depend_on_time():
    def entry(status: str) -> dict[str, Any]:
        return {"status": status}

    late = measured(lambda: ["CONVERGED", "TIME_LIMIT"], entry)
    assert [part["timed"] for part in late] == [True, True]
    early = measured(lambda: ["CONVERGED", "STALLED"], entry)
    assert all("timed" not in part for part in early)


def test_an_exception_is_recorded_by_its_class():
    found = measured(lambda: int("one"))
    assert (found["status"], found["certified"]) == ("ValueError", False)


def test_slower_by_more_than_a_tenth_is_a_note():
    found = compared(seconds=1.2)
    assert (found.identical, found.notes) == (1, ["trace: slower, 1.000 -> 1.200 s"])


def test_the_command_exits_with_one_on_differences(tmp_path: Path, capsys):
    paths = [tmp_path / f"{name}.json" for name in ("old", "bits", "work")]
    for path, changes in zip(paths, ({}, {"fun": "1.5"}, {"iterations": 6}), strict=True):
        write(a_record(**changes), path)
    old, bits, work = map(str, paths)
    assert main(["compare", old, old]) == 0
    assert main(["compare", old, bits]) == 1
    assert main(["compare", old, bits, "--allow-bits"]) == 0
    assert main(["compare", old, work, "--allow-bits"]) == 1
    assert main(["compare", old, work, "--allow-bits", "--rounding", work]) == 0
    assert "one: 1 traces, 0 identical" in capsys.readouterr().out


def test_a_record_is_read_as_it_was_written_and_lists_what_was_left_out(tmp_path, monkeypatch):
    pytest.importorskip("cvxpy")
    monkeypatch.setenv("LOPRO_DATA", str(tmp_path))
    found = record(["cvxpy", "maros"])
    assert found["skipped"].keys() == {"maros"}
    assert "set LOPRO_DATA" in found["skipped"]["maros"]
    write(found, tmp_path / "record.json")
    assert read(tmp_path / "record.json") == found
    with pytest.raises(ValueError, match="no section other"):
        record(["other"])
