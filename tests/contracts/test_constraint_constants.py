"""Constants with known values, and wrong ones that the regularity check must reject."""

from __future__ import annotations

import math
from itertools import combinations
from typing import Any

import numpy as np
import pytest
from scipy.sparse.linalg import aslinearoperator

from lopro.constraints import (
    Constraint,
    Distance,
    FunctionConstraint,
    Intersection,
    KyFan,
    MaxForm,
    MinEigenvalue,
    NegativeSum,
    NormForm,
    Polyhedron,
    PSDCone,
    ResidualBall,
    ResidualNorm,
    SquaredResidual,
    hoffman,
)
from lopro.constraints import rows as rows_of_constraints
from lopro.functions import Source

FORMS = [MaxForm(), NormForm()]


def worst_ratio(c: Constraint, rho: float, points: Any) -> float:
    """Return the largest ``rho dist / c``: at most 1 if rho is a regularity constant."""
    return max(rho * float(np.linalg.norm(x - c.project(x))) / c.value(x) for x in points)


def rho_of(c: Constraint) -> float:
    rho = c.regularity()
    assert rho is not None
    return rho.value


# Hoffman constants.


@pytest.mark.parametrize("form", FORMS, ids=repr)
def test_paper_s_eigenvalue_has_the_wrong_units(form: Any) -> None:
    """One row 2 x <= 0: the eigenvalue 4 is refused, its root 2 is the constant."""
    c = Polyhedron(np.array([[2.0]]), np.zeros(1), form)
    points = [np.array([t]) for t in (1e-3, 1.0, 1e3)]
    assert worst_ratio(c, 4.0, points) > 1.9
    assert rho_of(c) == pytest.approx(2.0)
    assert worst_ratio(c, rho_of(c), points) <= 1.0 + 1e-12


@pytest.mark.parametrize("e", [0.1, 1e-2, 1e-4])
@pytest.mark.parametrize("form", FORMS, ids=repr)
def test_no_eigenvalue_is_a_regularity_constant(form: Any, e: float) -> None:
    """Two nearly opposite rows: the distance is 1 where the violation is of order e."""
    C = np.array([[e, 1.0], [e, -1.0], [-1.0, 0.0]])
    c, x = Polyhedron(C, np.array([0.0, 0.0, 10.0]), form), np.array([1.0, 0.0])
    eigenvalue = float(np.linalg.eigvalsh(C.T @ C)[0])
    expected = e if isinstance(form, MaxForm) else e * math.sqrt(2.0)
    assert worst_ratio(c, math.sqrt(eigenvalue), [x]) > 3.0
    assert rho_of(c) == pytest.approx(expected, rel=1e-9)
    assert worst_ratio(c, rho_of(c), [x]) == pytest.approx(1.0, rel=1e-6)


def brute_force(C: Any, p: float) -> float:
    """Return min |C_J' v| over independent rows and pairs J of a plane, v >= 0 of unit p-norm."""
    best = float(np.linalg.norm(C, axis=1).min())
    for i, j in combinations(range(len(C)), 2):
        if np.linalg.matrix_rank(C[[i, j]]) < 2:
            continue

        def length(t: Any, i: int = i, j: int = j) -> Any:
            v = np.stack([t, 1.0 - t], axis=-1)
            v = v / np.linalg.norm(v, p, axis=-1, keepdims=True)
            return np.linalg.norm(v @ C[[i, j]], axis=-1)

        low, high = 0.0, 1.0
        for _ in range(8):  # a grid, and finer ones around its best point
            t = np.linspace(low, high, 201)
            k = int(np.argmin(length(t)))
            low, high = t[max(0, k - 1)], t[min(200, k + 1)]
        best = min(best, float(length(t).min()))
    return best


@pytest.mark.parametrize("seed", range(12))
@pytest.mark.parametrize("form", FORMS, ids=repr)
def test_hoffman_against_a_search(form: Any, seed: int) -> None:
    rng = np.random.default_rng(seed)
    C = rng.standard_normal((5, 2)) * 10.0 ** rng.uniform(-1, 1, (5, 1))
    if seed % 3 == 0:
        C[4] = 3.0 * C[0]
    rho = rho_of(Polyhedron(C, np.ones(5), form))
    assert rho == pytest.approx(brute_force(C, 1 if isinstance(form, MaxForm) else 2), rel=1e-6)


@pytest.mark.parametrize("form", FORMS, ids=repr)
def test_box_is_a_polyhedron(form: Any) -> None:
    low, high = -np.ones(3), np.array([1.0, 2.0, np.inf])
    box = Polyhedron.box(low, high, form)
    general = Polyhedron(box.C, box.b, form)
    assert rho_of(box) == pytest.approx(rho_of(general))
    bounded = Polyhedron.box(low, np.ones(3))
    R, R_general = bounded.radius(), Polyhedron(bounded.C, bounded.b).radius()
    assert R is not None and R_general is not None
    assert R.value == pytest.approx(R_general.value, rel=1e-6)
    assert box.radius() is None and general.radius() is None


def test_too_many_row_sets_give_no_constant(monkeypatch: Any) -> None:
    C, b = np.eye(4), np.zeros(4)
    monkeypatch.setattr(hoffman, "MAX_SUBSETS", 14)
    assert Polyhedron(C, b).regularity() is None
    monkeypatch.setattr(hoffman, "MAX_SUBSETS", 15)
    assert Polyhedron(C, b).regularity() is not None


# Residual balls.


def along_smallest(A: Any, y: Any, sigma: float) -> list[Any]:
    """Points just outside, in the singular direction in which the ball is widest."""
    U, s, Vh = np.linalg.svd(A)
    edge = np.linalg.pinv(A) @ (y + sigma * U[:, len(s) - 1])
    return [edge + t * Vh[len(s) - 1] for t in (1e-5, 1e-4)]


def test_twice_the_printed_constant_of_the_square_is_tight(rng: Any) -> None:
    A, y, sigma = rng.standard_normal((3, 6)), rng.standard_normal(3), 0.8
    c = ResidualBall(A, y, sigma, SquaredResidual())
    printed = math.sqrt(sigma**2 * float(np.linalg.eigvalsh(A @ A.T)[0]))
    points = along_smallest(A, y, sigma)
    assert rho_of(c) == pytest.approx(2.0 * printed)
    assert worst_ratio(c, rho_of(c), points) <= 1.0 + 1e-9
    assert worst_ratio(c, 2.001 * printed, points) > 1.0


@pytest.mark.parametrize("form", [SquaredResidual(), ResidualNorm()], ids=repr)
def test_constant_without_full_rank_is_tight(form: Any) -> None:
    """diag(3, 2, 0) with a centre 0.6 off the range: the ball within the range has radius 0.8."""
    A, y = np.diag([3.0, 2.0, 0.0]), np.array([0.0, 0.0, 0.6])
    c = ResidualBall(A, y, 1.0, form)
    expected = 2.0 * 2.0 * 0.8 if isinstance(form, SquaredResidual) else 2.0 * 0.8
    assert rho_of(c) == pytest.approx(expected)
    points = [np.array([0.0, 0.4 + t, 5.0]) for t in (1e-5, 1e-4)]
    assert worst_ratio(c, rho_of(c), points) <= 1.0 + 1e-9
    assert worst_ratio(c, 1.001 * rho_of(c), points) > 1.0
    assert c.misfit == pytest.approx(0.6)
    low = c.infimum()
    assert low is not None
    assert low.value == pytest.approx(c.value(np.zeros(3)), abs=1e-12)


def test_balls_without_interior() -> None:
    A, y = np.eye(2), np.ones(2)
    assert ResidualBall(A, y, 0.0, SquaredResidual()).regularity() is None
    assert rho_of(ResidualBall(A, y, 0.0, ResidualNorm())) == pytest.approx(1.0)
    thin = ResidualBall(np.diag([1.0, 0.0]), np.array([0.0, 1.0]), 1.0, ResidualNorm())
    assert thin.regularity() is None
    assert thin.infeasibility() is None


def test_operators_claim_only_estimates(rng: Any) -> None:
    A = rng.standard_normal((4, 7))
    c = ResidualBall(aslinearoperator(A), np.zeros(4), 1.0)
    L = c.smoothness()
    assert L is not None and L.source is Source.ESTIMATED
    assert L.value == pytest.approx(2.0 * np.linalg.norm(A, 2) ** 2, rel=1e-5)
    assert c.regularity() is None and c.radius() is None and c.infeasibility() is None


def test_declared_tight_frame(rng: Any) -> None:
    Q = 2.0 * np.linalg.qr(rng.standard_normal((7, 4)))[0].T
    c = ResidualBall(aslinearoperator(Q), np.ones(4), 0.5, ResidualNorm(), tight_frame=4.0)
    assert rho_of(c) == pytest.approx(2.0)
    assert c.regularity().source is Source.GIVEN
    with pytest.raises(ValueError, match="tight_frame=1"):
        ResidualBall(aslinearoperator(Q), np.ones(4), 0.5, tight_frame=1.0)


# The cone.


@pytest.mark.parametrize("dim", [2, 5, 9])
@pytest.mark.parametrize("form", [MinEigenvalue(), KyFan(2), NegativeSum(), Distance()], ids=repr)
def test_cone_constants_are_tight_at_their_worst_matrix(form: Any, dim: int) -> None:
    """-I for the forms that depend on few eigenvalues, a single negative one for the others."""
    c = PSDCone(dim, form)
    single = np.eye(dim)
    single[0, 0] = -1.0
    points = [-np.eye(dim), single]
    assert worst_ratio(c, rho_of(c), points) == pytest.approx(1.0)


@pytest.mark.parametrize("dim", [2, 5, 9])
def test_constant_one_is_wrong_for_the_smallest_eigenvalue(dim: int) -> None:
    assert worst_ratio(PSDCone(dim), 1.0, [-np.eye(dim)]) == pytest.approx(math.sqrt(dim))


def test_every_form_has_an_interior() -> None:
    for form in (MinEigenvalue(), KyFan(2), NegativeSum(), Distance()):
        assert PSDCone(3, form).value(2.0 * np.eye(3)) == pytest.approx(-2.0)


def test_asymmetric_points_are_refused(rng: Any) -> None:
    for dim in (5, 80):
        X = rng.standard_normal((dim, dim))
        for call in (PSDCone(dim).value, PSDCone(dim).project, PSDCone(dim).violation):
            with pytest.raises(ValueError, match="x must be symmetric"):
                call(X)
        S = X + X.T
        S[0, 1] += 1e-12
        PSDCone(dim).value(S)


# Members of an intersection.


def test_intersection_takes_its_constants_from_the_members() -> None:
    ball = ResidualBall(np.eye(2), np.zeros(2), 1.0, ResidualNorm())
    box = Polyhedron.box(-np.ones(2), np.array([3.0, 1.0]))
    both = Intersection(Intersection(ball), box, rho=0.5)
    assert both.members() == (ball, box)
    assert both.lipschitz().value == pytest.approx(1.0)
    assert both.radius().value == pytest.approx(1.0)
    assert both.regularity().source is Source.GIVEN
    assert Intersection(ball, box).regularity() is None


def test_a_bounding_box_of_many_entries_is_not_computed(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each column takes linear programs of size rows times columns: 6 rows of 3 columns count as 54."""
    rows = np.array([[1.0, 1.0, 0.0], [0.0, 1.0, 1.0], [1.0, 0.0, 1.0]])
    for most, known in ((54.0, True), (53.0, False)):
        monkeypatch.setattr(rows_of_constraints, "_BOXED", most)
        radius = Polyhedron(np.vstack([rows, -rows]), np.ones(6)).radius()
        assert (radius is not None) == known


def test_empty_sets_are_named() -> None:
    left = Polyhedron(np.array([[1.0]]), np.array([0.0]))
    right = Polyhedron(np.array([[-1.0]]), np.array([-1.0]))
    assert left.infeasibility() is None and right.infeasibility() is None
    assert "empty" in str(Intersection(left, right).infeasibility())
    assert "row 0 is zero" in str(Polyhedron(np.zeros((1, 2)), [-1.0]).infeasibility())
    ball = ResidualBall(np.diag([1.0, 0.0]), np.array([0.0, 2.0]), 1.0)
    assert "least-squares residual is 2" in str(ball.infeasibility())
    assert "least-squares" in str(Intersection(ball, ball).infeasibility())


def test_function_constraint_checks_a_given_projection() -> None:
    from lopro.errors import ProjectionError

    lazy = FunctionConstraint(lambda x: float(x @ x) - 1.0, lambda x: 2.0 * x, project=lambda x: x)
    with pytest.raises(ProjectionError, match="project must return a feasible point"):
        lazy.project(np.array([3.0, 4.0]))
