"""The bounds of batches: exact numbers, and never above the bound in exact arithmetic."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

import lopro
from lopro.batch.programs import QuadraticPrograms
from lopro.batch.scaled import ScaledPrograms
from lopro.certificates.batched import Proofs
from lopro.certificates.batched_programs import Programs, Square
from lopro.linalg.batched import Enclosures
from lopro.linalg.rounding import gamma


def proofs(stacks: QuadraticPrograms | Programs, tol: float = 1e-6) -> Proofs:
    whole = slice(0, len(stacks.q))
    programs = stacks.subset(whole) if isinstance(stacks, QuadraticPrograms) else stacks
    return Proofs.of(programs, ScaledPrograms.of(programs).columns, tol, feasible=1e-9)


def one(*numbers: float) -> Any:
    return np.array([numbers], dtype=np.float64)


def test_the_bound_of_a_parabola_is_its_minimum() -> None:
    """``x^2 - 2x`` at 3 without multipliers: value 3, slope 4, mu = 2, so 3 - 16 / 4 = -1."""
    found = proofs(QuadraticPrograms(one(-2.0), np.full((1, 1, 1), 2.0))).certify(
        one(3.0), np.zeros((1, 0))
    )
    assert found["lower_bound"][0] == pytest.approx(-1.0, abs=1e-13)
    assert found["lower_bound"][0] < -1.0
    assert (found["fun"][0], found["gap"][0]) == (3.0, pytest.approx(4.0, abs=1e-13))
    assert found["relative_gap"][0] == pytest.approx(4.0 / 15.0)  # |9| + |-6|
    assert found["radius"][0] == np.inf


def test_the_bound_of_a_line_over_a_box_is_its_minimum() -> None:
    programs = QuadraticPrograms(one(3.0, -2.0), least=one(1.0, -np.inf), most=one(np.inf, 5.0))
    found = proofs(programs).certify(one(2.0, 4.5), np.zeros((1, 0)))
    assert found["lower_bound"][0] == pytest.approx(3.0 - 10.0, abs=1e-13)
    assert found["gap"][0] == pytest.approx(4.0, abs=1e-13)


def test_slopes_of_either_sign_over_a_box_cost_the_larger_charge() -> None:
    """For a slope known up to an error of 1 and a variable within -1 and 2, both signs are considered."""
    value, zero = Enclosures.exact(np.zeros(1)), np.zeros((1, 1))
    box = QuadraticPrograms(zero, least=one(-1.0), most=one(2.0))
    bound = proofs(box).lower_bounds(value, Enclosures(zero, np.ones((1, 1))), zero, zero)
    assert bound[0] == pytest.approx(-2.0, abs=1e-13)


def test_an_unabsorbed_slope_costs_its_norm_times_the_radius() -> None:
    """``x`` over ``x >= 1``, by a multiplier of -0.9: the remaining slope is 0.1, the radius 1e4."""
    programs = QuadraticPrograms(one(1.0), A=np.ones((1, 1, 1)), lower=one(1.0))
    found = proofs(programs).certify(one(1.0), one(-0.9))
    assert found["radius"][0] == 1e4
    assert found["lower_bound"][0] == pytest.approx(1.0 - 0.1 * 1e4, abs=1e-8)


def test_a_multiplier_of_a_missing_side_is_not_used() -> None:
    """``x >= 1`` has no upper side: a positive multiplier would prove anything."""
    programs = QuadraticPrograms(one(-1.0), A=np.ones((1, 1, 1)), lower=one(1.0))
    found = proofs(programs).certify(one(2.0), one(1.0))
    assert found["lower_bound"][0] < -1e4


def test_a_violation_is_charged() -> None:
    """``-x`` over ``x <= 1`` at 1 + 1e-10: the value is 1e-10 below the optimum, which is charged."""
    programs = QuadraticPrograms(one(-1.0), A=np.ones((1, 1, 1)), upper=one(1.0))
    found = proofs(programs).certify(one(1.0 + 1e-10), one(1.0))
    assert found["charge"][0] == pytest.approx(1e-10, rel=1e-4)
    assert found["gap"][0] == pytest.approx(1e-10, rel=1e-2)
    assert found["violation"][0] == pytest.approx(0.5e-10, rel=1e-4)
    assert found["absolute_violation"][0] == pytest.approx(1e-10, rel=1e-4)


def test_a_point_far_outside_has_an_infinite_gap() -> None:
    programs = QuadraticPrograms(one(-1.0), A=np.ones((1, 1, 1)), upper=one(1.0))
    assert proofs(programs).certify(one(2.0), one(1.0))["gap"][0] == np.inf


@pytest.mark.parametrize("rank", [1, 2, 3])
def test_singular_hessians_have_no_convexity(rank: int) -> None:
    B = np.random.default_rng(rank).standard_normal((4, rank, 3))
    P = np.swapaxes(B, 1, 2) @ B
    proof = proofs(QuadraticPrograms(np.zeros((4, 3)), P))
    mu, columns = proof.convexity, proof.columns
    if rank < 3:
        assert (mu == 0.0).all()
    least = np.linalg.eigvalsh(columns[:, :, None] * P * columns[:, None, :])[:, 0]
    assert (mu <= np.maximum(least, 0.0)).all()
    assert (mu >= (least / 2.0 if rank == 3 else 0.0)).all()


def test_convexity_of_squares_is_that_of_their_sum() -> None:
    D = np.array([[[1.0, 1.0]], [[2.0, 0.0]]])
    eye, no = np.broadcast_to(np.eye(2), (2, 2, 2)), np.zeros((2, 2))
    terms = (Square(D, no[:, :1], np.ones(2)), Square(eye, no, np.full(2, 0.5)))
    proof = proofs(replace(QuadraticPrograms(no).subset(slice(0, 2)), squares=terms))
    mu, columns = proof.convexity, proof.columns
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
    """At the minimiser of the Lagrangian the two differ only by rounding."""
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
    found = proofs(QuadraticPrograms(q, P, C, upper=b)).certify(x, v)["lower_bound"]
    exact = [exact_minimum(P[k], q[k], C[k], b[k], v[k]) for k in range(count)]
    off = np.array([float(Fraction(float(f)) - e) for f, e in zip(found, exact, strict=True)])
    assert (off <= 0.0).all()
    assert off.min() > -1e-11


def test_products_enclose_the_exact_ones() -> None:
    rng = np.random.default_rng(3)
    M, x = rng.standard_normal((200, 1, 8)), rng.standard_normal((200, 8))
    M[:, :, 4:], x[:, 4:] = M[:, :, :4], -x[:, :4] * (1.0 + 2.0**-40)
    found = Enclosures.product(M, x)
    for k in range(200):
        exact = sum(Fraction(a) * Fraction(b) for a, b in zip(M[k, 0], x[k], strict=True))
        assert abs(Fraction(float(found.value[k, 0])) - exact) <= Fraction(float(found.error[k, 0]))
    sizes = (np.abs(M) @ np.abs(x)[..., None])[..., 0]
    assert (found.error <= 2.3e-15 * sizes).all()  # 2 gamma_10


def test_a_point_in_single_precision_is_certified_as_it_is_returned() -> None:
    """Rounding moves the point out of the box by up to 6e-8: violation and value include it."""
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


def random_programs(seed: int, count: int = 40) -> tuple[Programs, Any, Any]:
    """Return programs with a quadratic, a square, rows and a box; and points and multipliers."""
    rng, n, m = np.random.default_rng([47, seed]), 3, 2
    B, D, A = (rng.standard_normal((count, rows, n)) for rows in (n, 4, m))
    x, q = rng.standard_normal((count, n)), rng.standard_normal((count, n))
    sides = (A @ x[..., None])[..., 0] + rng.standard_normal((count, m))
    least, most = np.full((count, n), -np.inf), np.full((count, n), np.inf)
    least[:, 0], most[:, 1] = x[:, 0] - 1.0, x[:, 1] + 0.5
    square = Square(D, rng.standard_normal((count, 4)), rng.random(count))
    P = np.swapaxes(B, 1, 2) @ B
    stacks = QuadraticPrograms(q, P, A, upper=sides, least=least, most=most)
    programs = replace(
        stacks.subset(slice(0, count)), squares=(square,), constant=rng.random(count)
    )
    return programs, x, rng.random((count, m))


def lagrangian(p: Programs, k: int, x: Any, v: Any) -> tuple[Fraction, list[Fraction]]:
    """Return value and gradient of a Lagrangian in rational numbers."""
    z = [Fraction(float(a)) for a in x]

    def rational(M: Any) -> list[list[Fraction]]:
        return [[Fraction(float(a)) for a in row] for row in M]

    def apply(M: list[list[Fraction]], w: list[Fraction]) -> list[Fraction]:
        return [sum((a * b for a, b in zip(row, w, strict=True)), Fraction(0)) for row in M]

    P, A, q = rational(p.P[k]), rational(p.A[k]), rational([p.q[k]])[0]
    w, sides = rational([v[k]])[0], rational([p.upper[k]])[0]
    Px, slack = apply(P, z), [a - b for a, b in zip(apply(A, z), sides, strict=True)]
    value = Fraction(float(p.constant[k])) + sum(a * b for a, b in zip(w, slack, strict=True))
    value += sum(a * (b / 2 + c) for a, b, c in zip(z, Px, q, strict=True))
    slope = [
        a + b + c
        for a, b, c in zip(Px, q, apply(list(map(list, zip(*A, strict=True))), w), strict=True)
    ]
    for term in p.squares:
        D, s = rational(term.D[k]), Fraction(float(term.scale[k]))
        r = [a - Fraction(float(b)) for a, b in zip(apply(D, z), term.b[k], strict=True)]
        value += s * sum(a * a for a in r) / 2
        back = apply(list(map(list, zip(*D, strict=True))), r)
        slope = [a + s * b for a, b in zip(slope, back, strict=True)]
    return value, slope


def test_values_and_gradients_are_enclosed_and_no_wider_than_their_roundings() -> None:
    programs, x, _ = random_programs(1)
    value, gradient, magnitude = programs.evaluate(x)
    nothing = np.zeros_like(programs.upper)
    for k in range(len(x)):
        exact, slope = lagrangian(programs, k, x[k], nothing)
        assert abs(Fraction(float(value.value[k])) - exact) <= Fraction(float(value.error[k]))
        for j in range(3):
            off = abs(Fraction(float(gradient.value[k, j])) - slope[j])
            assert off <= Fraction(float(gradient.error[k, j]))
    assert (value.error <= 40.0 * gamma(8) * magnitude).all()
    assert (value.error > 0.0).all() and (gradient.error > 0.0).all()


def test_the_bound_is_the_formula_of_its_docstring_less_rounding() -> None:
    """A slope costs itself times the distance to the bound it falls towards, or its square over 2 mu."""
    programs, x, v = random_programs(2)
    proof = proofs(programs)
    found = proof.certify(x, v)["lower_bound"]
    assert (proof.convexity > 0.0).all()
    for k in range(len(x)):
        value, slope = lagrangian(programs, k, x[k], v)
        mu, columns = float(proof.convexity[k]), proof.columns[k]
        cost, left = Fraction(0), Fraction(0)
        for j, c in enumerate(slope):
            end = programs.least[k, j] if c > 0 else programs.most[k, j]
            if np.isfinite(end):
                cost += abs(c * (Fraction(float(x[k, j])) - Fraction(float(end))))
            else:
                left += (Fraction(float(columns[j])) * c) ** 2
        exact = value - cost - left / (2 * Fraction(mu))
        assert Fraction(float(found[k])) < exact
        size = float(abs(value) + cost + left / (2 * Fraction(mu)))
        assert float(exact - Fraction(float(found[k]))) <= 1e-13 * (1.0 + size)


def test_an_error_of_the_gradient_is_charged_where_the_slope_is_zero() -> None:
    """Towards both missing and given bounds, and over the square: 0.5 * 1 + (2 * 0.5)^2 / (2 * 4)."""
    programs = QuadraticPrograms(
        np.zeros((1, 2)), 4.0 * np.eye(2)[None], least=one(-1.0, -np.inf)
    ).subset(slice(0, 1))
    proof = Proofs(programs, one(2.0, 2.0), np.full(1, 4.0), np.ones(1), np.zeros(1), 1e-9, 1e-6)
    x, slope = one(0.0, 0.0), Enclosures(np.zeros((1, 2)), one(0.5, 0.5))
    bound = proof.lower_bounds(Enclosures.exact(np.full(1, 3.0)), slope, x, np.full((1, 2), 1e9))
    # The first variable may increase as well: (2 * 0.5)^2 / (2 * 4) is added again.
    assert bound[0] == pytest.approx(3.0 - 0.5 - 0.25, abs=1e-13)


def test_an_error_of_the_value_is_charged() -> None:
    programs = QuadraticPrograms(np.zeros((1, 1))).subset(slice(0, 1))
    zero, flat = np.zeros((1, 1)), Enclosures.exact(np.zeros((1, 1)))
    bounds = proofs(programs).lower_bounds(
        Enclosures(np.full(1, 2.0), np.full(1, 0.5)), flat, zero, zero
    )
    assert bounds[0] == pytest.approx(1.5, abs=1e-14) and bounds[0] < 1.5


def test_violations_of_boxes_are_charged_with_their_slopes() -> None:
    """``-2 x`` over ``x <= 1`` at 1 + 1e-10: charged 2e-10, and compared with 2."""
    programs = QuadraticPrograms(one(-2.0), most=one(1.0))
    found = proofs(programs).certify(one(1.0 + 1e-10), np.zeros((1, 0)))
    assert found["charge"][0] == pytest.approx(2e-10, rel=1e-4)
    assert found["violation"][0] == pytest.approx(0.5e-10, rel=1e-4)
    other = QuadraticPrograms(one(2.0), least=one(-1.0))
    found = proofs(other).certify(one(-1.0 - 1e-10), np.zeros((1, 0)))
    assert found["charge"][0] == pytest.approx(2e-10, rel=1e-4)


def test_a_violation_relative_to_zero_is_infinite() -> None:
    programs = QuadraticPrograms(one(1.0), A=np.zeros((1, 1, 1)), upper=one(0.0))
    assert proofs(programs).certify(one(0.0), one(0.0))["violation"][0] == 0.0
    wall = QuadraticPrograms(one(1.0), A=np.zeros((1, 1, 1)), upper=one(-1e-300))
    assert proofs(wall).certify(one(0.0), one(0.0))["violation"][0] == 1.0


def test_typical_sizes_are_those_of_rows_slopes_and_traces() -> None:
    P, q = np.diag([2.0, 6.0])[None], one(3.0, 4.0)
    rows = QuadraticPrograms(q, P, A=np.array([[[3.0, 4.0]]]), upper=one(10.0), lower=one(-15.0))
    unit, value = rows.subset(slice(0, 1)).typical()
    assert (unit[0], value[0]) == (
        3.0,
        20.0,
    )  # 3 * 10 / 3 + 4 * 10 / 4, in any units of the columns
    columns = np.array([2.0**40, 2.0**-40])
    scaled = QuadraticPrograms(
        q * columns, P * columns[:, None] * columns, A=columns * [[[3.0, 4.0]]], upper=one(10.0)
    )
    assert scaled.subset(slice(0, 1)).typical()[1][0] == 20.0
    unit, value = QuadraticPrograms(q, P).subset(slice(0, 1)).typical()
    assert unit[0] == pytest.approx(125.0 / 114.0)
    assert value[0] == pytest.approx(5.0 * 125.0 / 114.0)
    for u in (np.ones(2), columns):
        boxed = QuadraticPrograms(0.0 * q, P * u[:, None] * u, most=one(5.0, 2.0) / u)
        typical = boxed.subset(slice(0, 1)).typical()[1][0]
        assert typical == pytest.approx(0.5 * (2.0 * 25.0 + 6.0 * 4.0))


def test_rounding_asymmetry_is_averaged() -> None:
    P = np.array([[[2.0, 1.0], [1.0 + 2.0**-50, 2.0]]])
    part = QuadraticPrograms(one(0.0, 0.0), P).subset(slice(0, 1))
    assert (np.swapaxes(part.P, 1, 2) == part.P).all()
