"""The protocol of linear minimisers: a feasible point below all others."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from support.catalogue import CONSTRAINTS
from support.catalogue_objectives import LIBRARIES, Library
from support.constraint_case import ConstraintCase

from lopro.constraints import Box, L1Ball, Polyhedron, PSDCone, Simplex, Spectrahedron
from lopro.core.arrays import inner, is_single, namespace, norm, to_numpy
from lopro.core.counting import Counts, counting
from lopro.driver.counted import CountedConstraint

ROTATION = np.linalg.qr(np.random.default_rng(3).standard_normal((3, 3)))[0]


def rotated_box(of: Any) -> Polyhedron:
    return Polyhedron(of(np.vstack([ROTATION, -ROTATION])), of(np.array([1.0, 2.0, 0.5] * 2)))


def in_rotated_box(rng: np.random.Generator) -> Any:
    return ROTATION.T @ (np.array([1.0, 2.0, 0.5]) * rng.uniform(-1, 1, 3))


def straight_box(of: Any) -> Box:
    return Box(of(np.array([-1.0, 0.0, 2.0])), of(np.array([1.0, 0.5, 2.0])))


def in_straight_box(rng: np.random.Generator) -> Any:
    return np.array([-1.0, 0.0, 2.0]) + np.array([2.0, 0.5, 0.0]) * rng.random(3)


CASES = [
    *(case for case in CONSTRAINTS if case.numpy.has_linear_minimizer),
    ConstraintCase("polytope", rotated_box, in_rotated_box),
    ConstraintCase("bounded-box", straight_box, in_straight_box),
]
every = pytest.mark.parametrize("case", CASES, ids=str)


def directions(case: ConstraintCase, rng: np.random.Generator, count: int = 20) -> list[Any]:
    return [
        10.0 ** rng.uniform(-3, 3) * (case.point(rng) - case.feasible(rng)) for _ in range(count)
    ]


def worst_excess(case: ConstraintCase, minimizer: Any, rng: np.random.Generator) -> float:
    """The amount by which a minimiser is above a feasible point, relative to rounding at 1e-9."""
    worst = -np.inf
    for g in directions(case, rng):
        s = minimizer(g)
        for z in [case.feasible(rng) for _ in range(10)] + [case.boundary(rng) for _ in range(3)]:
            if z is not None:
                scale = 1e-9 * norm(g) * (1.0 + norm(s))
                worst = max(worst, (inner(g, s) - inner(g, z)) / scale)
    return worst


def test_the_expected_sets_have_one():
    names = {case.name for case in CASES}
    assert {"l1-ball", "simplex", "simplex-filled", "spectrahedron"} < names
    assert not PSDCone(3).has_linear_minimizer
    assert not Polyhedron(np.eye(2), np.ones(2)).has_linear_minimizer
    assert not Polyhedron.box([0.0, 0.0], [1.0, np.inf]).has_linear_minimizer


@every
def test_minimisers_are_feasible_and_below_all_other_points(case: ConstraintCase, rng: Any) -> None:
    c = case.numpy
    for g in directions(case, rng):
        assert c.violation(c.linear_minimizer(g)) <= 1e-9
    assert worst_excess(case, c.linear_minimizer, rng) <= 1.0
    # The same check turns down the maximiser.
    assert worst_excess(case, lambda g: c.linear_minimizer(-g), rng) > 1e3


@every
def test_the_supporting_half_space_is_valid_and_touches(case: ConstraintCase, rng: Any) -> None:
    c = case.numpy
    for g in directions(case, rng):
        normal = c.support_inequality(g)
        scale = 1e-9 * norm(g) * (1.0 + norm(c.linear_minimizer(g)))
        assert norm(normal.direction + g) <= scale
        assert normal.support == pytest.approx(-inner(g, c.linear_minimizer(g)), abs=scale)
        for z in (case.feasible(rng) for _ in range(10)):
            assert inner(normal.direction, z) <= normal.support + scale


@every
@pytest.mark.parametrize("library", LIBRARIES, ids=str)
def test_library_and_dtype_are_kept(case: ConstraintCase, library: Library, rng: Any) -> None:
    c, reference = case.build(library.of), case.numpy
    for g in directions(case, rng, 5):
        point, here = c.linear_minimizer(library.of(g)), library.of(g)
        for result in (point, c.support_inequality(here).direction):
            assert namespace(result) is namespace(here)
            assert result.dtype == here.dtype
        unit = 1e-5 if is_single(here) else 1e-9
        reached = inner(g, to_numpy(point).astype(g.dtype))
        expected = inner(g, reference.linear_minimizer(g))
        assert reached == pytest.approx(expected, abs=unit * norm(g) * (1.0 + norm(point)))


def test_calls_are_counted():
    c = CountedConstraint(Simplex(3))
    with counting(Counts()) as counts:
        c.linear_minimizer(np.ones(3))
        c.support_inequality(np.ones(3))
    assert counts.linear_minimizations == 2 and counts.projections == 0


def test_a_spectrahedron_needs_a_single_eigenpair():
    rng = np.random.default_rng(0)
    G = rng.standard_normal((250, 250))
    G = G + G.T
    with counting(Counts()) as counts:
        S = Spectrahedron(250, 2.0).linear_minimizer(G)
    assert (counts.eigenpairs, counts.eigendecompositions) == (1, 0)
    assert inner(G, S) == pytest.approx(2.0 * np.linalg.eigvalsh(G)[0], rel=1e-9)


def test_the_minimiser_is_zero_where_zero_is_feasible_and_optimal():
    psd = np.diag([1.0, 2.0])
    assert norm(Spectrahedron(2).linear_minimizer(psd)) == 0.0
    assert norm(Simplex(2, equality=False).linear_minimizer(np.ones(2))) == 0.0
    assert norm(Spectrahedron(2, equality=True).linear_minimizer(psd)) == pytest.approx(1.0)


@pytest.mark.parametrize("build", [L1Ball, Simplex, Spectrahedron])
def test_bad_sizes_are_refused(build: Any) -> None:
    for dim, size, error in [(0, 1.0, ValueError), (2.5, 1.0, TypeError), (2, 0.0, ValueError)]:
        with pytest.raises(error):
            build(dim, size)
    with pytest.raises(ValueError, match="x must have shape"):
        build(3).value(np.zeros((2, 2)))


def test_what_the_set_cannot_hold_is_refused():
    with pytest.raises(TypeError, match="real"):
        Simplex(2).value(np.zeros(2, dtype=complex))
    with pytest.raises(ValueError, match="symmetric"):
        Spectrahedron(2).project(np.array([[0.0, 1.0], [0.0, 0.0]]))
