"""The interior point baseline: agreement with CVXPY, one projection, bounds independent of the solver."""

from __future__ import annotations

import itertools
import math
from dataclasses import replace
from typing import Any

import array_api_strict
import numpy as np
import pytest
import scipy.sparse.linalg
from support.clarabel_reference import reference
from support.random_models import Case, cases
from support.theorem_checks import count_projections
from support.theory_problems import t3, t4, t6_ellipsoid, t8, t9

import lopro
from lopro import Problem, Status
from lopro import constraints as lc
from lopro import objectives as lo
from lopro.engines import Answer, ConeProgram, solve_cones
from lopro.engines.cones import Nonnegative, PSDTriangle, SecondOrder
from lopro.functions.atoms import HalfSquare
from lopro.functions.term import Term
from lopro.methods.baselines import InteriorPoint
from lopro.methods.second_order import interior_point

KNOWN = [t3, t4, t6_ellipsoid, t8, t9]


def applicable(round_: int) -> list[Case]:
    """Return the random problems that have a conic form."""
    found = []
    for case in cases(round_):
        try:
            InteriorPoint().check(case.problem)
        except lopro.MissingCapabilityError:
            continue
        found.append(case)
    return found


def complaint(case: Case) -> str | None:
    """Return how the result for a problem differs from that of CVXPY, if it does."""
    best = reference(case)
    result = lopro.solve(case.problem, method=InteriorPoint())
    scale = max(1.0, abs(best))
    error = abs(result.fun - best) / scale
    if error > 1e-6 or result.certificate.violation > 1e-9:
        return f"{case.name}: error {error:.1e}, violation {result.certificate.violation:.1e}"
    if result.certificate.lower_bound > best + 1e-7 * scale:
        return f"{case.name}: lower bound {result.certificate.lower_bound} above {best}"
    if result.counts.projections != 1:
        return f"{case.name}: {result.counts.projections} projections"
    # Some optima are zero, which gives no scale: these gaps are compared with 1.
    return None if result.certificate.gap <= 1e-5 * scale else f"{case.name}: {result.certificate}"


def test_it_agrees_with_cvxpy_on_every_random_problem_of_known_structure():
    found = applicable(0)
    assert len(found) >= 150
    wrong = [text for text in map(complaint, found) if text is not None]
    assert not wrong, "\n".join(wrong)
    kinds = {tuple(case.name.split("/")[:2]) for case in found}
    assert {f for f, _ in kinds} >= {"logistic", "weighted_l1", "singular_quadratic", "wide_lasso"}
    assert {c for _, c in kinds} >= {"cone", "ball_and_halfspace", "thin_ball", "simplex"}


def test_a_wrong_translation_is_detected():
    """Negative control: with half of the quadratic the same comparison fails, almost always."""
    count = 0
    for case in itertools.islice((c for c in applicable(0) if c.name.startswith("distance/")), 6):
        z = -np.asarray(case.problem.objective.subgradient(np.zeros(case.problem.shape)))
        case.problem = replace(case.problem, objective=_Half(z))
        count += complaint(case) is not None
    assert count >= 5


class _Half(lo.SquaredDistance):
    """A squared distance whose conic form is wrong."""

    @property
    def terms(self) -> Any:
        return (Term(_WrongSquare(), offset=self.z),)


class _WrongSquare(HalfSquare):
    def add_to_cone_program(self, program: Any, image: Any, scale: float) -> None:
        program.add_quadratic(0.5 * scale * image.D)
        program.add_linear(-scale * image.b)


@pytest.mark.parametrize("make", KNOWN)
def test_known_problems_to_eight_digits_and_within_the_bound_on_iterations(make):
    known = make()
    result = lopro.solve(known.problem, known.x0, InteriorPoint(), tol=1e-8)
    assert result.success
    scale = max(1.0, abs(known.optimum))
    assert result.certificate.lower_bound <= known.optimum + 1e-12 * scale
    assert abs(known.gap(result.x)) <= 1e-8 * scale
    # sqrt(nu) log(1 / eps), the barrier parameter taken as small as it can be.
    assert result.iterations <= math.sqrt(3.0) * math.log(1e11)
    assert result.counts.factorizations == result.iterations


@pytest.mark.parametrize("make", KNOWN)
def test_one_projection_by_both_counts(make):
    known = make()
    calls = count_projections(known.constraint)
    result = lopro.solve(known.problem, known.x0, InteriorPoint(), tol=0.0)
    assert (calls(), result.counts.projections) == (1, 1)
    # One candidate, and a second one with the bound of all multipliers where there is one.
    assert 1 <= len(result.history) <= 2
    assert result.counts.gradients == result.counts.values == 0


def spoiled_bounds(known, monkeypatch, *, repaired: bool) -> list[float]:
    """Return the lower bounds of multipliers with noise, relative to the optimum."""
    rng = np.random.default_rng(5)

    def noisy(form: ConeProgram, accuracy: float) -> Answer:
        answer = solve_cones(form, accuracy)
        return replace(answer, rows=answer.rows + 0.02 * rng.standard_normal(len(answer.rows)))

    monkeypatch.setattr(interior_point, "solve_cones", noisy)
    if not repaired:
        for cone in (Nonnegative, SecondOrder, PSDTriangle):
            monkeypatch.setattr(cone, "into_dual", lambda self, z: z)
    results = [lopro.solve(known.problem, known.x0, InteriorPoint()) for _ in range(20)]
    # The driver drops a bound above the value of a point with a warning: it counts as false.
    return [math.inf if r.warnings else r.certificate.lower_bound - known.optimum for r in results]


@pytest.mark.parametrize("make", [t3, t4, t6_ellipsoid, t9])
def test_bounds_hold_for_any_answer_of_the_solver(make, monkeypatch):
    assert max(spoiled_bounds(make(), monkeypatch, repaired=True)) <= 1e-10


@pytest.mark.filterwarnings("ignore::lopro.errors.BoundContradictionWarning")
@pytest.mark.parametrize("make", [t6_ellipsoid, t9])
def test_without_the_repair_bounds_are_false(make, monkeypatch):
    """Negative control: multipliers outside the dual cone prove what is false."""
    assert max(spoiled_bounds(make(), monkeypatch, repaired=False)) > 1e-3


def test_complex_points_equations_and_hermitian_matrices(rng):
    A = rng.standard_normal((8, 20)) + 1j * rng.standard_normal((8, 20))
    y = A @ (2j * np.eye(20)[3] + np.eye(20)[5])
    for sigma in (0.1, 0.0):
        problem = Problem(lo.L1Norm(), lc.ResidualBall(A, y, sigma))
        result = lopro.solve(problem, method=InteriorPoint(), tol=1e-7)
        assert result.success and result.x.dtype == np.complex128
        assert result.fun == pytest.approx(lopro.solve(problem, tol=1e-8).fun, rel=1e-6)
    H = rng.standard_normal((4, 4)) + 1j * rng.standard_normal((4, 4))
    H = H + H.conj().T
    result = lopro.solve(Problem(lo.SquaredDistance(H), lc.PSDCone(4)), method=InteriorPoint())
    negative = np.minimum(np.linalg.eigvalsh(H), 0.0)
    assert result.success and result.fun == pytest.approx(
        0.5 * float(negative @ negative), rel=1e-7
    )
    complex_squares = lo.LeastSquares(A, y) + 0.1 * lo.L1Norm()
    ball = lc.ResidualBall(np.eye(20) + 0j, np.zeros(20), 0.5)
    result = lopro.solve(Problem(complex_squares, ball), method=InteriorPoint(), tol=1e-7)
    assert result.success


def test_simplices_spectrahedra_and_pair_losses(rng):
    a = rng.standard_normal(5)
    result = lopro.solve(Problem(lo.Linear(a), lc.Simplex(5)), method=InteriorPoint(), tol=1e-8)
    assert result.success and result.fun == pytest.approx(a.min(), abs=1e-8)
    S = rng.standard_normal((4, 4))
    S = S + S.T
    for equality, best in (
        (True, np.linalg.eigvalsh(S)[0]),
        (False, 2.0 * np.linalg.eigvalsh(S)[0]),
    ):
        set_ = lc.Spectrahedron(4, 1.0 if equality else 2.0, equality=equality)
        result = lopro.solve(Problem(lo.Linear(S), set_), method=InteriorPoint(), tol=1e-8)
        assert result.success and result.fun == pytest.approx(best, rel=1e-7)
    Z, targets = rng.standard_normal((30, 5)), rng.uniform(0.0, 2.0, 30)
    f = lopro.metric.PairLoss.from_differences(Z, targets) + lo.OffDiagonalL1(5, 0.05)
    problem = Problem(f, lc.PSDCone(5), solution_norm=10.0)
    result = lopro.solve(problem, method=InteriorPoint())
    assert result.success
    assert result.fun == pytest.approx(lopro.solve(problem, tol=1e-7).fun, rel=1e-6)


def test_library_and_precision_are_kept(rng):
    A, y = rng.standard_normal((5, 12)), rng.standard_normal(5)
    strict = array_api_strict.asarray
    result = lopro.solve(
        Problem(lo.L1Norm(), lc.ResidualBall(strict(A), strict(y), 0.5)), method=InteriorPoint()
    )
    assert result.success and isinstance(result.x, type(strict(A)))
    single = Problem(lo.L1Norm(), lc.ResidualBall(A.astype("f4"), y.astype("f4"), 0.5))
    result = lopro.solve(single, method=InteriorPoint(), tol=1e-4)
    assert result.success and result.x.dtype == np.float32


def test_empty_sets_and_unbounded_objectives_are_reported():
    half_lines = lc.Polyhedron(np.array([[1.0, 0.0], [0.0, 1.0]]), np.ones(2))
    far = lc.ResidualBall(np.eye(2), np.array([9.0, 9.0]), 1.0)
    result = lopro.solve(
        Problem(lo.Linear(np.ones(2)), lc.Intersection(half_lines, far)), method=InteriorPoint()
    )
    assert result.status is Status.INFEASIBLE
    zero_row = lc.Polyhedron(np.array([[0.0, 0.0], [1.0, 0.0]]), np.array([-1.0, 1.0]))
    result = lopro.solve(Problem(lo.Linear(np.ones(2)), zero_row), method=InteriorPoint())
    assert result.status is Status.INFEASIBLE
    result = lopro.solve(Problem(lo.Linear(np.ones(2)), half_lines), method=InteriorPoint())
    assert result.status is Status.NONFINITE and "no lower bound" in result.warnings[0]


def test_it_names_the_part_without_a_conic_form(rng):
    box = lc.Polyhedron.box(-np.ones(3), np.ones(3))
    cosh = lo.FunctionObjective(lambda x: float(np.cosh(x).sum()), np.sinh, shape=(3,))
    round_ = lc.FunctionConstraint(lambda x: float(x @ x) - 1.0, lambda x: 2.0 * x, shape=(3,))
    operator = scipy.sparse.linalg.aslinearoperator(rng.standard_normal((2, 3)))
    for problem, name in (
        (Problem(lo.L1Norm() + cosh, box), "FunctionObjective"),
        (Problem(lo.L1Norm(), lc.Intersection(box, round_)), "FunctionConstraint"),
        (Problem(lo.LeastSquares(operator, np.ones(2)), box), "operator"),
    ):
        with pytest.raises(lopro.MissingCapabilityError, match=name):
            lopro.solve(problem, method=InteriorPoint())


class Slab(lc.FunctionConstraint):
    """``|x_1| <= 1`` by callables."""

    def conic_form(self, complex_points: bool = False) -> Any:
        return lc.Polyhedron(np.array([[1.0, 0.0], [-1.0, 0.0]]), np.ones(2)).conic_form()


def test_types_of_users_have_a_conic_form():
    slab = Slab(
        lambda x: abs(float(x[0])) - 1.0, lambda x: np.array([np.sign(x[0]), 0.0]), shape=(2,)
    )

    problem = Problem(lo.SquaredDistance(np.array([3.0, 2.0])), slab)
    result = lopro.solve(problem, method=InteriorPoint())
    assert result.success and result.x == pytest.approx([1.0, 2.0], abs=1e-6)


def test_budgets_and_bad_parameters():
    known = t4()
    result = lopro.solve(known.problem, known.x0, InteriorPoint(1e-3), tol=0.0, max_iter=2)
    assert (result.status, result.iterations) == (Status.MAX_ITER, 2)
    for bad in (0.0, -1.0, math.nan):
        with pytest.raises(ValueError, match="accuracy"):
            InteriorPoint(bad)


def test_a_matrix_near_zero_is_symmetric_to_more_digits_than_the_engines():
    """Of 1e-9 with an error of 1e-16: it was refused as not symmetric by its own set."""
    a = np.array(
        [[-0.24365563376683583, 0.22809725475161824], [0.22809725475161824, -0.05494196040831276]]
    )
    f = lopro.objectives.SquaredDistance(a) + lopro.objectives.OffDiagonalL1(2, 0.7276271099682912)
    cone = lopro.constraints.PSDCone(2, lopro.constraints.KyFan(1))
    result = lopro.solve(lopro.Problem(f, cone), method=InteriorPoint())
    assert result.success and np.array_equal(result.x, result.x.T)
