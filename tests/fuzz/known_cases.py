"""Calls that were wrong once, by name; each is judged like any other. `UNMENDED` is to become empty."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import numpy as np

from fuzz.general.case import SolveCase
from fuzz.general.model import Model
from fuzz.general.objectives import Linear
from fuzz.general.sets import Polyhedron, Simplex
from fuzz.invalid.case import InvalidCase
from fuzz.invalid.table import Bad
from fuzz.judge.claims import Raised
from fuzz.judge.verdict import Class, Verdict
from fuzz.kinds import make
from fuzz.machine.case import Case
from fuzz.metric.case import MetricCase
from fuzz.sparse.case import SparseCase

__all__ = ["KNOWN", "SUCCEED", "UNMENDED"]

_LIMIT = {"time_limit": 2.0}


@dataclass(frozen=True)
class ExtremeCase(SparseCase):
    """Numbers near the limits of double precision: a clear error is accepted as well as an answer."""

    def excuse(self, raised: Raised) -> Verdict | None:
        clear = raised.on_purpose and any(word in raised.message for word in ("A must", "y must"))
        return Verdict(Class.REFUSED, raised.message) if clear else None


def close_to_y(seed: int, m: int, d: int, below: float, tol: float, dtype: str = "float64") -> Case:
    """Return a random problem whose radius is just below the length of ``y``."""
    r = np.random.default_rng(seed)
    A, y = r.standard_normal((m, d)).astype(dtype), r.standard_normal(m).astype(dtype)
    sigma = float(np.linalg.norm(y)) * (1.0 - below)
    return SparseCase("bpdn", A, y, sigma, tol=tol, options=_LIMIT)


def small_simplex() -> Case:
    """Return a linear problem over a simplex of size 1e-13, cut by two half-spaces."""
    C, b = np.array([[1.0, 0, 0], [1, 2, 0]]), np.array([0.2e-13, 0.5e-13])
    cut = Polyhedron(C, b, np.zeros((0, 3)), np.zeros(0))
    inside = np.array([0.1e-13, 0.1e-13, 0.8e-13])
    objective = Linear(np.array([-1.0, -0.5, 0.3]))
    sets = (Simplex(3, 1e-13, True), cut)
    return SolveCase(Model(objective, sets, (3,), unit=2.0**-43, inside=inside), options=_LIMIT)


def nonneg_in_small_units() -> Case:
    """Return a problem whose solution is many orders of magnitude smaller than 1."""
    A, y = np.zeros((5, 2)), np.array([-0.789, 1.344, 0.187, 1.026, -2.287])
    A[0, 1], A[2, 0] = 0.2, 1.0
    sigma = float(np.linalg.norm(y)) * (1.0 - 1e-11)
    return SparseCase("bpdn", A, y, sigma, form="operator", nonneg=True, options=_LIMIT)


def kernel_from_its_solution() -> Case:
    """Return a smooth kernel as an operator, started at a point that meets the equations."""
    r, t = np.random.default_rng(0), np.linspace(0.0, 1.0, 40)
    A = np.exp(-(((t[:, None] - t[None, :]) / 0.2) ** 2))
    x = r.standard_normal(40) * (r.random(40) < 0.2)
    y = A @ x
    sigma = 1e-8 * float(np.linalg.norm(y))
    patient = {"time_limit": 20.0}  # a busy machine must not matter
    return SparseCase("bpdn", A, y, sigma, form="operator", x0=x, planted=x, options=patient)


def positive_operator(seed: int) -> Case:
    """Return nearly parallel columns as an operator, with equations."""
    r = np.random.default_rng(seed)
    A = r.random((42, 84)) + 10.0
    y = r.standard_normal(42)
    return SparseCase("bpdn", A, y, 0.0, form="operator", options=_LIMIT)


def vandermonde() -> Case:
    """Return equations whose condition number is beyond double precision, but which have a solution."""
    r = np.random.default_rng(1)
    A = np.vander(np.linspace(0.0, 1.0, 45), 47, increasing=True)
    x = r.standard_normal(47) * (r.random(47) < 0.2)
    return SparseCase("bpdn", A, A @ x, 0.0, planted=x, options=_LIMIT)


def start_on_a_zero_column() -> Case:
    """Return a problem whose start is nonzero only in a column of zeros."""
    A = np.array([[1.0, 0, 2], [0, 0, 1]])
    return SparseCase("bpdn", A, np.ones(2), 0.1, x0=np.array([0.0, 1, 0]), options=_LIMIT)


def one_column_operator() -> Case:
    """Return a single column that has to shrink to meet the ball from inside."""
    A, x0 = np.ones((2, 1)), np.array([10.0])
    return SparseCase(
        "bpdn", A, np.ones(2), 0.1, form="operator", nonneg=True, x0=x0, tol=1e-13, options=_LIMIT
    )


def rank_two_metric(seed: int) -> Case:
    """Return samples in a plane, in large units."""
    r = np.random.default_rng(seed)
    X = r.standard_normal((14, 2)) @ r.standard_normal((2, 5))
    return MetricCase(1e6 * X, np.arange(14) % 2, options=_LIMIT)


def pandas_metric() -> Case:
    """Return labelled samples as a data frame and a series."""
    X = np.random.default_rng(0).standard_normal((12, 3))
    return MetricCase(X, np.arange(12) % 2, form="pandas", options=_LIMIT)


def equations_in_single(form: str) -> Case:
    """Return equations in single precision at the default tolerance."""
    r = np.random.default_rng(3)
    A, y = r.standard_normal((20, 50)).astype("float32"), r.standard_normal(20).astype("float32")
    return SparseCase("bpdn", A, y, 0.0, form=form, tol=1e-3, options=_LIMIT)


def operator_in_units(unit: float) -> Case:
    """Return the same equations through an operator in other units."""
    r = np.random.default_rng(1)
    A, y = unit * r.standard_normal((20, 50)), r.standard_normal(20)
    return SparseCase("bpdn", A, y, 0.0, form="operator", options=_LIMIT)


def empty_in_single() -> Case:
    """Return a problem in single precision that has no solution: its point keeps the dtype too."""
    r = np.random.default_rng(33)
    A, y = r.standard_normal((16, 3)).astype("float32"), r.standard_normal(16).astype("float32")
    return SparseCase("bpdn", A, y, 0.1, form="operator", weights=np.ones(3), options=_LIMIT)


def extreme(unit: float) -> Case:
    """Return a matrix near the end of the range of double precision."""
    r = np.random.default_rng(0)
    return ExtremeCase(
        "bpdn", unit * r.standard_normal((3, 8)), r.standard_normal(3), 0.1, options=_LIMIT
    )


def refused(call: str, word: str) -> Case:
    """Return a call that has to be refused."""
    return InvalidCase(Bad(call, (word,)), 0)


KNOWN: dict[str, Callable[[], Case]] = {
    "sigma close to y": lambda: close_to_y(33, 3, 8, 5.667e-12, 1e-8),
    **{
        f"sigma close to y, 1e-{k}": lambda k=k: close_to_y(k, 4, 9, 10.0**-k, 1e-6)  # type: ignore[misc]
        for k in (6, 7, 8, 10, 11, 13)
    },
    "sigma close to y, single": lambda: close_to_y(5, 6, 12, 1e-5, 1e-2, "float32"),
    "small simplex": small_simplex,
    "nonneg in small units": nonneg_in_small_units,
    "kernel from its solution": kernel_from_its_solution,
    **{
        f"positive operator {k}": lambda k=k: positive_operator(k)  # type: ignore[misc]
        for k in (1, 3)
    },
    "vandermonde": vandermonde,
    "start on a zero column": start_on_a_zero_column,
    "one column as an operator": one_column_operator,
    "rank two in large units": lambda: rank_two_metric(3),
    "pandas labels": pandas_metric,
    "equations in single precision": lambda: equations_in_single("dense"),
    "equations in single precision, operator": lambda: equations_in_single("operator"),
    "operator": lambda: operator_in_units(1.0),
    "operator in large units": lambda: operator_in_units(1e6),
    "operator in small units": lambda: operator_in_units(1e-6),
    "empty, in single precision, weights in double": empty_in_single,
    "A of 1e200": lambda: extreme(1e200),
    "A of 1e-200": lambda: extreme(1e-200),
    "one start for many": lambda: refused("lopro.bpdn(A, Y, 0.1, x0=np.zeros(A.shape[1]))", "x0"),
    "too many starts": lambda: refused("lopro.bpdn(A, Y, 0.1, x0=np.zeros((A.shape[1], 3)))", "x0"),
    "too many radii": lambda: refused("lopro.bpdn(A, Y, [0.1, 0.2, 0.3])", "sigma"),
    "path with many": lambda: refused("lopro.bpdn_path(A, Y, [0.1, 0.2])", "y"),
    "path with a number": lambda: refused("lopro.bpdn_path(A, y, 0.1)", "sigmas"),
    "method as a class": lambda: refused(
        "lopro.bpdn(A, y, 0.1, method=lopro.WorkingSet)", "method"
    ),
    "method as a word": lambda: refused("lopro.bpdn(A, y, 0.1, method='auto')", "method"),
    # As the generators make them, by kind and seed.
    **{
        f"{kind}:{seed}": partial(make, kind, seed)
        for kind, seed in (
            ("bpdn", 101000141),  # residuals without a common component
            ("bpdn", 101000392),  # residuals that vanish
            ("bpdn", 101000623),  # LoPGD on an intersection
            ("bpdn", 202000247),  # equations in single precision that rounding makes contradict
            ("bpdn", 202003091),  # a start for a zero y, complex
            ("bpdn", 404004107),  # the step of a projection on an ill-conditioned A x = 0
            ("bpdn", 707001355),  # sigma = |y|, where a support of 0 was rounded down
            ("bpdn", 16555008508),  # a residual that consists of rounding errors
            ("bpdn", 1511000558),  # a mixture in single precision whose two parts cancel
            ("bpdn", 171126000806),  # LoPGD where the square of y is out of the range of numbers
            ("path", 424242001530),  # residuals that all point the same way are no tight frame
            ("path", 3000000607),  # y nearly orthogonal to the columns
            ("path", 707005967),  # points whose squares leave the range of numbers
            ("metric", 202002846),  # a negative diagonal entry of a feature
            ("metric", 404005473),  # features with small diagonal entries, in their own units
            ("metric", 404005815),  # a diagonal entry that rounding made negative
            ("project", 303008727),  # a ball in single precision, from far away
            ("project", 707007697),  # a thin ball in single precision, through an operator
            ("project", 707008535),  # and with a tall sparse matrix
            ("solve", 707009753),  # a set whose looser bounds are 1e8 times as large as it is
            (
                "solve",
                75965000997,
            ),  # a multiplier of a matrix cone that is outside of its polar by rounding
            (
                "solve",
                75965005139,
            ),  # a gap relative to values far away, where callables determine no length
            ("solve", 202006689),  # a point very far from a ball
            ("minimize", 101006605),  # a simplex cut from nearby
            ("minimize", 202007875),  # differences far from the start
            ("minimize", 101007315),  # differences at large numbers
            ("program", 627),  # 13 % above the optimum, beside a column in small units
            ("program", 200),  # a quadratic program in columns of their own units
            ("program", 506),  # an optimum of 0 in such units
            ("program", 165),  # a singular system of differences in a projection
            ("cvxpy", 3),  # a problem without a constraint
            ("entries", 75965005647),  # a bound within a distance that the solution exceeds
            ("entries", 77000154),  # a square without a slope, in columns of their own units
            ("cvxpy", 136),  # an empty program with a direction of descent
            ("project", 886779000789),  # a polyhedron whose rows have no coefficients
            ("solve", 886779007800),  # a matrix near 0 that an engine leaves asymmetric
        )
    },
}

#: Cases that must end with success; for the others any true status is accepted.
SUCCEED = {
    "kernel from its solution",
    "start on a zero column",
    "one column as an operator",
    "pandas labels",
    "equations in single precision",
    "equations in single precision, operator",
    "operator",
    "operator in large units",
    "operator in small units",
}

#: Cases that still fail. The test requires that a name is removed as soon as its case passes.
UNMENDED: set[str] = set()
