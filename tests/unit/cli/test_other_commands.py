"""``lopro methods``, ``info`` and ``bench``."""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pytest

import lopro
from lopro.cli import main
from lopro.methods.registry import methods


def test_methods_lists_every_method(capsys):
    assert main(["methods", "--json"]) == 0
    printed = json.loads(capsys.readouterr().out)
    assert set(printed) == set(methods())
    assert printed["lopro.LoPGD"]["projections"] == lopro.LoPGD.card.projections
    assert main(["methods"]) == 0
    shown = capsys.readouterr().out
    assert all(name in shown for name in methods())


def test_info_names_versions(capsys):
    assert main(["info", "--json"]) == 0
    printed = json.loads(capsys.readouterr().out)
    assert printed["lopro"] == lopro.__version__
    assert printed["packages"]["numpy"] == np.__version__
    assert main(["info"]) == 0
    assert f"numpy {np.__version__}" in capsys.readouterr().out


def test_version(capsys):
    with pytest.raises(SystemExit) as ended:
        main(["--version"])
    assert ended.value.code == 0
    assert capsys.readouterr().out == f"lopro {lopro.__version__}\n"


def test_bench_runs_the_methods_that_support_the_problem(capsys):
    argv = ["--rows", "10", "--size", "30", "--time-limit", "0.05", "--tol", "1e-2"]
    main(["bench", *argv, "--json"])
    printed = json.loads(capsys.readouterr().out)
    assert {"lopro.WorkingSet", "lopro.MatrixFree", "lopro.LoPGD"} <= set(printed)
    assert "lopro.OneProjection" not in printed and "lopro.baselines.NESTA" not in printed


def test_bench_is_certified_or_not(capsys):
    argv = ["--rows", "10", "--size", "30", "--time-limit", "60"]
    assert main(["bench", *argv, "--method", "WorkingSet"]) == 0
    assert main(["bench", *argv, "--method", "LoPGD", "--time-limit", "0.01"]) == 1
    assert "TIME_LIMIT" in capsys.readouterr().out


def test_an_interrupt_ends_the_whole_bench(monkeypatch, capsys):
    def interrupted(*args, **options):
        return replace(lopro.solve(*args, **options), status=lopro.Status.INTERRUPTED)

    monkeypatch.setattr("lopro.cli.bench.solve", interrupted)
    assert main(["bench", "--rows", "10", "--size", "30", "--json"]) == 130
    printed = json.loads(capsys.readouterr().out)
    assert [run["status"] for run in printed.values()] == ["INTERRUPTED"]


def test_bench_takes_baselines_too(capsys):
    argv = ["--rows", "10", "--size", "30", "--time-limit", "0.05", "--tol", "1e-2", "--baselines"]
    main(["bench", *argv, "--json"])
    assert "lopro.baselines.NESTA" in json.loads(capsys.readouterr().out)


@pytest.mark.parametrize(
    ("problem", "method"), [("polyhedron", "Auto"), ("metric", "FeatureWorkingSet")]
)
def test_bench_of_one_method(capsys, problem, method):
    argv = ["--rows", "8", "--size", "3", "--time-limit", "0.2", "--method", method]
    code = main(["bench", "--problem", problem, *argv])
    shown = capsys.readouterr().out
    assert code == (0 if "CONVERGED" in shown else 1)
    assert method in shown and problem in shown
