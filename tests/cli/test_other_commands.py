"""``lopro methods``, ``info``, ``bench`` and ``reproduce``."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import numpy as np
import pytest

import lopro
from lopro.about import methods
from lopro.cli import main, reproduce
from lopro.cli.reproduce import PARTS, Part


def test_methods_lists_every_method(capsys):
    assert main(["methods", "--json"]) == 0
    said = json.loads(capsys.readouterr().out)
    assert set(said) == set(methods())
    assert said["lopro.LoPGD"]["projections"] == lopro.LoPGD.about.projections
    assert main(["methods"]) == 0
    shown = capsys.readouterr().out
    assert all(name in shown for name in methods())


def test_info_names_versions(capsys):
    assert main(["info", "--json"]) == 0
    said = json.loads(capsys.readouterr().out)
    assert said["lopro"] == lopro.__version__
    assert said["packages"]["numpy"] == np.__version__
    assert main(["info"]) == 0
    assert f"numpy {np.__version__}" in capsys.readouterr().out


def test_version(capsys):
    with pytest.raises(SystemExit) as ended:
        main(["--version"])
    assert ended.value.code == 0
    assert capsys.readouterr().out == f"lopro {lopro.__version__}\n"


def test_bench_runs_what_can_solve_the_problem(capsys):
    asked = ["--rows", "10", "--size", "30", "--time-limit", "0.05", "--tol", "1e-2"]
    main(["bench", *asked, "--json"])
    said = json.loads(capsys.readouterr().out)
    assert {"lopro.WorkingSet", "lopro.MatrixFree", "lopro.LoPGD"} <= set(said)
    assert "lopro.OneProjection" not in said and "lopro.baselines.NESTA" not in said


def test_bench_is_certified_or_not(capsys):
    asked = ["--rows", "10", "--size", "30", "--time-limit", "60"]
    assert main(["bench", *asked, "--method", "WorkingSet"]) == 0
    assert main(["bench", *asked, "--method", "LoPGD", "--time-limit", "0.01"]) == 1
    assert "TIME_LIMIT" in capsys.readouterr().out


def test_bench_takes_baselines_too(capsys):
    asked = ["--rows", "10", "--size", "30", "--time-limit", "0.05", "--tol", "1e-2", "--baselines"]
    main(["bench", *asked, "--json"])
    assert "lopro.baselines.NESTA" in json.loads(capsys.readouterr().out)


@pytest.mark.parametrize(
    ("problem", "method"), [("polyhedron", "Auto"), ("metric", "FeatureWorkingSet")]
)
def test_bench_of_one_method(capsys, problem, method):
    asked = ["--rows", "8", "--size", "3", "--time-limit", "0.2", "--method", method]
    code = main(["bench", "--problem", problem, *asked])
    shown = capsys.readouterr().out
    assert code == (0 if "CONVERGED" in shown else 1)
    assert method in shown and problem in shown


def test_reproduce_hands_over_to_the_experiment(capfd, monkeypatch, tmp_path: Path):
    script = tmp_path / "part.py"
    script.write_text("import sys; print('ran', sys.argv[1:])")
    part = Part("a test", "lopro.experiments.absent")
    monkeypatch.setattr(Part, "command", lambda self: [sys.executable, str(script)])
    monkeypatch.setattr(reproduce, "PARTS", {"table1": part})
    assert main(["reproduce", "table1", "--quick"]) == 0
    shown = capfd.readouterr().out
    assert shown == "== table1: a test\nran ['--quick']\n"
    assert main(["reproduce", "--full"]) == 0
    assert "ran ['--full']" in capfd.readouterr().out


def test_reproduce_passes_the_status_on(capfd, monkeypatch):
    monkeypatch.setattr(Part, "command", lambda self: [sys.executable, "-c", "exit(1)"])
    assert main(["reproduce", "table1"]) == 1


def test_reproduce_says_what_is_not_installed(capsys, monkeypatch):
    monkeypatch.setattr(Part, "command", lambda self: None)
    assert main(["reproduce", "rates"]) == 2
    assert "rates is not part of this installation" in capsys.readouterr().err


def test_the_parts_that_exist_are_found():
    table1, rates = PARTS["table1"].command(), PARTS["rates"].command()
    assert table1 is not None and table1[1:] == ["-m", "lopro.experiments.table1"]
    assert rates is not None
    assert Part("nothing", "lopro.experiments.absent").command() is None
