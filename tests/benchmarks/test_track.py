"""The record of ratios: every ratio is measured on small data, and entries are appended."""

from __future__ import annotations

import json

import pytest

track = pytest.importorskip("benchmarks.track", exc_type=ImportError)


def test_ratios_are_appended(tmp_path, monkeypatch):
    times = {"ours": (0.5, None, ""), "theirs": (2.0, None, "")}
    monkeypatch.setattr(track, "interleaved", lambda calls, rounds: times)
    monkeypatch.setattr(track, "RATIOS", {"a / b": lambda small: (lambda: 0, lambda: 0)})
    ratios = track.measure(3)
    assert ratios == {"a / b": {"ours": 0.5, "theirs": 2.0, "ratio": 0.25}}
    file = tmp_path / "folder" / "track.json"
    track.append(file, ratios)
    entries = track.append(file, ratios)
    assert len(entries) == 2 and entries == json.loads(file.read_text(encoding="utf-8"))
    assert {"commit", "time", "processor", "lopro"} <= set(entries[0])
    assert track.table(entries).splitlines()[1].endswith(" 0.25")


def test_a_peer_that_fails_has_no_ratio(monkeypatch, capsys):
    times = {"ours": (0.5, None, ""), "theirs": (0.0, None, "ValueError: no")}
    monkeypatch.setattr(track, "interleaved", lambda calls, rounds: times)
    monkeypatch.setattr(track, "RATIOS", {"a / b": lambda small: (lambda: 0, lambda: 0)})
    assert track.measure(3) == {}
    assert "ValueError: no" in capsys.readouterr().err


@pytest.mark.parametrize("name", track.RATIOS)
def test_ours_is_proved_on_small_data(name):
    try:
        ours, _ = track.RATIOS[name](True)
    except ImportError as error:
        pytest.skip(str(error))
    assert ours()
