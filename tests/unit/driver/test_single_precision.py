"""Single precision: a warning before the run if the tolerance cannot be proved, and every run ends."""

from __future__ import annotations

import warnings

import numpy as np
import pytest

import lopro
from lopro.constraints import ValidInequality
from lopro.errors import PrecisionWarning
from lopro.protocol import Candidate, Multiplier

RNG = np.random.default_rng(0)
A, B, Q = (RNG.standard_normal(s).astype(np.float32) for s in ((9, 6), 9, 6))
BALL = lopro.constraints.ResidualBall(A, B, 3.0)
LINEAR = lopro.objectives.Linear(Q)


def test_a_tolerance_below_what_can_be_proved_gives_a_warning_and_the_run_ends() -> None:
    with pytest.warns(PrecisionWarning, match="the least gap that MultiplierMethod"):
        result = lopro.solve(lopro.Problem(LINEAR, BALL), tol=1e-9)
    assert result.status.name == "STALLED"
    assert result.certificate.relative_gap < 1e-4


def test_a_rounded_candidate_keeps_the_point_of_its_proof() -> None:
    x, inequality = np.array([1.0 / 3.0, 2.0]), ValidInequality(np.ones(2), 1.0)
    made = Candidate(x, Multiplier(inequality)).in_precision_of(np.zeros(2, np.float32))
    np.testing.assert_array_equal(made.x, x.astype(np.float32), strict=True)
    np.testing.assert_array_equal(made.before, x, strict=True)
    assert Candidate(x).in_precision_of(np.zeros(2, np.float32)).before is None
    assert made.in_precision_of(np.zeros(2, np.float32)) is made


def test_there_is_no_warning_for_tolerances_that_can_be_proved() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert lopro.solve(lopro.Problem(LINEAR, BALL), tol=1e-4).success
        # In double precision, and by methods that widen the data.
        ball = lopro.constraints.ResidualBall(A.astype(float), B.astype(float), 3.0)
        linear = lopro.objectives.Linear(Q.astype(float))
        assert lopro.solve(lopro.Problem(linear, ball), tol=1e-7).success
        assert lopro.solve(lopro.Problem(lopro.objectives.LeastSquares(A, B)), tol=1e-7).success


def test_newtons_method_is_used_where_the_largest_entries_are_coupled() -> None:
    f = lopro.objectives.LInfNorm() + lopro.objectives.LeastSquares(A, B)
    rows = lopro.constraints.Affine(A[:2], 0.1, 0.1)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        result = lopro.solve(lopro.Problem(f, rows), tol=1e-6)
    assert result.success
    assert result.x.dtype == np.float32
