"""Each dependency has one lower bound: two of them could not both be the oldest."""

from __future__ import annotations

from pathlib import Path

from oldest import oldest


def test_no_dependency_has_two_lower_bounds() -> None:
    pins = oldest((Path(__file__).parents[1] / "pyproject.toml").read_text())
    names = [pin.partition("==")[0] for pin in pins]
    assert len(names) == len(set(names)) and {"numpy", "scipy", "clarabel", "pytest"} <= set(names)
