"""The history of a run: columns, as plain data and as a data frame, and its plot."""

from __future__ import annotations

import json

import numpy as np
import pytest
from support.driver_cases import ellipsoid, l1_halfspace

import lopro
from lopro import History

COLUMNS = [
    "epoch",
    "iterations",
    "projections",
    "products",
    "fun",
    "violation",
    "lower_bound",
    "gap",
    "relative_gap",
    "penalty_weight",
    "exact",
    "regularity",
    "seconds",
    "claimed_bound",
]


@pytest.fixture
def result(rng):
    return lopro.solve(ellipsoid(rng).problem, method=lopro.LoPNAG(), tol=1e-7)


def test_columns(result):
    assert list(History.columns) == COLUMNS
    table = result.history.to_dict()
    assert list(table) == COLUMNS
    assert {len(column) for column in table.values()} == {len(result.history)}
    assert table["gap"] == result.history["gap"]


def test_columns_are_consistent(result):
    h = result.history
    assert h["epoch"] == list(range(1, len(h) + 1))
    for column in ("iterations", "projections", "products", "seconds", "lower_bound"):
        assert h[column] == sorted(h[column]), column
    assert h["iterations"][-1] == result.iterations
    assert h["projections"][-1] == result.counts.projections
    both = result.counts, result.certificate_counts
    assert h["products"][-1] == sum(c.matvecs + c.rmatvecs for c in both) > 0
    assert h["relative_gap"][-1] == result.certificate.relative_gap
    # The gap is that of the best point so far, not of the epoch's own.
    best = np.minimum.accumulate(h["fun"])
    np.testing.assert_allclose(h["gap"], np.maximum(best - np.array(h["lower_bound"]), 0.0))
    assert all(isinstance(e, bool) for e in h["exact"])


def test_the_plain_form_can_be_written_as_json(result):
    assert json.loads(json.dumps(result.history.to_dict()))["epoch"] == result.history["epoch"]
    assert json.loads(json.dumps(result.counts.to_dict()))["projections"] > 0


def test_an_unknown_column_is_named(result):
    with pytest.raises(KeyError, match="no column 'gaps'; the columns are epoch"):
        result.history["gaps"]


def test_to_dict_is_a_copy(result):
    result.history.to_dict()["gap"].clear()
    assert len(result.history["gap"]) == len(result.history)


def test_to_pandas(result):
    pandas = pytest.importorskip("pandas")
    frame = result.history.to_pandas()
    assert isinstance(frame, pandas.DataFrame) and list(frame.columns) == COLUMNS
    assert len(frame) == len(result.history)


@pytest.fixture
def pyplot():
    matplotlib = pytest.importorskip("matplotlib")
    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    yield plt
    plt.close("all")


def test_plot(result, pyplot):
    ax = result.plot()
    gap = ax.get_lines()[0]
    h = result.history
    shown = np.array(h["relative_gap"]) > 0.0
    np.testing.assert_array_equal(gap.get_xdata(), np.array(h["iterations"], float)[shown])
    np.testing.assert_array_equal(gap.get_ydata(), np.array(h["relative_gap"])[shown])
    assert ax.get_yscale() == "log" and ax.get_xlabel() == "iterations"
    ax.figure.canvas.draw()


def test_plot_on_axes_of_the_caller(result, pyplot):
    _, ax = pyplot.subplots()
    assert result.plot(ax) is ax


def test_plot_without_a_certificate(pyplot):
    half = lopro.constraints.Polyhedron([[1.0, 1.0]], [1.0])
    f = lopro.objectives.Linear(np.array([-1.0, -1.1]))
    result = lopro.solve(lopro.Problem(f, half), method=lopro.LoPGD(), max_iter=300)
    assert set(result.history["relative_gap"]) == {np.inf}
    ax = result.plot()
    # There is no gap to plot; violations, which are rounding here, may be plotted.
    assert "certified relative gap" not in [line.get_label() for line in ax.get_lines()]
    assert (
        ax.get_title()
        == f"f = {result.history['fun'][-1]:.8g} after {len(result.history)} projections"
    )
    ax.figure.canvas.draw()


def test_plot_of_nothing_is_an_error(pyplot):
    empty = lopro.constraints.Polyhedron([[1.0], [-1.0]], [-1.0, -1.0])
    problem = lopro.Problem(lopro.objectives.L1Norm(), empty)
    with pytest.raises(ValueError, match="nothing to plot"):
        lopro.solve(problem).plot()


def test_the_printed_result_is_complete(rng):
    text = str(lopro.solve(l1_halfspace(rng).problem))
    for word in ("CONVERGED", "lower bound", "gap", "violation", "projections", "Auto()"):
        assert word in text


def test_regularity_is_estimated_at_every_projection():
    """The ratio c(x_hat) / |x_hat - x| is at least rho, and NaN where there was no projection."""
    box = lopro.constraints.Polyhedron.box(-np.ones(4), np.ones(4))
    problem = lopro.Problem(lopro.objectives.SquaredDistance(np.array([3.0, -2.0, 5.0, 0.1])), box)
    result = lopro.solve(problem, method=lopro.MultiplierMethod(), tol=1e-10)
    met = np.array(result.history["regularity"])
    assert np.isfinite(met).any()
    assert (met[np.isfinite(met)] >= box.regularity().value * (1 - 1e-9)).all()


def test_regularity_is_exactly_the_length_of_a_single_row():
    """Outside of ``2 y <= 1`` the ratio is 2 at every point, so that every epoch measures it."""
    half = lopro.constraints.Polyhedron([[0.0, 2.0]], [1.0])
    problem = lopro.Problem(lopro.objectives.Linear(np.array([0.0, -1.0])), half)
    method = lopro.LoPGD(lopro.theorems.HalvingSteps(lam=0.6, eta=0.5, steps=5, epochs=4))
    met = lopro.solve(problem, np.zeros(2), method, tol=0.0).history["regularity"]
    assert met == pytest.approx([2.0] * 4, rel=1e-12)
