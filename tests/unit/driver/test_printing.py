"""Results as shown to users: printed, in one line, as a table, as a plot, and as progress."""

from __future__ import annotations

import dataclasses
import io
import re
import sys

import numpy as np
import pytest

import lopro
from lopro import Problem
from lopro.constraints import Polyhedron
from lopro.newton.lagrangian import CompositeLagrangian
from lopro.objectives import LeastSquares, Linear
from lopro.protocol import Candidate, Claim, ProvedBound


class Proves:
    """A method that proposes a point with this value, and a lower bound."""

    def __init__(self, value, bound, gained=0.0, claim=None):
        self.candidate = Candidate(
            np.array([value]), ProvedBound(bound, "by <hand>", gained=gained), claim=claim
        )

    def check(self, problem):
        pass

    def run(self, bench, x0):
        yield self.candidate


def proved(value, bound, **more):
    problem = Problem(Linear(np.array([1.0])), Polyhedron([[-1.0]], [0.0]), gap_scale=1.0)
    return lopro.solve(problem, method=Proves(value, bound, **more), tol=1e-3)


def row(result, name):
    found = re.search(rf"^  {name} +(.*)$", str(result), re.MULTILINE)
    return found.group(1)


def test_a_bound_is_printed_with_the_digits_of_the_value():
    result = proved(139.1196748, 139.1196741)
    assert row(result, "fun") == "139.1196748" and row(result, "lower bound") == "139.1196741"
    result = proved(139.11967484, 139.11967482)
    assert row(result, "fun") == "139.1196748" == row(result, "lower bound")


@pytest.mark.parametrize("seed", range(200))
def test_a_bound_is_never_printed_above_the_value(seed):
    rng = np.random.default_rng(seed)
    value = float(rng.uniform(0.1, 1e4))
    bound = value * (1.0 - 10.0 ** rng.uniform(-16, -1))
    result = proved(value, bound)
    assert float(row(result, "lower bound")) <= float(row(result, "fun"))


def test_a_value_below_the_bound_has_a_reason():
    gained = proved(2.0, 2.0 + 1e-6, gained=2e-6)
    assert row(gained, "lower bound") == (
        "2.000001 (above the value by 1e-06, which the violation allows)"
    )
    rounded = proved(2.0, 2.0 + 4.5e-16)
    assert row(rounded, "lower bound") == "2 (above the value by 4.4e-16, by rounding)"


def test_work_lists_the_operations_of_the_run(rng):
    rows = Polyhedron(rng.standard_normal((20, 6)), np.ones(20))
    f = LeastSquares(rng.standard_normal((10, 6)), rng.standard_normal(10))
    result = lopro.solve(Problem(f, rows), method=lopro.MultiplierMethod())
    c = result.counts
    assert row(result, "work").startswith(
        f"{result.iterations} iterations, {c.projections} projection"
        f"{'' if c.projections == 1 else 's'}, {c.gradients} gradients of f, "
        f"{c.constraint_gradients} gradients of c, {c.matvecs + c.rmatvecs} products, "
    )
    assert "gradient" not in row(proved(2.0, 1.5), "work")
    assert row(dataclasses.replace(result, iterations=1), "work").startswith("1 iteration, ")


def test_without_a_point_no_numbers_are_printed():
    empty = Polyhedron([[1.0], [-1.0]], [0.0, -1.0])
    shown = str(lopro.solve(Problem(Linear(np.array([1.0])), empty)))
    assert shown.startswith("INFEASIBLE: the constraint set is empty\n  method ")
    assert "nan" not in shown and "gap" not in shown


def test_a_claim_is_printed_as_one():
    result = proved(2.0, 1.0, claim=Claim(0.25, "Theorem 2"))
    assert row(result, "claimed") == "a gap of 0.25, not proved (Theorem 2)"
    assert "claimed" not in str(proved(2.0, 1.0))


@pytest.mark.parametrize("size", [2, 500, 1000, 5000])
def test_one_line_never_holds_a_long_point(rng, size):
    A = rng.standard_normal((2, size))
    for result in (lopro.bpdn(A, A[:, 0], 0.1), lopro.lasso(A, A[:, 0], 0.5)):
        line = repr(result)
        assert "\n" not in line and len(line) < 250
        assert ("x=array([" in line) == (size == 2)
        assert size == 2 or f"x=<array of shape ({size},)>" in line
        assert line.startswith(f"{type(result).__name__}(CONVERGED, fun=")


def test_every_kind_of_result_is_one_line(rng):
    X = rng.standard_normal((10, 3))
    for result in (lopro.learn_metric(X, np.arange(10) % 2), lopro.nearest_correlation(np.eye(3))):
        assert "\n" not in repr(result) and "<array of shape (3, 3)>" in repr(result)


def test_a_notebook_gets_a_table():
    result = proved(2.0, 1.5)
    table = result._repr_html_()
    assert table.startswith("<table><tr>") and table.endswith("</tr></table>")
    cells = dict(re.findall(r"<th[^>]*>(.*?)</th><td[^>]*>(.*?)</td>", table))
    names = ["SCHEDULE_DONE", "fun", "lower bound", "gap", "proof", "violation", "method", "work"]
    assert list(cells) == names
    assert cells["fun"] == "2" and cells["lower bound"] == "1.5"
    assert cells["gap"] == "0.5 (relative 0.25)" and cells["proof"] == "by &lt;hand&gt;"
    assert cells["work"].startswith("0 iterations, 0 projections, ")
    assert len(re.findall("<tr>", table)) == 8


def test_newton_runs_count_their_gradients(rng, monkeypatch):
    evaluated = []
    original = CompositeLagrangian.stationarity

    def spy(self, point, duals):
        evaluated.append(point)
        return original(self, point, duals)

    monkeypatch.setattr(CompositeLagrangian, "stationarity", spy)
    rows = Polyhedron(rng.standard_normal((20, 6)), np.ones(20))
    f = LeastSquares(rng.standard_normal((10, 6)), rng.standard_normal(10))
    result = lopro.solve(Problem(f, rows), method=lopro.NewtonMultipliers())
    assert result.success
    both = result.counts.gradients + result.certificate_counts.gradients
    assert both == len(evaluated) and result.counts.gradients >= result.iterations > 0


# The plot.


@pytest.fixture
def pyplot():
    matplotlib = pytest.importorskip("matplotlib")
    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    yield plt
    plt.close("all")


def drawn(ax):
    """Return the points of every line, by its label."""
    return {line.get_label(): list(line.get_ydata()) for line in ax.lines}


def test_a_run_with_gaps_shows_how_they_fall(pyplot, rng):
    A = rng.standard_normal((20, 50))
    problem = Problem(lopro.objectives.L1Norm(), lopro.constraints.ResidualBall(A, A[:, 0], 0.1))
    result = lopro.solve(problem, method=lopro.LoPNAG(), tol=1e-3, max_iter=2000)
    ax = result.plot()
    assert ax.get_yscale() == "log" and ax.get_xlabel() == "iterations"
    gaps = [gap for gap in result.history["relative_gap"] if np.isfinite(gap)]
    assert drawn(ax)["certified relative gap"] == gaps and len(gaps) >= 2


def test_gaps_of_zero_are_drawn_and_infinite_ones_are_not(pyplot):
    class Closes:
        def check(self, problem):
            pass

        def run(self, bench, x0):
            for evidence in (None, ProvedBound(1.0, "one"), ProvedBound(2.0, "all")):
                yield Candidate(np.array([2.0]), evidence)

    problem = Problem(Linear(np.array([1.0])), Polyhedron([[-1.0]], [0.0]), gap_scale=1.0)
    ax = lopro.solve(problem, method=Closes(), tol=0.0).plot()
    assert drawn(ax) == {"certified relative gap": [0.5, np.finfo(float).eps]}


def test_a_run_with_one_candidate_shows_its_point(pyplot):
    ax = proved(2.0, 1.5).plot()
    assert [2.0] in [list(line.get_ydata()) for line in ax.lines]
    assert ax.get_xlabel() == "entry of x"
    assert ax.get_title() == "f = 2, proved relative gap 0.2"


def test_the_nonzero_entries_of_a_sparse_point_are_drawn(pyplot, rng):
    A = rng.standard_normal((10, 500))
    result = lopro.bpdn(A, A[:, 3], 0.1)
    assert len(result.history) == 1
    ax = result.plot()
    stems = next(line for line in ax.lines if line.get_marker() == "o")
    assert list(stems.get_xdata()) == list(np.flatnonzero(result.x))
    np.testing.assert_array_equal(stems.get_ydata(), result.x[result.x != 0.0])
    assert ax.get_xlim() == (-0.5, 499.5)


def test_a_long_point_is_a_line_and_a_matrix_an_image(pyplot, rng):
    target = rng.standard_normal(500)
    result = lopro.solve(Problem(lopro.objectives.SquaredDistance(target)))
    (line,) = result.plot().lines
    np.testing.assert_array_equal(line.get_ydata(), result.x)
    matrix = lopro.nearest_correlation(np.eye(4))
    (image,) = matrix.plot().images
    np.testing.assert_array_equal(image.get_array(), matrix.x)


def test_a_complex_point_is_drawn_by_moduli(pyplot):
    result = lopro.bpdn(np.array([[1.0, 1j]]), np.array([2j]), 0.0)
    ax = result.plot()
    assert ax.get_ylabel() == "modulus"
    (entry,) = np.flatnonzero(result.x)  # |x_1 + i x_2| = 2 has more than one solution
    assert [abs(result.x[entry])] in [list(line.get_ydata()) for line in ax.lines]


def test_a_gap_that_is_not_known_is_not_in_the_title(pyplot):
    class Finds:
        def check(self, problem):
            pass

        def run(self, bench, x0):
            yield Candidate(np.array([1.0]))

    problem = Problem(Linear(np.array([1.0])), Polyhedron([[-1.0]], [0.0]), gap_scale=1.0)
    assert lopro.solve(problem, method=Finds()).plot().get_title() == "f = 1, no gap proved"


def test_a_run_without_bounds_shows_its_values(pyplot):
    class Walks:
        def check(self, problem):
            pass

        def run(self, bench, x0):
            for value in (3.0, 2.0, 1.0):
                bench.tick()
                yield Candidate(np.array([value]))

    problem = Problem(Linear(np.array([1.0])), Polyhedron([[-1.0]], [0.0]), gap_scale=1.0)
    ax = lopro.solve(problem, method=Walks(), tol=0.0).plot()
    assert drawn(ax) == {"value": [3.0, 2.0, 1.0]}


def test_without_a_history_the_answer_is_drawn(pyplot):
    result = dataclasses.replace(proved(2.0, 1.5), history=lopro.History())
    assert result.plot().get_title() == "f = 2, proved relative gap 0.2"


def test_without_a_point_there_is_nothing_to_plot(pyplot):
    empty = Polyhedron([[1.0], [-1.0]], [0.0, -1.0])
    with pytest.raises(ValueError, match="no point was found"):
        lopro.solve(Problem(Linear(np.array([1.0])), empty)).plot()


# Progress.


class Terminal(io.StringIO):
    def isatty(self):
        return True


@pytest.mark.parametrize("stream", [io.StringIO, Terminal])
def test_progress_ends_its_line_and_counts_bytes_of_files_only(rng, monkeypatch, stream):
    A = rng.standard_normal((20, 50))
    said = {}
    for name in ("file", "memory", "none"):
        monkeypatch.setattr(sys, "stderr", stream())
        if name != "none":
            matrix = lopro.maps.StoredMap(A) if name == "file" else A
            lopro.bpdn(matrix, A[:, 0], 0.1, method=lopro.LoPNAG(), max_iter=300, progress=True)
        else:
            far = lopro.objectives.SquaredDistance(np.array([3.0, 0.0]))
            disc = lopro.constraints.L1Ball(2, 1.0)
            lopro.solve(Problem(far, disc), method=lopro.LoPGD(), max_iter=50, progress=True)
        text = sys.stderr.getvalue()
        said[name] = re.sub(r"\x1b\[[0-9?;]*[a-zA-Z]", "", text)
        assert said[name].endswith("\n") and "epoch" in said[name]
    assert not any(re.search("read|passes", said[name]) for name in ("none", "memory"))
    if stream is io.StringIO:
        assert re.fullmatch(r"lopro  .*  iteration 300  passes \d+  read [\d.]+ MB\n", said["file"])
