"""The Pareto curve: values, slopes and tangents."""

from __future__ import annotations

import matplotlib as mpl
import numpy as np
import pytest

import lopro
from lopro.basis_pursuit import ParetoCurve

mpl.use("Agg")


def curve(sigmas: list[float]) -> ParetoCurve:
    rng = np.random.default_rng(0)
    A = rng.standard_normal((20, 50))
    return lopro.bpdn_path(A, A[:, 0] - A[:, 1], sigmas, tol=1e-10)


def test_slopes_are_derivatives_and_tangents_lie_below() -> None:
    path = curve([2.0, 0.5, 1.0])
    assert isinstance(path, list) and path.radii == (2.0, 0.5, 1.0)
    np.testing.assert_array_equal(path.norms, [r.fun for r in path])
    near = curve([2.0 - 1e-5, 0.5 - 1e-5, 1.0 - 1e-5])
    np.testing.assert_allclose((path.norms - near.norms) / 1e-5, path.slopes, rtol=1e-3)
    for radius, value, slope in zip(path.radii, path.norms, path.slopes, strict=True):
        tangent = value + slope * (np.asarray(path.radii) - radius)
        assert (tangent <= path.norms * (1.0 + 1e-9)).all()


def test_a_plot_shows_every_radius() -> None:
    path = curve([2.0, 0.5, 1.0])
    ax = path.plot()
    line = ax.get_lines()[0]
    np.testing.assert_array_equal(line.get_xdata(), [0.5, 1.0, 2.0])
    assert len(ax.get_lines()) == 4 and path.plot(ax) is ax


def test_results_without_a_dual_solution_have_no_slope() -> None:
    path = lopro.bpdn_path(np.eye(3, 2), np.ones(3), [0.5, 1.2])
    assert path[0].status is lopro.Status.INFEASIBLE
    assert np.isnan(path.slopes[0]) and path.slopes[1] == pytest.approx(
        -np.linalg.norm(path[1].dual)
    )


def test_a_curve_is_shown_in_one_line_and_as_a_table() -> None:
    path = curve([2.0, 0.5, 1.0])
    assert repr(path) == str(path) == "ParetoCurve(3 radii, 3 certified)"
    html = path._repr_html_()
    assert html.count("<tr>") == 4 and html.count("<th ") == 4 and html.count("CONVERGED") == 3
    assert all(f">{result.fun:.10g}<" in html for result in path)
    assert repr(lopro.bpdn_path(np.eye(3, 2), np.ones(3), [0.5, 1.2])).endswith("1 certified)")
