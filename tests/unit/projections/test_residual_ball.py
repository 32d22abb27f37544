"""Five checks of projections onto 1000 random residual balls, and properties of this projection."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import cvxpy as cp
import numpy as np
import pytest
import scipy.sparse
from scipy.sparse.linalg import LinearOperator, aslinearoperator
from support.projection_judges import (
    assert_agrees_with_outside,
    assert_optimal,
    assert_stands_still,
    size,
)

from lopro.constraints import ResidualBall
from lopro.core.counting import Counts, counting
from lopro.errors import InfeasibleError, ProjectionError
from lopro.maps import linear_map
from lopro.projections.residual_ball import project_residual_ball
from lopro.projections.secular import damping

CASES = 1000


@dataclass(frozen=True)
class Case:
    A: Any
    y: Any
    sigma: float
    #: A point with a residual shorter than sigma (equal to it where sigma is 0).
    centre: Any
    x: Any

    def residual(self, z: Any) -> float:
        return float(np.linalg.norm(self.A @ z - self.y))

    def feasible(self, rng: np.random.Generator, number: int = 4) -> list[Any]:
        """Points on rays from the centre: half on the boundary, half inside; null space included."""
        points = []
        for i in range(number):
            u = _gaussian(rng, self.x.dtype, len(self.x))
            if self.sigma == 0.0:
                u = u - np.linalg.pinv(self.A) @ (self.A @ u)
                points.append(self.centre + u)
                continue
            a, r = self.A @ u, self.A @ self.centre - self.y
            aa, ar, rr = np.vdot(a, a).real, np.vdot(a, r).real, np.vdot(r, r).real
            if aa < 1e-20 * np.vdot(u, u).real:
                points.append(self.centre + u)
                continue
            t = (-ar + math.sqrt(ar**2 + aa * (self.sigma**2 - rr))) / aa
            points.append(self.centre + t * u * (1.0 if i % 2 else rng.random()))
        return points


def _gaussian(rng: np.random.Generator, dtype: Any, *shape: int) -> Any:
    x = rng.standard_normal(shape)
    return x + 1j * rng.standard_normal(shape) if np.dtype(dtype).kind == "c" else x


def make(seed: int) -> Case:
    rng = np.random.default_rng(seed)
    dtype = np.complex128 if seed % 5 == 4 else np.float64
    m, d = (int(n) for n in rng.integers(2, 31, 2))
    A = _gaussian(rng, dtype, m, d)
    if seed % 5 == 1:  # rank-deficient
        k = int(rng.integers(1, min(m, d) + 1))
        A = _gaussian(rng, dtype, m, k) @ _gaussian(rng, dtype, k, d)
    if seed % 5 == 2:  # rows of very different length, some repeated
        A = A * 10.0 ** rng.uniform(-1.5, 1.5, (m, 1))
        A[-1] = A[0]
    if seed % 10 == 3:  # tight frame
        A = 3.0 * np.linalg.qr(_gaussian(rng, dtype, max(m, d), min(m, d)))[0].conj().T
    centre = _gaussian(rng, dtype, A.shape[1])
    exact = A @ centre
    sigma = 0.0 if seed % 7 == 0 else float(np.linalg.norm(exact)) * 10.0 ** rng.uniform(-3, 0)
    shift = _gaussian(rng, dtype, len(exact))
    y = exact + shift * (0.9 * sigma * rng.random() / np.linalg.norm(shift))
    x = centre + _gaussian(rng, dtype, A.shape[1]) * 10.0 ** rng.uniform(-2, 2)
    return Case(A, y, sigma, centre, x)


def rounding(case: Case) -> float:
    """Return the rounding error of a residual at these magnitudes."""
    largest = float(np.linalg.norm(case.A, 2)) * size(case.x) + float(np.linalg.norm(case.y))
    return 1e-14 * largest


def reference(case: Case) -> Any:
    """Bisection on the multiplier, each time a dense least-squares problem."""
    if case.residual(case.x) <= case.sigma:
        return case.x
    if case.sigma == 0.0:
        return case.x - np.linalg.pinv(case.A) @ (case.A @ case.x - case.y)
    identity = np.eye(len(case.x))
    low, high = -40.0, 60.0
    for _ in range(70):
        middle = 0.5 * (low + high)
        root = math.exp(0.5 * middle)
        stacked = np.vstack([identity, root * case.A])
        z = np.linalg.lstsq(stacked, np.concatenate([case.x, root * case.y]), rcond=None)[0]
        low, high = (middle, high) if case.residual(z) > case.sigma else (low, middle)
    return z


def project(case: Case, x: Any) -> Any:
    return project_residual_ball(x, linear_map(case.A), case.y, case.sigma)


@pytest.mark.parametrize("block", range(10))
def test_feasibility_and_optimality(block: int) -> None:
    for seed in range(block, CASES, 10):
        case, rng = make(seed), np.random.default_rng(10_000 + seed)
        p = project(case, case.x)
        points = case.feasible(rng)
        slack = 0.0 if case.sigma > 100 * rounding(case) else rounding(case)
        assert case.residual(p) <= case.sigma + slack, seed
        assert_optimal(case.x, p, points)
        for z in points:
            inside = case.residual(z) < case.sigma
            assert_stands_still(lambda v, c=case: project(c, v), z, 0.0 if inside else 1e-10)


@pytest.mark.parametrize("block", range(10))
def test_slow_reference(block: int) -> None:
    for seed in range(block, CASES, 10):
        case = make(seed)
        gap = np.linalg.norm(project(case, case.x) - reference(case))
        assert gap <= 2e-9 * size(case.x), (seed, gap)


@pytest.mark.parametrize("block", range(10))
def test_operator_agrees_with_matrix(block: int) -> None:
    """Krylov spaces and the factorisation share only the secular equation."""
    for seed in range(block, CASES, 10):
        case = make(seed)
        p = project_residual_ball(case.x, linear_map(aslinearoperator(case.A)), case.y, case.sigma)
        gap = np.linalg.norm(project(case, case.x) - p)
        assert gap <= 1e-9 * size(case.x), (seed, gap)
        assert case.residual(p) <= case.sigma + rounding(case), seed


@pytest.mark.parametrize("seed", range(30))
def test_another_solver(seed: int) -> None:
    case = make(seed)
    z = cp.Variable(len(case.x), complex=np.iscomplexobj(case.x))
    residual = cp.norm(case.A @ z - case.y, 2)
    # A ball without interior is the affine set, which a conic solver has to be given as equations.
    limit = [residual <= case.sigma] if case.sigma > 0 else [case.A @ z == case.y]
    if case.sigma == 0.0 and np.linalg.matrix_rank(case.A) < len(case.y):
        limit = [case.A.conj().T @ (case.A @ z) == case.A.conj().T @ case.y]
    assert_agrees_with_outside(case.x, project(case, case.x), z, limit)


def test_a_wrong_multiplier_is_rejected() -> None:
    """A negative control: a step 1 % too long violates the variational inequality."""
    case = make(5)
    p = project(case, case.x)
    too_far = case.x + 1.01 * (p - case.x)
    with pytest.raises(AssertionError):
        assert_optimal(case.x, too_far, [p])


def test_tight_frame_is_one_formula_and_two_products_and_a_check(rng: Any) -> None:
    Q = np.linalg.qr(rng.standard_normal((20, 8)))[0].T * 2.0
    A, y, x = linear_map(aslinearoperator(Q)), rng.standard_normal(8), rng.standard_normal(20)
    with counting(Counts()) as counts:
        p = project_residual_ball(x, A, y, 0.5, tight_frame=4.0)
    assert (counts.matvecs, counts.rmatvecs) == (2, 1)
    r = Q @ x - y
    by_hand = x - (1.0 - 0.5 / np.linalg.norm(r)) / 4.0 * Q.T @ r
    assert np.linalg.norm(p - by_hand) <= 1e-11


def test_a_wrong_tight_frame_is_corrected_or_an_error(rng: Any) -> None:
    """A declared factor only determines a step; the residual of the result is checked."""
    Q = np.linalg.qr(rng.standard_normal((20, 8)))[0].T
    x, y = 10.0 * rng.standard_normal(20), rng.standard_normal(8)
    p = project_residual_ball(x, linear_map(Q), y, 0.5, tight_frame=1.0 + 1e-9)
    assert np.linalg.norm(Q @ p - y) <= 0.5


def test_krylov_needs_few_products_on_a_well_conditioned_operator(rng: Any) -> None:
    A = rng.standard_normal((200, 2000)) / math.sqrt(2000)
    y, x = rng.standard_normal(200), rng.standard_normal(2000)
    with counting(Counts()) as counts:
        project_residual_ball(x, linear_map(aslinearoperator(A)), y, 1.0)
    assert counts.matvecs <= 45


def test_sparse_and_single_precision(rng: Any) -> None:
    A = scipy.sparse.random_array((10, 30), density=0.3, rng=rng)
    y, x = rng.standard_normal(10), 5.0 * rng.standard_normal(30)
    p = project_residual_ball(x, linear_map(A), y, 0.7)
    assert np.linalg.norm(p - project_residual_ball(x, linear_map(A.toarray()), y, 0.7)) <= 1e-12
    single = A.toarray().astype(np.float32), y.astype(np.float32), x.astype(np.float32)
    q = project_residual_ball(single[2], linear_map(single[0]), single[1], 0.7)
    assert q.dtype == np.float32
    assert np.linalg.norm(single[0] @ q - single[1]) <= 0.7
    # The target is eight units of rounding inside the ball, which the condition number amplifies in x.
    unit, condition = np.finfo(np.float32).eps, np.linalg.cond(single[0])
    assert np.linalg.norm(q - p) <= 16.0 * unit * condition * size(x)


@pytest.mark.parametrize("wrap", [np.asarray, scipy.sparse.csr_array, aslinearoperator])
def test_thin_balls_in_single_precision_are_not_made_thinner(wrap: Any, rng: Any) -> None:
    """The error of sums in single precision is as large as the ball: they are computed in double."""
    A = (rng.standard_normal((29, 15)) * np.geomspace(1.0, 1e3, 15)).astype(np.float32)
    y = (A @ rng.standard_normal(15) + 0.1 * rng.standard_normal(29)).astype(np.float32)
    x = (10.0 * rng.standard_normal(15)).astype(np.float32)
    wide = A.astype(np.float64), y.astype(np.float64)
    misfit = np.linalg.norm(wide[1] - wide[0] @ np.linalg.lstsq(*wide)[0])
    for sigma, beyond in ((1.001 * misfit, 4e-6), (1.1 * misfit, 0.0)):
        z = ResidualBall(wrap(A), y, sigma).project(x)
        assert z.dtype == np.float32
        assert np.linalg.norm(wide[0] @ z - wide[1]) <= sigma * (1.0 + beyond)
        exact = project_residual_ball(x.astype(np.float64), linear_map(wide[0]), wide[1], sigma)
        assert np.linalg.norm(z - x) == pytest.approx(np.linalg.norm(exact - x), rel=2e-6)


def test_single_precision_measures_violations_in_double() -> None:
    A, y = np.array([[1.0, 1.0]], np.float32), np.array([2.0**24], np.float32)
    ball = ResidualBall(A, y, 0.5)
    # In single precision 2^24 + 1 is 2^24, and the residual is zero.
    assert ball.violation(np.array([2.0**24, 1.0], np.float32)) == 0.5 / (1e-6 * 2.0**24)


@pytest.mark.parametrize("wrap", [linear_map, lambda A: linear_map(aslinearoperator(A))])
def test_empty_ball_is_an_error(wrap: Any) -> None:
    A = np.array([[1.0, 0.0], [0.0, 0.0]])
    with pytest.raises(InfeasibleError, match="least-squares residual is 2"):
        project_residual_ball(np.array([5.0, 5.0]), wrap(A), np.array([0.0, 2.0]), 1.0)


@pytest.mark.parametrize("wrap", [linear_map, lambda A: linear_map(aslinearoperator(A))])
@pytest.mark.parametrize(
    ("out_of_reach", "error"), [(1e-9, InfeasibleError), (1e-14, ProjectionError)]
)
def test_a_small_residual_is_relative_to_its_terms(
    wrap: Any, out_of_reach: float, error: type[Exception]
) -> None:
    """At x = 1 the residual is the part out of the range, whether it is rounding of y or not."""
    A, y = np.array([[1.0], [0.0]]), np.array([1.0, out_of_reach])
    with pytest.raises(error):
        project_residual_ball(np.array([1.0]), wrap(A), y, 0.0)


@pytest.mark.parametrize("wrap", [linear_map, lambda A: linear_map(aslinearoperator(A))])
def test_ball_that_is_one_affine_set(wrap: Any) -> None:
    """Sigma equals the least-squares residual: the ball has no interior, but a projection exists."""
    A = np.array([[2.0, 0.0], [0.0, 0.0]])
    p = project_residual_ball(np.array([5.0, 7.0]), wrap(A), np.array([0.0, 2.0]), 2.0)
    assert np.linalg.norm(p - np.array([0.0, 7.0])) <= 1e-5
    assert np.linalg.norm(A @ p - np.array([0.0, 2.0])) <= 2.0 * (1.0 + 1e-11)


def test_zero_map() -> None:
    A = np.zeros((2, 3))
    x = np.array([1.0, 2.0, 3.0])
    assert (project_residual_ball(x, linear_map(A), np.array([0.5, 0.0]), 1.0) == x).all()
    for wrap in (linear_map, lambda A: linear_map(aslinearoperator(A))):
        with pytest.raises(InfeasibleError):
            project_residual_ball(x, wrap(A), np.array([3.0, 0.0]), 1.0)


def test_operator_is_never_turned_into_a_matrix(rng: Any) -> None:
    """Only products with vectors are used: one with a block of vectors would raise an error here."""
    A = rng.standard_normal((5, 9))
    only_products = LinearOperator(A.shape, matvec=lambda v: A @ v, rmatvec=lambda v: A.T @ v)
    p = project_residual_ball(np.ones(9), linear_map(only_products), np.zeros(5), 0.1)
    assert np.linalg.norm(A @ p) <= 0.1


@pytest.mark.parametrize("spread", [0.0, 3.0, 8.0, 14.0])
@pytest.mark.parametrize("target", [0.9, 1e-3, 1e-9])
def test_secular_equation_by_bisection(spread: float, target: float, rng: Any) -> None:
    s, h = 10.0 ** rng.uniform(-spread, 0.0, 12), rng.random(12)
    h /= np.linalg.norm(h)
    kappa = damping(h**2, s, target)
    assert np.linalg.norm(h * kappa / (kappa + s)) == pytest.approx(target, rel=1e-12)


@pytest.mark.parametrize("shape", [(5, 3), (3, 5), (4, 4)])
@pytest.mark.parametrize("size", [1e145, 1e160])
def test_emptiness_is_not_checked_where_squares_overflow(
    shape: tuple[int, int], size: float, rng: Any
) -> None:
    """Singular values are those of ``A'A`` here: without a guard they do not converge."""
    A = rng.standard_normal(shape)
    assert not ResidualBall(size * A, A @ np.ones(shape[1]), 1e-3).is_empty
