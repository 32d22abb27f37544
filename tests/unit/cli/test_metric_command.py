"""``lopro metric``: a table or arrays in, a matrix with a certificate out."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

import lopro
from lopro.cli import main


@pytest.fixture
def data(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, rng):
    """Return samples and labels; they are in data.csv, X.npy and y.npy of the working directory."""
    monkeypatch.chdir(tmp_path)
    y = np.repeat([0, 1], 15)
    X = rng.standard_normal((30, 4))
    X[:, 2] += 3 * y
    lines = ["id,a,b,c,d,kind"]
    kinds = np.array(["cat", "dog"])[y]
    for k, (row, kind) in enumerate(zip(X, kinds, strict=True)):
        lines.append(",".join([f"s{k}", *(repr(float(v)) for v in row), kind]))
    Path("data.csv").write_text("\n".join(lines) + "\n", encoding="utf-8")
    np.save("X.npy", X)
    np.save("y.npy", y)
    return X, y


def test_the_json_has_the_answer_of_the_library(data, capsys):
    argv = ["metric", "data.csv", "--label", "kind", "--ignore", "id", "--l1", "0.01", "--json"]
    assert main(argv) == 0
    printed, expected = json.loads(capsys.readouterr().out), lopro.learn_metric(*data, l1=0.01)
    np.testing.assert_allclose(printed["A"], expected.x, atol=1e-12)
    assert printed["features"] == ["a", "b", "c", "d"]
    assert printed["off_diagonal_entries"] == 12
    off = expected.x[~np.eye(4, dtype=bool)]
    assert printed["off_diagonal_nonzeros"] == np.sum(np.abs(off) > 1e-6 * expected.x.max())


def test_arrays_and_an_output_file(data, capsys):
    argv = ["metric", "X.npy", "--labels", "y.npy", "--l1", "0.01", "-o", "metric.npz"]
    assert main(argv) == 0
    assert "4 x 4" in capsys.readouterr().out
    with np.load("metric.npz") as found:
        np.testing.assert_allclose(found["L"].T @ found["L"], found["A"], atol=1e-9)
        assert found["features"].tolist() == ["x0", "x1", "x2", "x3"]


def test_standardized_features(data, capsys):
    X, y = data
    main(["metric", "X.npy", "--labels", "y.npy", "--standardize", "--json"])
    printed = json.loads(capsys.readouterr().out)
    scaled = (X - X.mean(0)) / X.std(0)
    assert printed["fun"] == pytest.approx(lopro.learn_metric(scaled, y).fun, rel=1e-9)


def test_not_converged(data, capsys):
    argv = ["--method", "LoPGD", "--max-iter", "2"]
    assert main(["metric", "X.npy", "--labels", "y.npy", *argv]) == 1
    assert "MAX_ITER" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["data.csv", "--label", "colour"], "no column 'colour'"),
        (["data.csv", "--label", "kind"], "column 'id': 's0' is not a number"),
        (["none.csv", "--label", "kind"], "no file none.csv"),
        (["y.npy", "--labels", "y.npy"], "must hold a matrix"),
        (["X.npy", "--labels", "y.npy", "--ignore", "a"], "--ignore"),
        (["data.csv", "--label", "kind", "--ignore", "id", "--l1", "-1"], "l1"),
    ],
)
def test_bad_input(data, capsys, arguments, words):
    assert main(["metric", *arguments]) == 2
    shown = capsys.readouterr()
    assert words in shown.err and shown.out == ""
