"""Results of every method and application can be shown as text, in one line, as a table, and as a plot."""

from __future__ import annotations

import re

import numpy as np
import pytest
from support import array_calls

import lopro

CASES = array_calls.methods() | array_calls.applications()


@pytest.fixture
def pyplot():
    matplotlib = pytest.importorskip("matplotlib")
    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    yield plt
    plt.close("all")


@pytest.mark.parametrize("name", CASES)
def test_a_result_shows_its_value_its_bound_and_a_picture(name, monkeypatch, pyplot):
    results = []
    original = array_calls.answer_of

    def kept(result):
        results.append(result)
        return original(result)

    monkeypatch.setattr(array_calls, "answer_of", kept)
    CASES[name].call(np.asarray, 1e-3)
    (result,) = results
    if isinstance(result, (list, lopro.batch.Results)):
        result = result[0]
    rows = dict(re.findall(r"^  (\S.*?)  +(\S.*)$", str(result), re.MULTILINE))
    assert {"fun", "lower bound", "gap", "proof", "violation", "method", "work"} <= set(rows)
    if rows["lower bound"] != "unknown" and "above the value" not in rows["lower bound"]:
        assert float(rows["lower bound"]) <= float(rows["fun"])
    assert "\n" not in repr(result) and len(repr(result)) < 400
    table = result._repr_html_()
    assert all(f">{title}</th>" in table for title in rows)
    ax = result.plot()
    assert ax.has_data() or ax.images
    assert (ax.get_xlabel() and ax.get_ylabel()) or ax.get_legend() is not None
