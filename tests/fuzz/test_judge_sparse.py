"""The judge of basis pursuit accepts what is right and rejects every forgery."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest

from fuzz.judge.claims import Claims, Raised
from fuzz.judge.verdict import Class
from fuzz.sparse.case import SparseCase
from fuzz.sparse.column import Column
from fuzz.sparse.dual import gauge
from fuzz.sparse.judge import CallOptions, judge_column

EPS = float(np.finfo(np.float64).eps)

# min |x1| + |x2|  s.t. |2 x1 + x2 - 3| <= 1: the optimum is x = (1, 0), and nu = 1/2 proves it.
COLUMN = Column(np.array([[2.0, 1.0]]), np.array([3.0]), 1.0, np.ones(2), False, EPS)
OPTIONS = CallOptions(tol=1e-6, dtype=np.float64, names_dual=True)
RIGHT = Claims(
    status="CONVERGED",
    success=True,
    x=np.array([1.0, 0.0]),
    fun=1.0,
    lower_bound=1.0,
    gap=0.0,
    relative_gap=0.0,
    violation=0.0,
    dual=np.array([0.5]),
)
NO_SUCCESS = replace(
    RIGHT,
    status="TIME_LIMIT",
    success=False,
    x=np.array([2.0, 0.0]),
    fun=2.0,
    gap=1.0,
    relative_gap=0.5,
)


def verdict(claims, column=COLUMN, **changes):
    return judge_column(column, replace(OPTIONS, **changes), claims)


def test_right_claims_are_certified():
    assert verdict(RIGHT).kind is Class.CERTIFIED
    assert verdict(replace(RIGHT, dual=None)).kind is Class.CERTIFIED
    within = replace(RIGHT, x=np.array([1 + 5e-7, 0.0]), fun=1 + 5e-7, gap=5e-7, relative_gap=5e-7)
    assert verdict(within).kind is Class.CERTIFIED


def test_true_claims_without_success_are_accepted():
    assert verdict(NO_SUCCESS).kind is Class.HONEST
    nothing = replace(
        NO_SUCCESS,
        status="NONFINITE",
        fun=math.nan,
        lower_bound=-math.inf,
        gap=math.inf,
        relative_gap=math.inf,
        violation=math.inf,
        dual=None,
    )
    assert verdict(nothing).kind is Class.HONEST


FORGERIES = {
    "bound above optimum": replace(RIGHT, lower_bound=1.0 + 1e-12, dual=None),
    "bound above optimum, the dual of another bound": replace(RIGHT, lower_bound=1.001),
    "bound above optimum, no success": replace(
        NO_SUCCESS, lower_bound=1.5, gap=0.5, relative_gap=0.25
    ),
    "infeasible success": replace(
        RIGHT, x=np.array([1.0 - 1e-8, 0.0]), fun=1.0 - 1e-8, lower_bound=1.0 - 1e-8
    ),
    "dual proves less": replace(RIGHT, dual=np.array([0.25])),
    "dual not feasible": replace(RIGHT, dual=np.array([5.0])),
    "value misstated": replace(RIGHT, fun=1.0 + 1e-9, gap=1e-9, relative_gap=1e-9),
    "gap understated": replace(NO_SUCCESS, gap=0.5, relative_gap=0.5),
    "gap understated, relative": replace(NO_SUCCESS, relative_gap=0.1),
    "violation understated": replace(
        NO_SUCCESS, x=np.zeros(2), fun=0.0, lower_bound=0.0, gap=0.0, relative_gap=0.0
    ),
    "violation understated, grossly": replace(
        NO_SUCCESS,
        x=np.zeros(2),
        fun=0.0,
        lower_bound=0.0,
        gap=0.0,
        relative_gap=0.0,
        violation=1e-4,
    ),
    "fields contradict, success": replace(RIGHT, status="STALLED"),
    "fields contradict, gap above tol": replace(
        RIGHT, x=np.array([1.1, 0.0]), fun=1.1, gap=0.1, relative_gap=0.1 / 1.1
    ),
    "fields contradict, violation": replace(RIGHT, violation=1e-3),
    "fields contradict, bound": replace(RIGHT, lower_bound=math.nan),
    "fields contradict, infinite bound": replace(RIGHT, lower_bound=math.inf),
    "fields contradict, negative gap": replace(RIGHT, gap=-1e-3),
    "dtype changed": replace(RIGHT, x=RIGHT.x.astype(np.float32)),
    "shape changed": replace(RIGHT, x=np.ones(3)),
    "false INFEASIBLE": replace(NO_SUCCESS, status="INFEASIBLE", fun=math.nan, x=np.zeros(2)),
    "false UNBOUNDED": replace(
        NO_SUCCESS, status="UNBOUNDED", lower_bound=-math.inf, gap=math.inf, relative_gap=math.inf
    ),
}


@pytest.mark.parametrize("name", FORGERIES)
def test_forgeries_are_found(name):
    found = verdict(FORGERIES[name])
    assert (found.kind, found.label) == (Class.WRONG, name.split(",")[0]), found


def test_success_away_from_the_optimum_is_found_without_a_false_bound():
    """Only the tolerance is missed: the bound is right, and the gap it leaves is called 0."""
    column = replace(COLUMN, sigma=0.0)
    far = replace(RIGHT, x=np.array([0.0, 3.0]), fun=3.0, lower_bound=3.0 * (1 - 1e-7), dual=None)
    far = replace(far, gap=3e-7, relative_gap=1e-7)
    assert verdict(far, column).label == "bound above optimum"
    unbounded = replace(far, lower_bound=-math.inf, gap=math.inf, relative_gap=math.inf)
    assert verdict(unbounded, column).label == "fields contradict"


def test_other_methods_may_return_a_weaker_dual():
    assert verdict(replace(RIGHT, dual=np.array([0.25])), names_dual=False).kind is Class.CERTIFIED


def test_an_empty_set_may_be_reported_as_empty():
    column = Column(np.array([[1.0], [1.0]]), np.array([1.0, -1.0]), 1.0, np.ones(1), False, EPS)
    claims = replace(NO_SUCCESS, status="INFEASIBLE", x=np.zeros(1), fun=math.nan)
    assert verdict(claims, column).kind is Class.CERTIFIED
    almost = replace(column, sigma=math.sqrt(2.0) * (1 - 1e-13))
    assert verdict(claims, almost).kind is Class.UNKNOWN
    assert verdict(claims, replace(column, sigma=1.4142136)).label == "false INFEASIBLE"


def test_negative_entries_are_a_violation_in_any_units():
    for unit in (1.0, 1e-12, 1e12):
        column = Column(np.eye(2), unit * np.array([1.0, -1.0]), unit, np.ones(2), True, EPS)
        x = unit * np.array([1.0, -1e-7])
        fun = float(np.abs(x).sum())
        claims = replace(RIGHT, x=x, fun=fun, lower_bound=fun, dual=None)
        assert verdict(claims, column).label == "infeasible success"


@pytest.mark.parametrize("k", [4, 8, 12, 14])
def test_bounds_are_judged_where_sigma_is_close_to_y(k):
    """The optimum is (|y|^2 - sigma^2) / (2 |a'y|) to first order, many digits below |y|."""
    rng = np.random.default_rng(k)
    A, y = rng.standard_normal((4, 7)), rng.standard_normal(4)
    sigma = float(np.linalg.norm(y)) * (1.0 - 10.0**-k)
    column = Column(A, y, sigma, np.ones(7), False, EPS)
    from fuzz.sparse.dual import proved
    from fuzz.sparse.primal import upper_bound

    upper = upper_bound(column, [])
    assert upper is not None
    lower = proved(column, y - A @ upper.point.astype(float))
    lower = max(lower, proved(column, y))
    assert lower <= upper.value <= lower * (1 + max(1e-6, 10.0 ** (1 - k)))
    bound = float(upper.value) * (1 + 1e-9)
    claims = replace(
        RIGHT, x=upper.point.astype(float), fun=float(column.value(upper.point.astype(float)))
    )
    assert (
        verdict(replace(claims, lower_bound=bound, dual=None), column).label
        == "bound above optimum"
    )


@pytest.mark.parametrize("kind", ["real", "complex", "nonneg"])
@pytest.mark.parametrize("sigma", [0.0, 1e-6, 0.3, 0.99])
def test_bounds_from_both_sides_meet(rng, kind, sigma):
    from fuzz.sparse.dual import proved
    from fuzz.sparse.primal import upper_bound
    from fuzz.sparse.reference import answer

    A, x = rng.standard_normal((6, 15)), np.zeros(15)
    x[:3] = [1.0, 2.0, 0.5]
    if kind == "complex":
        A = A + 1j * rng.standard_normal((6, 15))
    y = A @ x
    column = Column(
        A, y, sigma * float(np.linalg.norm(y)), rng.uniform(0.5, 2.0, 15), kind == "nonneg", EPS
    )
    found = answer(column)
    upper, lower = upper_bound(column, [found.x]), proved(column, found.nu)
    assert found.solved and upper is not None
    assert lower <= float(upper.value) <= lower * (1 + 1e-7)


def test_a_dual_point_that_rounding_makes_infeasible_refutes_only_false_bounds():
    """Two columns that nearly cancel amplify the rounding of single precision: 1e4 units of it here."""
    eps = float(np.finfo(np.float32).eps)
    # The columns (1e4, 1e4) and (0, 1): nu = (t, 1) is feasible for t = -1 + 1e-4, less a rounding.
    A, y = np.array([[1e4, 0.0], [1e4, 1.0]], np.float32), np.array([0.0, 1.0], np.float32)
    column = Column(A, y, 0.0, np.ones(2), False, eps)
    dual = np.array([-1.0 + 1e-4 + 8 * eps, 1.0])
    claims = replace(
        RIGHT, x=np.array([0.0, 1.0], np.float32), lower_bound=1.0, dual=dual.astype(np.float32)
    )
    single = {"dtype": np.float32}
    assert float(gauge(column, claims.dual)) > 1.005
    assert verdict(claims, column, **single).kind is Class.CERTIFIED
    raised = replace(claims, lower_bound=1.0 + 1e-4)
    assert verdict(raised, column, **single).label == "bound above optimum"
    # In double precision rounding does not explain the same numbers.
    exact = replace(column, A=A.astype(float), y=y.astype(float), eps=EPS)
    claims = replace(claims, x=np.array([0.0, 1.0]), dual=dual)
    assert verdict(claims, exact).label == "dual not feasible"


@pytest.mark.parametrize(
    ("length", "dtype", "fair"),
    [
        (1.0, "float64", False),
        (1e-200, "float64", True),
        (1e-16, "float64", False),
        (1e-16, "float32", True),
        (1e-12, "float32", False),
    ],
)
def test_units_are_refused_only_where_squares_leave_the_range(length, dtype, fair):
    A, y = np.eye(2, dtype=dtype), np.array([length, 0.0], dtype)
    case = SparseCase("bpdn", A, y, 0.1 * length)
    raised = Raised("ValueError", "y must be given in other units", "", ("ValueError",))
    found = case.excuse(raised)
    assert (found is not None and found.kind is Class.REFUSED) is fair
