"""Exponential cones: duals in fifty digits, violations by hand, and programs whose optimum is known."""

from __future__ import annotations

import math
from decimal import Decimal, localcontext
from typing import Any

import numpy as np
import pytest
import scipy.sparse

import lopro
from lopro.certificates.certificate import Status
from lopro.engines.cone_bound import ConicData, conic_bound, repaired
from lopro.engines.cone_points import violation, violation_charge
from lopro.engines.cones import Nonnegative, SecondOrder, Zero
from lopro.engines.exponentials import Exponentials
from lopro.engines.proved_cones import solve_conic
from lopro.methods.baselines import InteriorPoint

ONE = Exponentials(1)


def in_dual(u: float, v: float, w: float) -> bool:
    """Return whether ``-u exp(v / u - 1) <= w``, in fifty digits; where u is 0, whether ``v, w >= 0``."""
    with localcontext() as context:
        context.prec, context.Emin, context.Emax = 50, -(10**9), 10**9
        if u == 0.0:
            return v >= 0.0 and w >= 0.0
        return u < 0.0 and -Decimal(u) * (Decimal(v) / Decimal(u) - 1).exp() <= Decimal(w)


def triples(rng: np.random.Generator, count: int, decades: float) -> Any:
    return rng.standard_normal((count, 3)) * 10.0 ** rng.uniform(-decades, decades, (count, 3))


@pytest.mark.parametrize("decades", [0.0, 1.0, 6.0])
def test_multipliers_are_moved_into_the_dual_in_spite_of_rounding(decades: float) -> None:
    """The correction is in the dual cone, too: larger multiples of it keep multipliers inside."""
    rng = np.random.default_rng(0)
    given = triples(rng, 300, decades)
    for costs in (None, np.tile([1.0, 0.0, 1.0], 300), np.tile([1.0, 1.0, 0.0], 300)):
        moved = Exponentials(300).into_dual(given.ravel(), costs).reshape(-1, 3)
        assert all(in_dual(*triple) for triple in moved.tolist())
        further = given + 4.0 * (moved - given)
        outside = further - Exponentials(300).into_dual(further.ravel()).reshape(-1, 3)
        lengths = np.linalg.norm(np.abs(given) + np.abs(moved), axis=1)
        assert (np.linalg.norm(outside, axis=1) <= 1e-13 * 4.0 * lengths).all()


def test_multipliers_move_no_more_than_they_have_to() -> None:
    """(-1, -1) requires w = 1, (-1, ., 1) for v = -1, and (1, 0, 0) for the multiple of (-1, 0, 1/e)."""
    w_raised = ONE.into_dual(np.array([-1.0, -1.0, 0.9]))
    assert w_raised == pytest.approx([-1.0, -1.0, 1.0], rel=1e-14)
    v_raised = ONE.into_dual(np.array([-1.0, -1.1, 1.0]), np.array([1.0, 0.0, 1.0]))
    assert v_raised == pytest.approx([-1.0, -1.0, 1.0], rel=1e-14)
    assert ONE.into_dual(np.array([1.0, 0.0, 0.0])) == pytest.approx([0.0, 0.0, math.exp(-1.0)])
    inside = np.array([-1.0, -1.0, 1.1, 0.0, 2.0, 3.0])
    np.testing.assert_array_equal(Exponentials(2).into_dual(inside), inside)


def test_inner_products_of_cone_and_dual_cone_are_nonnegative() -> None:
    rng = np.random.default_rng(1)
    cones = Exponentials(400)
    x = cones.into(triples(rng, 400, 1.0).ravel()).reshape(-1, 3)
    z = cones.into_dual(triples(rng, 400, 1.0).ravel()).reshape(-1, 3)
    assert cones.outside(x.ravel()) <= 1e-12 * np.abs(x).max()
    products, sizes = (x * z).sum(axis=1), np.abs(x * z).sum(axis=1)
    assert (products >= -1e-13 * sizes).all()


@pytest.mark.parametrize(
    ("triple", "outside"),
    [
        ((0.0, 1.0, 0.5), 0.5),  # z is raised to 1
        ((2.0, 1.0, math.e), 1.0),  # x is lowered to 1
        ((2.0, 2.0, 2.0 * math.e), 0.0),
        ((-3.0, -0.25, 1.0), 0.25),  # y becomes 0
        ((0.5, -0.25, -2.0), 2.0),  # all of them
        ((-1.0, 0.0, 0.0), 0.0),
        ((800.0, 1.0, 1.0), 800.0),  # its exponential overflows
    ],
)
def test_the_violation_of_a_triple_is_the_size_of_its_correction(
    triple: Any, outside: float
) -> None:
    z = np.array(triple)
    assert ONE.outside(z) == pytest.approx(outside, abs=1e-15)
    assert np.abs(ONE.into(z) - z).max() == pytest.approx(outside, abs=1e-15)
    assert ONE.outside(ONE.into(z)) <= 1e-12


def test_normals_of_steep_boundaries_have_length_one() -> None:
    """The slope is exp(500) there; its square overflows."""
    (normal,) = ONE.tangents(np.array([500.0, 1.0, 0.0])).toarray()
    assert normal == pytest.approx(np.array([-1.0, 499.0, 0.0]) / math.hypot(1.0, 499.0), rel=1e-14)


def exponential(scale: float = 1.0, x_cost: float = -2.0) -> ConicData:
    """Min t + x_cost x over ``exp(x) <= t``, with x counted in multiples of ``scale``."""
    A = scipy.sparse.csr_array([[-scale, 0.0], [0.0, 0.0], [0.0, -1.0]])
    q, b = np.array([x_cost * scale, 1.0]), np.array([0.0, 1.0, 0.0])
    return ConicData(scipy.sparse.csr_array((2, 2)), q, A, b, [(ONE, 3)])


def test_each_row_of_a_triple_is_compared_with_its_own_terms() -> None:
    """``exp(x) <= 1e6`` at ``log(1e6) + 1e-3``: violated by 1e-3 in x, whatever the large side."""
    A, b = scipy.sparse.csr_array([[-1.0], [0.0], [0.0]]), np.array([0.0, 1.0, 1e6])
    data = ConicData(scipy.sparse.csr_array((1, 1)), np.zeros(1), A, b, [(ONE, 3)])
    x = math.log(1e6) + 1e-3
    assert violation(data, np.array([x])).relative == pytest.approx(1e-3 / x, rel=1e-9)
    assert violation(data, np.array([math.log(1e6) - 1e-9])).relative == 0.0


def test_one_triple_does_not_hide_another() -> None:
    """Both are at (1, 1, 2), in units of 1 and of 1e12: z is below e, and compared with 2 + 1."""
    A = scipy.sparse.csr_array([[-1.0], [0.0], [0.0], [-1e12], [0.0], [0.0]])
    b = np.array([0.0, 1.0, 2.0, 0.0, 1e12, 2e12])
    data = ConicData(scipy.sparse.csr_array((1, 1)), np.zeros(1), A, b, [(Exponentials(2), 6)])
    found = violation(data, np.ones(1))
    assert found.relative == pytest.approx((math.e - 2.0) / 3.0, rel=1e-12)
    assert found.absolute == pytest.approx(1e12 * (1.0 - math.log(2.0)), rel=1e-12)
    large = ConicData(data.P, data.q, A, b + np.array([0.0, 0.0, 0.0, 0.0, 0.0, 1e12]), data.cones)
    assert violation(large, np.ones(1)).relative == pytest.approx((math.e - 2.0) / 3.0, rel=1e-12)


def test_each_triple_has_its_own_units() -> None:
    cones = [(Nonnegative(2), 2), (SecondOrder(3), 3), (Exponentials(2), 6), (Zero(1), 1)]
    none, A = scipy.sparse.csr_array((1, 1)), scipy.sparse.csr_array((12, 1))
    data = ConicData(none, np.zeros(1), A, np.zeros(12), cones)
    assert data.groups.tolist() == [0, 1, 2, 2, 2, 3, 3, 3, 4, 4, 4, 5]


def test_the_normal_of_the_boundary_is_orthogonal_to_it() -> None:
    """Tangents are (1, 0, exp(x / y)), for changes of x, and the triple itself, along a ray of the cone."""
    z = np.array([0.7, 2.0, 2.0 * math.exp(0.35), -3.0, 0.5, 0.5 * math.exp(-6.0)])
    for normal, (x, y, top) in zip(
        Exponentials(2).tangents(z).toarray().reshape(2, 2, 3)[[0, 1], [0, 1]],
        z.reshape(2, 3),
        strict=True,
    ):
        assert normal @ [x, y, top] == pytest.approx(0.0, abs=1e-15)
        assert normal @ [1.0, 0.0, math.exp(x / y)] == pytest.approx(0.0, abs=1e-15)
        assert normal[2] > 0.0 and np.linalg.norm(normal) == pytest.approx(1.0)


@pytest.mark.parametrize("noise", [1e-9, 1e-6])
def test_repairing_leaves_rounding_of_the_slope(noise: float) -> None:
    """Min exp(x) - 2x: 2 - 2 log 2 at log 2, with the multipliers (-2, -2 + 2 log 2, 1)."""
    data, rng = exponential(), np.random.default_rng(0)
    z = np.array([-2.0, -2.0 + 2.0 * math.log(2.0), 1.0]) + noise * rng.standard_normal(3)
    v = np.array([math.log(2.0), 2.0])
    bound = conic_bound(data, *repaired(data, v, z, np.array([math.log(2.0), 1.0, 2.0])))
    optimum = 2.0 - 2.0 * math.log(2.0)
    assert bound.slope <= 1e-14
    assert optimum - 10.0 * noise <= bound.value <= optimum


@pytest.mark.parametrize("scale", [1.0, 2.0**-20, 2.0**20])
def test_a_program_with_a_known_optimum_is_proved(scale: float) -> None:
    outcome = solve_conic(exponential(scale), 1e-8)
    optimum = 2.0 - 2.0 * math.log(2.0)
    assert outcome.status is Status.CONVERGED
    assert outcome.lower_bound <= optimum <= outcome.fun + outcome.charge
    assert outcome.fun + outcome.charge - outcome.lower_bound <= 1e-8 * outcome.unit
    assert outcome.x[0] * scale == pytest.approx(math.log(2.0), abs=1e-4)


def test_the_charge_is_the_multiplier_times_the_violation() -> None:
    """T is below exp(0) = 1 by 1/4, and its multiplier is 3; the tangents at (0, 1) are the same."""
    data = exponential()
    charge = violation_charge(data, np.array([0.0, 0.75]), np.array([-3.0, -3.0, 3.0]))
    assert charge == pytest.approx(0.75, rel=1e-12)


def test_programs_without_a_solution_are_reported_with_their_proof() -> None:
    """``exp(x) <= 1/2`` with ``x >= 0`` is empty, and without that bound x is unbounded below."""
    A = scipy.sparse.csr_array([[-1.0], [0.0], [0.0], [-1.0]])
    b, none = np.array([0.0, 1.0, 0.5, 0.0]), scipy.sparse.csr_array((1, 1))
    empty = ConicData(none, np.ones(1), A, b, [(ONE, 3), (Nonnegative(1), 1)])
    outcome = solve_conic(empty)
    assert outcome.status is Status.INFEASIBLE
    z = outcome.multipliers
    assert in_dual(*z[:3].tolist()) and z[3] >= 0.0
    assert float(b @ z) < 0.0 and abs(float((A.T @ z)[0])) <= 1e-12
    falling = solve_conic(ConicData(none, np.ones(1), A[:3], b[:3], [(ONE, 3)]))
    assert falling.status is Status.UNBOUNDED and falling.x[0] < 0.0


def test_interior_points_prove_logistic_losses_without_a_radius() -> None:
    """The set is unbounded: only the multipliers of the objective's own rows give a bound."""
    rng = np.random.default_rng(0)
    X, rows = rng.standard_normal((200, 5)), rng.standard_normal((3, 5))
    labels = np.sign(X @ rng.standard_normal(5) + rng.standard_normal(200))
    f, c = lopro.objectives.Logistic(X, labels), lopro.constraints.Polyhedron(rows, np.full(3, 0.1))
    result = lopro.solve(lopro.Problem(f, c), method=InteriorPoint())
    assert result.success
    other = lopro.solve(lopro.Problem(f, c), method=lopro.NewtonMultipliers())
    assert result.fun == pytest.approx(other.fun, rel=2e-6)


def test_only_the_second_and_third_rows_of_a_triple_are_signed() -> None:
    """``y >= 0`` and ``z >= 0``, as rows ``A v <= b`` that every point satisfies; x may be anything."""
    A, b = scipy.sparse.eye_array(6, format="csr"), np.arange(1.0, 7.0)
    cones = [(Exponentials(2), 6)]
    data = ConicData(scipy.sparse.csr_array((6, 6)), np.zeros(6), A, b, cones)
    ((_, lower, upper),) = data.linear_rows
    assert lower.tolist() == [-math.inf] * 6
    assert upper.tolist() == [math.inf, 2.0, 3.0, math.inf, 5.0, 6.0]
