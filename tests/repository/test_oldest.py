"""Each dependency has one lower bound: two of them could not both be the oldest."""

from __future__ import annotations

import runpy
from pathlib import Path

ROOT = Path(__file__).parents[2]
oldest = runpy.run_path(str(ROOT / ".ci" / "oldest.py"))["oldest"]


def test_no_dependency_has_two_lower_bounds() -> None:
    pins = oldest((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    names = [pin.partition("==")[0] for pin in pins]
    assert len(names) == len(set(names)) and {"numpy", "scipy", "clarabel", "pytest"} <= set(names)


def test_extras_that_are_not_installed_are_left_out() -> None:
    project = """
[project]
dependencies = ["numpy>=2.0"]
[project.optional-dependencies]
plot = ["matplotlib>=3.9"]
examples = ["lopro[plot]", "pywavelets>=1.7"]
bench = ["lopro[examples]", "scs>=3.2"]
dev = ["lopro[examples]", "pytest>=8.3"]
"""
    assert oldest(project) == ["matplotlib==3.9", "numpy==2.0", "pytest==8.3", "pywavelets==1.7"]
    assert "scs==3.2" in oldest(project, "bench")
