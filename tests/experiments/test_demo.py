"""The demonstration behind ``make reproduce``: its exit status and its behaviour without matplotlib."""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path

import pytest

from paper.experiments import demo


@pytest.fixture
def few_cases(monkeypatch: pytest.MonkeyPatch) -> list[demo.Case]:
    # The figure has styles for five cases: repeat a quick one.
    quick = demo.cases()[2]
    chosen = [quick] * 5
    monkeypatch.setattr(demo, "cases", lambda: chosen)
    return chosen


def test_certified_answers_give_status_0_and_a_figure(
    few_cases: list[demo.Case], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert demo.main(["--output", str(tmp_path)]) == 0
    assert (tmp_path / "convergence.png").stat().st_size > 0
    shown = capsys.readouterr().out
    assert "[5/5]" in shown and "NOT CERTIFIED" not in shown


def test_an_answer_without_certificate_gives_status_1(
    few_cases: list[demo.Case], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    few_cases[0] = replace(demo.cases()[0], tol=0.0, method=_one_step())
    assert demo.main(["--output", str(tmp_path)]) == 1
    assert "NOT CERTIFIED" in capsys.readouterr().out


def _one_step() -> object:
    from lopro import OneProjection
    from lopro.methods.inner import ConstantStep, SubgradientDescent
    from lopro.penalties import Hinge

    return OneProjection(SubgradientDescent(ConstantStep(0.1)), Hinge(1.0), iterations=1)


def test_without_matplotlib_the_table_is_all(
    few_cases: list[demo.Case],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    monkeypatch.setitem(sys.modules, "matplotlib.pyplot", None)
    assert demo.main(["--output", str(tmp_path)]) == 0
    assert "no figure: matplotlib is missing" in capsys.readouterr().out
    assert not list(tmp_path.iterdir())
