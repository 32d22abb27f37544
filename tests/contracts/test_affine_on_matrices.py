"""Rows on matrices: exact numbers, sparsity, symmetric parts, units."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import scipy.sparse
import scipy.sparse.linalg

import lopro
from lopro.constraints import Affine, Box, Intersection, Polyhedron, PSDCone, Spectrahedron
from lopro.constraints.matrix_rows import matrix_rows
from lopro.constraints.on_symmetric import on_symmetric
from lopro.errors import InfeasibleError
from lopro.newton.sdp.dual_point import Centre, DualPoint
from lopro.newton.sdp.hessian import Directions
from lopro.newton.sdp.nearest import NearestProblem
from lopro.newton.sdp.program import SemidefiniteBlock, SemidefiniteProgram, StandardRows


def test_value_slope_and_projection_are_those_of_the_raveled_matrix(rng: Any) -> None:
    M, x = rng.standard_normal((3, 6)), rng.standard_normal((2, 3))
    flat, shaped = Affine(M, -0.1, 0.2), Affine(M, -0.1, 0.2, shape=(2, 3))
    assert shaped.shape == (2, 3)
    assert shaped.value(x) == flat.value(x.ravel())
    np.testing.assert_array_equal(shaped.subgradient(x).ravel(), flat.subgradient(x.ravel()))
    np.testing.assert_allclose(shaped.project(x).ravel(), flat.project(x.ravel()), atol=1e-14)
    assert shaped.violation(x) == flat.violation(x.ravel())


def test_every_kind_of_map_gives_the_same_set(rng: Any) -> None:
    M, x = rng.standard_normal((3, 4)), rng.standard_normal((2, 2))
    M[0, 1:3] = 0.0
    operator = scipy.sparse.linalg.aslinearoperator(M)
    for kind in (M, scipy.sparse.csc_array(M), operator, lopro.maps.linear_map(M)):
        made = Affine(kind, 0.5, 0.7, shape=(2, 2))
        np.testing.assert_allclose(
            made.project(x), Affine(M, 0.5, 0.7, shape=(2, 2)).project(x), atol=1e-13
        )


def test_sparse_stays_sparse_at_size() -> None:
    """A million unknowns and a hundred thousand fixed entries: nothing dense of rows times columns."""
    n, m = 1000, 100_000
    places = np.random.default_rng(0).choice(n * n, m, replace=False)
    fixed = Affine.entries(places, 1.0, 1.0, shape=(n, n))
    assert scipy.sparse.issparse(fixed.M.matrix) and fixed.M.matrix.nnz == m
    assert fixed.C.matrix.nnz == 2 * m
    x = fixed.project(np.zeros((n, n)))
    assert np.count_nonzero(x) == m and x.sum() == m
    assert fixed.infeasibility() is None


def test_entries_by_indices_places_and_mask() -> None:
    mask = np.array([[False, True], [True, False]])
    x = np.zeros((2, 2))
    for index in (mask, ([0, 1], [1, 0]), [1, 2]):
        made = Affine.entries(index, lower=[1.0, 2.0], shape=(2, 2))
        np.testing.assert_array_equal(made.project(x), [[0.0, 1.0], [2.0, 0.0]])


def test_a_projection_on_entries_is_exact_from_far_away() -> None:
    fixed = Affine.entries([0], 1.0, 1.0, shape=(2,))
    assert fixed.project(np.array([3e15, 5.0])).tolist() == [1.0, 5.0]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (dict(index=[0, 0], shape=(2, 2)), "each entry once"),
        (dict(index=[4], shape=(2, 2)), "0 to 3"),
        (dict(index=([0], [2]), shape=(2, 2)), "0 to 1"),
        (dict(index=[0.5], shape=(2, 2)), "integers"),
        (dict(index=[0]), "shape is needed"),
        (dict(index=np.zeros((2, 2), bool)), "at least one entry"),
        (dict(index=np.ones((2, 2), bool), shape=(4,)), "mask of shape"),
        (dict(index=([0],), shape=(2, 2)), "2 parts"),
    ],
)
def test_wrong_entries_are_named(arguments: dict[str, Any], message: str) -> None:
    with pytest.raises((ValueError, TypeError), match=message):
        Affine.entries(lower=0.0, **arguments)


def test_a_wrong_shape_is_named() -> None:
    with pytest.raises(ValueError, match="shape must have 4 entries"):
        Affine(np.eye(4), 0.0, shape=(2, 3))
    with pytest.raises(ValueError, match="x must have shape"):
        Affine(np.eye(4), 0.0, shape=(2, 2)).value(np.zeros(4))


def test_rows_beside_a_cone_are_symmetric() -> None:
    one = on_symmetric(Affine.entries([1, 2], [0.5, -1.0], [3.0, 2.0], shape=(2, 2)))
    assert isinstance(one, Affine)
    # Entries (0, 1) and (1, 0) are one entry, between the larger lower and the smaller upper bound.
    assert one.M.shape == (1, 4) and (one.lower[0], one.upper[0]) == (0.5, 2.0)
    np.testing.assert_array_equal(one.M.toarray(), [[0.0, 0.5, 0.5, 0.0]])
    box = on_symmetric(Polyhedron.box(np.zeros((2, 2)), np.array([[1.0, 2.0], [3.0, 4.0]])))
    np.testing.assert_array_equal(box.project(np.full((2, 2), 9.0)), [[1.0, 2.0], [2.0, 4.0]])


def test_rows_beside_a_cone_keep_their_order() -> None:
    """Multipliers come in the order of the rows; an entry given twice has the position of the first."""
    at = [8, 3, 0, 6, 1, 4]  # (2, 2), (1, 0), (0, 0), (2, 0), (0, 1), (1, 1) of three rows
    sides = np.array([1.0, 2.0, 3.0, 4.0, 2.0, 5.0])
    made = on_symmetric(Affine.entries(at, sides, sides, shape=(3, 3)))
    assert isinstance(made, Affine)
    np.testing.assert_array_equal(made.lower, [1.0, 2.0, 3.0, 4.0, 5.0])
    np.testing.assert_array_equal(made.M.toarray() @ np.arange(9.0), [8.0, 2.0, 0.0, 4.0, 4.0])


def test_equations_have_a_cone_of_their_own() -> None:
    rows = Affine(np.diag([2.0, 1.0, 4.0]), [2.0, -1.0, -8.0], [2.0, np.inf, 8.0]).conic_form()
    assert [(type(r.cone).__name__, len(r.bounds)) for r in rows] == [
        ("Zero", 1),
        ("Nonnegative", 3),
    ]
    np.testing.assert_array_equal(rows[0].bounds, [1.0])
    np.testing.assert_array_equal(rows[1].bounds, [2.0, 1.0, 2.0])
    np.testing.assert_array_equal(rows[1].rows.toarray(), [[0, 0, 1], [0, -1, 0], [0, 0, -1]])


def test_matrix_rows_count_the_rows_of_each_member() -> None:
    trace = Affine(np.eye(2).reshape(1, 4), 1.0, 1.0, shape=(2, 2))
    box = Polyhedron.box(-np.ones((2, 2)), np.ones((2, 2)))
    rows = matrix_rows([box, PSDCone(2), trace])
    assert rows is not None and rows.counts == (3, 0, 1)
    assert matrix_rows([trace, box]) is None
    sphere = matrix_rows([Spectrahedron(2, 3.0)])
    assert sphere is not None and (sphere.lower[0], sphere.upper[0]) == (-np.inf, 3.0)


def test_slacks_have_the_size_of_their_rows() -> None:
    A = scipy.sparse.csr_array(np.array([[8.0, 0.0], [0.0, 1.0]]))
    rows = StandardRows.of(A, np.array([-8.0, 1.0]), np.array([8.0, 1.0]))
    np.testing.assert_array_equal(rows.source, [0, 0, 1])
    np.testing.assert_array_equal(rows.slack.toarray(), [[8.0, 0.0], [0.0, -8.0], [0.0, 0.0]])
    np.testing.assert_array_equal(rows.slacks(np.array([0.5, 1.0])), [0.5, 1.5])
    np.testing.assert_array_equal(rows.multipliers(np.array([1.0, 2.0, 4.0])), [3.0, 4.0])
    # An upper side pulls down, a lower one up, an equation either way.
    np.testing.assert_array_equal(rows.signed(np.array([1.0, 2.0, -4.0])), [0.0, 2.0, -4.0])
    np.testing.assert_array_equal(rows.signed(np.array([-1.0, -2.0, 4.0])), [-1.0, 0.0, 4.0])


# The nearest positive semidefinite matrix on rows.


@pytest.mark.parametrize("unit", [1e-9, 1.0, 1e9])
def test_nearest_with_unit_diagonal(unit: float) -> None:
    """Higham's example: the nearest correlation matrix of a matrix with an eigenvalue below zero."""
    G = unit * np.array([[2.0, -1, 0, 0], [-1, 2, -1, 0], [0, -1, 2, -1], [0, 0, -1, 2]])
    at = np.arange(4)
    set_ = Intersection(PSDCone(4), Affine.entries((at, at), unit, unit, shape=(4, 4)))
    X = set_.project(G) / unit
    expected = [1.0, -0.8084, 0.1916, 0.1068]
    np.testing.assert_allclose(X[0], expected, atol=5e-5)
    np.testing.assert_allclose(X, set_.project(X * unit) / unit, atol=1e-12)


@pytest.mark.parametrize("unit", [1e-9, 1.0, 1e9])
def test_the_bound_of_the_distance_is_tight_and_valid(unit: float, rng: Any) -> None:
    n = 12
    G = rng.standard_normal((n, n))
    G = unit * (G + G.T)
    A = rng.standard_normal((7, n, n))
    A = scipy.sparse.csr_array((A + A.transpose(0, 2, 1)).reshape(7, -1))
    inside = rng.standard_normal((n, n))
    inside = unit * (inside @ inside.T)
    level = A @ inside.ravel()
    upper = level + unit * np.array([0.0, 0.0, 1.0, 1.0, np.inf, 2.0, 0.5])
    lower = level - unit * np.array([0.0, 0.0, 1.0, np.inf, 1.0, 2.0, np.inf])
    problem = NearestProblem(n, A, lower, upper)
    found = problem.solve(G)
    assert found.solved
    fun, bound = 0.5 * float(np.sum((found.X - G) ** 2)), problem.bound(G, found)
    assert 0.0 <= fun - bound <= 1e-11 * fun
    # Multipliers with an error of 1 % prove a smaller bound, which is still valid.
    assert problem.bound(G, replace(found, y=1.01 * found.y)) < fun - 1e-6 * fun
    # Signs: a multiplier of an upper side pulls down.
    rounding = 1e-12 * float(np.abs(found.y).max())
    assert found.y[3] <= rounding and found.y[4] >= -rounding


def test_scales_of_the_diagonal_cost_few_products(rng: Any) -> None:
    """The diagonal of the Hessian as preconditioner: 126 products without it, 23 with it, for n = 200."""
    n = 60
    G, w = rng.uniform(-1.0, 1.0, (n, n)), np.geomspace(0.1, 10.0, n)
    places = np.arange(n) * (n + 1)
    rows = scipy.sparse.csr_array((np.ones(n), (np.arange(n), places)), (n, n * n))
    program = SemidefiniteProgram(w, (SemidefiniteBlock(n, False, np.zeros((n, n)), rows),))
    centre = Centre(((G + G.T) * np.sqrt(np.outer(w, w)),), 1.0)
    directions = Directions(program)
    directions.explicit = False
    point = DualPoint.of(program, centre, np.zeros(n))
    d = directions.find(point, 1.0, 1e-6, 1.0)
    assert directions.products <= 15
    image = rows @ point.spectra[0].jacobian(np.diag(d)).ravel()
    assert np.linalg.norm(image + point.gradient) <= 2e-6 * np.linalg.norm(point.gradient)


def test_an_empty_set_is_proved_by_multipliers() -> None:
    negative = Affine(np.eye(3).reshape(1, 9), -1.0, -1.0, shape=(3, 3))
    with pytest.raises(InfeasibleError) as caught:
        Intersection(PSDCone(3), negative).project(np.eye(3))
    assert float(np.asarray(caught.value.ray)[0]) < 0.0


def test_rows_on_matrices_that_are_not_square_stay_as_they_are():
    for set_ in (
        Polyhedron(np.eye(6), np.ones(6), shape=(2, 3)),
        Affine(np.eye(6), None, 1.0, (2, 3)),
    ):
        assert on_symmetric(set_) is set_


@pytest.mark.parametrize("same", [True, False])
def test_bounds_of_entries_are_rows_on_symmetric_matrices(rng, same):
    n = 4
    lower = rng.standard_normal((n, n))
    lower[1, 2] = lower[2, 1] = -np.inf
    lower = np.maximum(lower, lower.T) if same else lower
    A, low, high = Box(lower, np.full((n, n), np.inf)).rows_on_matrices(n)
    X = rng.standard_normal((n, n))
    X = X + X.T
    margins, expected = A @ X.ravel() - low, (X - lower)[np.isfinite(lower)]
    np.testing.assert_allclose(
        np.unique(margins.round(12)), np.unique(expected.round(12)), atol=1e-11
    )
    assert np.isposinf(high).all() and len(low) == (9 if same else 14)
