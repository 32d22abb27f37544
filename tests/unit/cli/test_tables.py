"""Tables of samples: columns by name or number, and errors that name line and column."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from lopro.cli.exit_codes import BadInput
from lopro.cli.files import read_samples


@pytest.fixture
def table(tmp_path: Path) -> Path:
    path = tmp_path / "data.csv"
    path.write_text("id,height,weight,kind\na,1,2,cat\n\nb,3,4.5,dog\n", encoding="utf-8-sig")
    return path


@pytest.mark.parametrize("label", ["kind", "3", "-1"])
def test_columns_by_name_and_number(table, label):
    samples = read_samples(table, label, ignore=["id"])
    np.testing.assert_array_equal(samples.X, [[1, 2], [3, 4.5]])
    assert samples.labels.tolist() == ["cat", "dog"]
    assert samples.features == ["height", "weight"]


def test_separator_follows_the_suffix(tmp_path):
    path = tmp_path / "data.tsv"
    path.write_text("x\ty\n1\t0\n", encoding="utf-8")
    assert read_samples(path, "y").X.tolist() == [[1.0]]


@pytest.mark.parametrize(
    ("text", "label", "words"),
    [
        ("a,b\n1,2\n", "c", "no column 'c'; its columns are a, b"),
        ("a,b\n1,2\n", "7", "no column '7'"),
        ("a,b\n1,2\nx,3\n", "b", "line 3, column 'a': 'x' is not a number"),
        ("a,b\n1,2\n1\n", "b", "line 3: 1 cells, but 2 columns"),
        ("a,b\n", "b", "at least one sample"),
        ("b\n1\n", "b", "no feature left"),
    ],
)
def test_errors_name_line_and_column(tmp_path, text, label, words):
    path = tmp_path / "data.csv"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(BadInput) as error:
        read_samples(path, label)
    assert words in str(error.value)
