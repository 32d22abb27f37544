"""Newton's method on data of a device: the same steps and answers, and valid bounds.

Arrays of array-api-strict stand in for those of a device, so that every machine tests the code; other
libraries run it where they are installed.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import array_api_strict
import numpy as np
import pytest
from support.map_kinds import KINDS, Kind

import lopro
import lopro.constraints as lc
import lopro.objectives as lo
from lopro.core.arrays import to_numpy
from lopro.errors import MissingCapabilityError
from lopro.functions.atoms import HalfSquare, Logistic
from lopro.functions.term import Term
from lopro.linalg.dense import EPS
from lopro.linalg.products import enclose_adjoint, enclose_forward
from lopro.linalg.rounding import gamma
from lopro.maps import ArrayMap, linear_map
from lopro.maps.host import Transferred
from lopro.methods.second_order import composite
from lopro.newton.curvature import ConstantMatrix, Diagonal, Gram, LowRank
from lopro.newton.losses import Loss, SquaredLoss
from lopro.newton.quadratic_form import QuadraticForm
from lopro.newton.systems import ConjugateGradients, SingularSystem, SystemOnDevice, choose_system

RNG = np.random.default_rng(5)
A, WIDE = RNG.standard_normal((60, 20)), RNG.standard_normal((10, 20))
B, C, H = RNG.standard_normal(60), RNG.standard_normal((80, 20)), RNG.random(80)
LABELS = np.where(A @ RNG.standard_normal(20) + RNG.standard_normal(60) > 0.0, 1.0, -1.0)
P = A.T @ A

Make = Callable[[Any], Any]
PROBLEMS: dict[str, Callable[[Make], lopro.Problem]] = {
    "logistic": lambda of: lopro.Problem(
        lo.Logistic(of(A), of(LABELS), l2=1e-3), lc.Affine(of(C[:5]), -0.05, 0.05)
    ),
    "logistic without ridge": lambda of: lopro.Problem(
        lo.Logistic(of(A), of(LABELS)), lc.Polyhedron.box(of(-np.ones(20)), of(np.ones(20)))
    ),
    "least squares": lambda of: lopro.Problem(
        lo.LeastSquares(of(A), of(9.0 * B)), lc.Polyhedron(of(C), of(H))
    ),
    "wide least squares": lambda of: lopro.Problem(
        2.0 * lo.LeastSquares(of(WIDE), of(9.0 * B[:10])),
        lc.Intersection(
            lc.Polyhedron(of(C[:5]), of(H[:5])),
            lc.Polyhedron.box(of(-np.ones(20)), of(np.ones(20))),
        ),
    ),
    "quadratic over a ball": lambda of: lopro.Problem(
        lo.Quadratic(of(P), of(B[:20])), lc.ResidualBall(of(WIDE), of(B[:10]), 1.0)
    ),
    "simplex": lambda of: lopro.Problem(lo.LeastSquares(of(A), of(B)), lc.Simplex(20)),
    "lasso": lambda of: lopro.Problem(
        lo.Sum(lo.LeastSquares(of(A), of(B)), 2.0 * lo.L1Norm()),
        lc.Polyhedron(of(C[:5]), of(0.1 * H[:5])),
    ),
    "linear": lambda of: lopro.Problem(
        lo.Linear(of(B[:20])),
        lc.Intersection(
            lc.Polyhedron(of(C), of(H)), lc.Polyhedron.box(of(-np.ones(20)), of(np.ones(20)))
        ),
    ),
}


@pytest.fixture
def elsewhere(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every array is treated as one of a device, and as too large to be copied for an engine."""
    monkeypatch.setattr("lopro.maps.host._ENGINE_BYTES", 0)
    for module in ("maps.host", "methods.second_order.forms"):
        monkeypatch.setattr(f"lopro.{module}.on_host", lambda x: False)


def strict(M: Any) -> Any:
    return array_api_strict.asarray(M)


def elsewhere_map(M: Any) -> Transferred:
    return Transferred(ArrayMap(strict(M)))


LIBRARIES = [
    kind for kind in KINDS if kind.name in ("strict", "torch", "torch-cuda", "jax", "cupy")
]


@pytest.mark.parametrize("kind", LIBRARIES, ids=lambda kind: kind.name)
@pytest.mark.parametrize("name", PROBLEMS)
def test_answers_are_those_of_the_host(
    name: str, kind: Kind, request: pytest.FixtureRequest
) -> None:
    for package in kind.needs:
        pytest.importorskip(package, reason=f"{package} is not installed")
    kind.prepare()
    method = lopro.NewtonMultipliers()
    expected = lopro.solve(PROBLEMS[name](np.asarray), method=method, tol=1e-8)
    request.getfixturevalue("elsewhere")
    problem = PROBLEMS[name](kind.of)
    form = composite(problem)
    assert any(isinstance(part, Transferred) for part in (*_maps(form.smooth), *_maps(*form.terms)))
    assert lopro.Auto().choose(problem) == method
    result = lopro.solve(problem, tol=1e-8)
    assert expected.success and result.success
    assert type(result.x) is type(kind.of(B))
    assert float(result.fun) == pytest.approx(expected.fun, rel=1e-8)
    np.testing.assert_allclose(to_numpy(result.x), expected.x, atol=1e-5)
    pairs = zip(result.multipliers, expected.multipliers, strict=True)
    for v, u in pairs:
        np.testing.assert_allclose(to_numpy(v), u, atol=1e-4 * max(1.0, np.abs(u).max()))


def _maps(*parts: Any) -> list[Any]:
    """Return the linear maps of terms and of smooth functions."""
    found = []
    for part in parts:
        found += _maps(*getattr(part, "parts", ()))
        found.append(getattr(part, "map", None))
    return found


@pytest.mark.usefixtures("elsewhere")
def test_empty_problems_are_proved_empty() -> None:
    rows = strict(np.array([np.ones(20), -np.ones(20)]))
    sides = strict(np.array([-1.0, -1.0]))
    problem = lopro.Problem(lo.LeastSquares(strict(A), strict(B)), lc.Polyhedron(rows, sides))
    result = lopro.solve(problem)
    assert result.status.name == "INFEASIBLE" and result.ray is not None


@pytest.mark.usefixtures("elsewhere")
def test_single_precision_is_converted_on_its_device() -> None:
    expected = lopro.solve(PROBLEMS["least squares"](np.asarray), tol=1e-8)
    problem = PROBLEMS["least squares"](lambda M: strict(M.astype(np.float32)))
    assert lopro.Auto().choose(problem) == lopro.NewtonMultipliers()
    result = lopro.solve(problem, tol=1e-3)
    assert result.success and result.x.dtype == array_api_strict.float32
    assert float(result.fun) == pytest.approx(expected.fun, rel=2e-3)


@pytest.mark.usefixtures("elsewhere")
def test_large_single_precision_data_need_other_methods(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("lopro.maps.host._WIDENED_BYTES", 0)
    problem = PROBLEMS["least squares"](lambda M: strict(M.astype(np.float32)))
    with pytest.raises(MissingCapabilityError, match="take float64 on a device"):
        composite(problem)
    assert lopro.Auto().choose(problem) == lopro.MultiplierMethod()


def test_derivatives_are_those_of_the_host() -> None:
    x, d = 0.3 * RNG.standard_normal(20), RNG.standard_normal(20)
    logistic = Term(Logistic(LABELS), linear_map(A), scale=0.1)
    square = Term(HalfSquare(), linear_map(A), B)
    pairs = [
        (Loss(replace(logistic, map=elsewhere_map(A))), Loss(logistic)),
        (SquaredLoss(replace(square, map=elsewhere_map(A))), SquaredLoss(square)),
        (QuadraticForm(elsewhere_map(P), B[:20], 2.0), QuadraticForm(P, B[:20], 2.0)),
    ]
    for ours, known in pairs:
        assert ours.value(x) == pytest.approx(known.value(x), rel=1e-13)
        image, direction = ours.image(x), ours.image(d)
        gradient = known.gradient(x, known.image(x))
        np.testing.assert_allclose(ours.gradient(x, image), gradient, rtol=1e-12, atol=1e-12)
        (own,), (piece,) = ours.curvature(x, image), known.curvature(x, known.image(x))
        np.testing.assert_allclose(own.apply(d), piece.apply(d), rtol=1e-12, atol=1e-12)
        np.testing.assert_allclose(own.diagonal(), piece.diagonal(), rtol=1e-12)
        assert own.on_device and not piece.on_device
        whole = to_numpy(own.assembled())
        np.testing.assert_allclose(whole @ d, piece.apply(d), rtol=1e-12, atol=1e-12)
        slope = ours.along(x, image, d, direction)
        reference = known.along(x, known.image(x), d, known.image(d))
        np.testing.assert_allclose(slope(0.7), reference(0.7), rtol=1e-12)


def test_logistic_losses_at_large_points_neither_overflow_nor_vanish() -> None:
    f = Loss(Term(Logistic(np.array([1.0, -1.0])), elsewhere_map([[1.0], [1.0]])))
    x = np.array([800.0])
    assert f.value(x) == 400.0
    assert f.gradient(x, f.image(x))[0] == 0.5


def test_a_large_normal_matrix_is_not_formed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("lopro.newton.losses.LARGEST", 10)
    known = SquaredLoss(Term(HalfSquare(), linear_map(A), B))
    f = SquaredLoss(Term(HalfSquare(), elsewhere_map(A), B))
    x, d = RNG.standard_normal(20), RNG.standard_normal(20)
    assert f.normal_matrix is None and f.strong_convexity() == 0.0
    gradient = known.gradient(x, known.image(x))
    np.testing.assert_allclose(f.gradient(x, f.image(x)), gradient, rtol=1e-12, atol=1e-12)
    (own,) = f.curvature(x, f.image(x))
    np.testing.assert_allclose(own.apply(d), P @ d, rtol=1e-12, atol=1e-12)
    slope = f.along(x, f.image(x), d, f.image(d))
    reference = known.along(x, known.image(x), d, known.image(d))
    np.testing.assert_allclose(slope(0.7), reference(0.7), rtol=1e-12)


def test_few_weights_gather_rows_and_many_use_slabs(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    few, many = np.where(np.arange(60) % 7 == 0, H[:60], 0.0), H[:60]
    for height in (60 * 20, 7 * 20, 1):
        monkeypatch.setattr("lopro.maps.host._SLAB", height)
        for weights in (few, many):
            gram = Gram(strict(A), strict(weights))
            whole = to_numpy(gram.assembled())
            np.testing.assert_allclose(whole, A.T @ (weights[:, None] * A), atol=1e-12)
            np.testing.assert_allclose(gram.diagonal(), weights @ A**2, rtol=1e-13)
    assert elsewhere_map(A).row_norms == pytest.approx(np.linalg.norm(A, axis=1), rel=1e-14)
    assert elsewhere_map(A).column_norms == pytest.approx(np.linalg.norm(A, axis=0), rel=1e-14)


def test_a_system_is_the_sum_of_host_and_device_pieces() -> None:
    rows = RNG.standard_normal((1, 20))
    pieces = [
        ConstantMatrix(strict(P)),
        Gram(strict(C), strict(H)),
        Diagonal(H[:20]),
        LowRank(rows, np.array([[2.0]])),
    ]
    system = choose_system(20, pieces)
    assert isinstance(system, SystemOnDevice)
    whole = P + C.T @ (H[:, None] * C) + np.diag(H[:20] + 0.5) + 2.0 * rows.T @ rows
    solved = system.solve(pieces, 0.5, B[:20], 0.0)
    np.testing.assert_allclose(solved, np.linalg.solve(whole, B[:20]), rtol=1e-10)
    with pytest.raises(SingularSystem):
        system.solve([ConstantMatrix(strict(WIDE.T @ WIDE))], 0.0, B[:20], 0.0)
    assert isinstance(choose_system(10_000, pieces), ConjugateGradients)


def test_errors_of_products_are_within_bounds_computed_by_hand() -> None:
    M = RNG.standard_normal((5000, 30))
    D, x, v = elsewhere_map(M), RNG.standard_normal(30), RNG.standard_normal(5000)
    wide = M.astype(np.longdouble)
    forward, error = enclose_forward(D, x)
    assert np.all(np.abs(forward - wide @ x.astype(np.longdouble)) <= error)
    by_hand = gamma(30) * np.linalg.norm(x) * np.linalg.norm(M, axis=1)
    np.testing.assert_allclose(error, by_hand, rtol=1e-12)
    uncertain = 1e-9 * RNG.random(5000)
    normal, error = enclose_adjoint(D, v, uncertain)
    assert np.all(np.abs(normal - v.astype(np.longdouble) @ wide) <= error)
    chunks = np.array([v[i : i + 2048] @ M[i : i + 2048] for i in (0, 2048, 4096)])
    within = gamma(2048) * np.linalg.norm(v) + np.linalg.norm(uncertain)
    by_hand = within * np.linalg.norm(M, axis=0) + gamma(4) * np.abs(chunks).sum(axis=0)
    np.testing.assert_allclose(error, by_hand, rtol=1e-11)


def test_strong_convexity_subtracts_the_rounding_of_the_device() -> None:
    f = SquaredLoss(Term(HalfSquare(), elsewhere_map(A), B))
    mu = np.linalg.eigvalsh(P)[0]
    assert 0.4 * mu < f.strong_convexity() < mu
    wide = SquaredLoss(Term(HalfSquare(), elsewhere_map(WIDE), B[:10]))
    assert wide.strong_convexity() == 0.0
    assert 0.4 * mu < QuadraticForm(elsewhere_map(P), B[:20]).strong_convexity() < mu
    known = QuadraticForm(P, B[:20]).strong_convexity()
    lost = gamma(61) * np.linalg.norm(A) ** 2
    assert f.strong_convexity() == pytest.approx(known - lost, rel=8.0 * EPS)
