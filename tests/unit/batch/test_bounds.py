"""The bounds of batches: exact numbers, and never above what exact arithmetic gives."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
import pytest

import lopro
from lopro.batch.programs import QuadraticPrograms, Square
from lopro.batch.proofs import Proofs
from lopro.batch.scaled import ScaledPrograms
from lopro.certificates.batched import Enclosures, enclosed_product, lower_bounds


def proofs(programs: QuadraticPrograms, tol: float = 1e-6) -> Proofs:
    return Proofs.of(programs, ScaledPrograms.of(programs).columns, programs.like, tol)


def one(*numbers: float) -> Any:
    return np.array([numbers], dtype=np.float64)


def test_the_bound_of_a_parabola_is_its_minimum() -> None:
    """``x^2 - 2x`` at 3 without multipliers: value 3, slope 4, mu = 2, so 3 - 16 / 4 = -1."""
    found = proofs(QuadraticPrograms(one(-2.0), np.full((1, 1, 1), 2.0))).certify(
        one(3.0), np.zeros((1, 0))
    )
    assert found.lower_bound[0] == pytest.approx(-1.0, abs=1e-13)
    assert found.lower_bound[0] < -1.0
    assert (found.fun[0], found.gap[0]) == (3.0, pytest.approx(4.0, abs=1e-13))
    assert found.relative_gap[0] == pytest.approx(4.0 / 15.0)  # |9| + |-6|
    assert found.radius[0] == np.inf


def test_the_bound_of_a_line_over_a_box_is_its_minimum() -> None:
    programs = QuadraticPrograms(one(3.0, -2.0), least=one(1.0, -np.inf), most=one(np.inf, 5.0))
    found = proofs(programs).certify(one(2.0, 4.5), np.zeros((1, 0)))
    assert found.lower_bound[0] == pytest.approx(3.0 - 10.0, abs=1e-13)
    assert found.gap[0] == pytest.approx(4.0, abs=1e-13)


def test_both_ways_over_a_box_cost_the_dearer_one() -> None:
    """A slope that is known up to 1 within -1 and 2 may cost in both directions."""
    value, zero = Enclosures(np.zeros(1), np.zeros(1)), np.zeros((1, 1))
    slope = Enclosures(zero, np.ones((1, 1)))
    box = np.full((1, 1), -1.0), np.full((1, 1), 2.0)
    bound = lower_bounds(value, slope, zero, box, np.zeros(1), np.ones((1, 1)), zero)
    assert bound[0] == pytest.approx(-2.0, abs=1e-13)


def test_a_slope_that_nothing_carries_costs_its_length_times_the_reach() -> None:
    """``x`` over ``x >= 1``, by a multiplier of -0.9: 0.1 is left of the slope, and the reach is 1e4."""
    programs = QuadraticPrograms(one(1.0), A=np.ones((1, 1, 1)), lower=one(1.0))
    found = proofs(programs).certify(one(1.0), one(-0.9))
    assert found.radius[0] == 1e4
    assert found.lower_bound[0] == pytest.approx(1.0 - 0.1 * 1e4, abs=1e-8)


def test_a_multiplier_without_a_side_is_not_used() -> None:
    """``x >= 1`` has no upper side: a positive multiplier would prove anything."""
    programs = QuadraticPrograms(one(-1.0), A=np.ones((1, 1, 1)), lower=one(1.0))
    found = proofs(programs).certify(one(2.0), one(1.0))
    assert found.lower_bound[0] < -1e4


def test_a_violation_is_charged() -> None:
    """``-x`` over ``x <= 1`` at 1 + 1e-10: the value has gained 1e-10, which is no gap but a charge."""
    programs = QuadraticPrograms(one(-1.0), A=np.ones((1, 1, 1)), upper=one(1.0))
    found = proofs(programs).certify(one(1.0 + 1e-10), one(1.0))
    assert found.charge[0] == pytest.approx(1e-10, rel=1e-4)
    assert found.gap[0] == pytest.approx(1e-10, rel=1e-2)
    assert found.violation[0] == pytest.approx(0.5e-10, rel=1e-4)
    assert found.absolute_violation[0] == pytest.approx(1e-10, rel=1e-4)


def test_far_outside_there_is_no_gap() -> None:
    programs = QuadraticPrograms(one(-1.0), A=np.ones((1, 1, 1)), upper=one(1.0))
    assert proofs(programs).certify(one(2.0), one(1.0)).gap[0] == np.inf


@pytest.mark.parametrize("rank", [1, 2, 3])
def test_singular_hessians_have_no_convexity(rank: int) -> None:
    B = np.random.default_rng(rank).standard_normal((4, rank, 3))
    P = np.swapaxes(B, 1, 2) @ B
    mu = proofs(QuadraticPrograms(np.zeros((4, 3)), P)).convexity
    if rank < 3:
        assert (mu == 0.0).all()
    columns = ScaledPrograms.of(QuadraticPrograms(np.zeros((4, 3)), P)).columns
    least = np.linalg.eigvalsh(columns[:, :, None] * P * columns[:, None, :])[:, 0]
    assert (mu <= np.maximum(least, 0.0)).all()
    assert (mu >= (least / 2.0 if rank == 3 else 0.0)).all()


def test_convexity_of_squares_is_that_of_their_sum() -> None:
    D = np.array([[[1.0, 1.0]], [[2.0, 0.0]]])
    terms = (Square(D, None, np.ones(2)), Square(None, None, np.full(2, 0.5)))
    programs = QuadraticPrograms(np.zeros((2, 2)), squares=terms, checked=True)
    mu, columns = proofs(programs).convexity, ScaledPrograms.of(programs).columns
    P = np.swapaxes(D, 1, 2) @ D + 0.5 * np.eye(2)
    least = np.linalg.eigvalsh(columns[:, :, None] * P * columns[:, None, :])[:, 0]
    assert (mu <= least).all()
    assert (mu >= least / 2.0).all()


def exact_minimum(P: Any, q: Any, C: Any, b: Any, v: Any) -> Fraction:
    """Return the dual value of multipliers in two variables, in rational numbers."""
    p, c = [[Fraction(n) for n in row] for row in P], [Fraction(n) for n in q]
    for row, weight in zip(C, v, strict=True):
        c = [a + Fraction(weight) * Fraction(n) for a, n in zip(c, row, strict=True)]
    determinant = p[0][0] * p[1][1] - p[0][1] * p[1][0]
    square = (
        p[1][1] * c[0] ** 2 - (p[0][1] + p[1][0]) * c[0] * c[1] + p[0][0] * c[1] ** 2
    ) / determinant
    return -square / 2 - sum(Fraction(a) * Fraction(n) for a, n in zip(v, b, strict=True))


def test_no_bound_is_above_the_exact_dual_value() -> None:
    """At the minimiser of the Lagrangian nothing but rounding is between the two."""
    rng, count = np.random.default_rng(7), 300
    B, C = rng.standard_normal((count, 2, 2)), rng.standard_normal((count, 3, 2))
    P = np.swapaxes(B, 1, 2) @ B + 0.1 * np.eye(2)
    P = (P + np.swapaxes(P, 1, 2)) / 2.0
    q, b, v = (
        rng.standard_normal((count, 2)),
        rng.standard_normal((count, 3)),
        rng.random((count, 3)),
    )
    x = np.linalg.solve(P, -(q + (v[:, None, :] @ C)[:, 0, :])[..., None])[..., 0]
    found = proofs(QuadraticPrograms(q, P, C, upper=b)).certify(x, v).lower_bound
    exact = [exact_minimum(P[k], q[k], C[k], b[k], v[k]) for k in range(count)]
    off = np.array([float(Fraction(float(f)) - e) for f, e in zip(found, exact, strict=True)])
    assert (off <= 0.0).all()
    assert off.min() > -1e-11


def test_products_enclose_the_exact_ones() -> None:
    rng = np.random.default_rng(3)
    M, x = rng.standard_normal((200, 1, 8)), rng.standard_normal((200, 8))
    M[:, :, 4:], x[:, 4:] = M[:, :, :4], -x[:, :4] * (1.0 + 2.0**-40)
    found = enclosed_product(M, x)
    for k in range(200):
        exact = sum(Fraction(a) * Fraction(b) for a, b in zip(M[k, 0], x[k], strict=True))
        assert abs(Fraction(float(found.value[k, 0])) - exact) <= Fraction(float(found.error[k, 0]))
    sizes = (np.abs(M) @ np.abs(x)[..., None])[..., 0]
    assert (found.error <= 2.3e-15 * sizes).all()  # 2 gamma_10


def test_a_point_in_single_precision_is_certified_as_it_is_returned() -> None:
    """Rounding the point to single precision leaves the box by up to 6e-8: violation and value say so."""
    rng = np.random.default_rng(5)
    C, b = rng.standard_normal((20, 6, 4)).astype(np.float32), np.ones((20, 6), np.float32)
    z = rng.standard_normal((20, 4)).astype(np.float32)
    results = lopro.solve_many(
        [
            lopro.Problem(
                lopro.objectives.SquaredDistance(4.0 * z[k]),
                lopro.constraints.Polyhedron(C[k], b[k]),
            )
            for k in range(20)
        ]
    )
    for k, result in enumerate(results):
        x = np.asarray(result.x, dtype=np.float64)
        assert result.x.dtype == np.float32
        assert result.fun == pytest.approx(0.5 * ((x - 4.0 * z[k]) ** 2).sum(), rel=1e-13)
        excess = np.asarray(C[k], dtype=np.float64) @ x - 1.0
        assert result.certificate.absolute_violation == pytest.approx(
            max(0.0, excess.max()), abs=1e-14
        )
    assert results.success.all()
