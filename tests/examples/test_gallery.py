"""The gallery: every page runs on its own, without a warning and without a screen."""

from __future__ import annotations

import ast
import runpy
import sys
from pathlib import Path

import pytest

INSTALL = 'the gallery needs matplotlib, PyWavelets and scikit-learn: pip install "lopro[docs]"'
for _module in ("pywt", "sklearn"):
    pytest.importorskip(_module, reason=INSTALL)
plt = pytest.importorskip("matplotlib.pyplot", reason=INSTALL)

GALLERY = Path(__file__).parents[2] / "examples" / "gallery"
PAGES = sorted(GALLERY.glob("plot_*.py"))


def test_there_are_enough_of_them():
    assert len(PAGES) >= 8


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_a_page_runs(page, monkeypatch, capsys):
    monkeypatch.setattr(sys, "path", [*sys.path])  # a page may add to it
    try:
        names = runpy.run_path(str(page), run_name="__main__")
    finally:
        plt.close("all")
    assert capsys.readouterr().out
    for name in ("result", "single", "on_host"):
        if hasattr(names.get(name), "success"):
            assert names[name].success


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_a_page_starts_with_a_title(page):
    title, line = ast.get_docstring(ast.parse(page.read_text(encoding="utf-8"))).splitlines()[:2]
    assert line == "=" * len(title)
