"""Masked arrays: masked entries are missing, so that no argument may use them as numbers."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.optimize

import lopro
from lopro.constraints import Affine, Box, L1Ball, Polyhedron, ResidualBall, Simplex
from lopro.maps import linear_map
from lopro.objectives import (
    GroupNorm,
    Huber,
    L1Norm,
    LeastSquares,
    Linear,
    LInfNorm,
    Logistic,
    NuclearNorm,
    Quadratic,
    SquaredDistance,
)

EYE, ONES = np.eye(3), np.ones(3)
LABELS = np.array([0, 1, 1])
MATRIX = np.ma.array(EYE, mask=False)
VECTOR = np.ma.array(ONES, mask=False)
INDEX = np.ma.array([0, 1, 2], mask=False)


def minimized(constraint):
    return lopro.minimize(lambda x: float(x @ x), ONES, lambda x: 2 * x, constraint=constraint)


def fitted(name, *data, **options):
    estimators = pytest.importorskip("lopro.sklearn")
    return getattr(estimators, name)(**options).fit(*data)


#: SciPy itself drops the masks of Bounds and of the sides of a LinearConstraint.
#: Argument, array without masked entries, what is done with it.
CASES = {
    "map": ("A", MATRIX, linear_map),
    "affine-rows": ("M", MATRIX, lambda a: Affine(a, None, ONES)),
    "affine-lower": ("lower", VECTOR, lambda a: Affine(EYE, a, None)),
    "affine-upper": ("upper", VECTOR, lambda a: Affine(EYE, None, a)),
    "entries-index": ("index", INDEX, lambda a: Affine.entries(a, 0.0, shape=(3,))),
    "entries-parts": ("index", INDEX, lambda a: Affine.entries((a, [0, 1, 2]), 0.0, shape=(3, 3))),
    "entries-places": ("index", MATRIX == 1.0, lambda a: Affine.entries(a, 0.0, 1.0)),
    "entries-lower": ("lower", VECTOR, lambda a: Affine.entries([0, 1, 2], a, shape=(3,))),
    "box-lower": ("lower", VECTOR, lambda a: Polyhedron.box(a, 2 * ONES)),
    "box-upper": ("upper", VECTOR, lambda a: Box(-ONES, a)),
    "polyhedron-rows": ("C", MATRIX, lambda a: Polyhedron(a, ONES)),
    "polyhedron-sides": ("b", VECTOR, lambda a: Polyhedron(EYE, a)),
    "ball-matrix": ("A", MATRIX, lambda a: ResidualBall(a, ONES, 1.0)),
    "ball-centre": ("y", VECTOR, lambda a: ResidualBall(EYE, a, 1.0)),
    "l1-ball-size": ("size", np.ma.array(1.0, mask=False), lambda a: L1Ball(3, a)),
    "simplex-total": ("total", np.ma.array(1.0, mask=False), lambda a: Simplex(3, a)),
    "least-squares": ("b", VECTOR, lambda a: LeastSquares(EYE, a)),
    "logistic": ("X", MATRIX, lambda a: Logistic(a, [1.0, -1.0, 1.0])),
    "huber": ("b", VECTOR, lambda a: Huber(EYE, a)),
    "linear": ("a", VECTOR, Linear),
    "distance": ("z", VECTOR, SquaredDistance),
    "quadratic": ("P", MATRIX, lambda a: Quadratic(a, ONES)),
    "l1-weights": ("weights", VECTOR, L1Norm),
    "group-map": ("D", MATRIX, lambda a: GroupNorm(a, group_size=1)),
    "linf-map": ("D", MATRIX, lambda a: LInfNorm(D=a)),
    "nuclear-map": ("D", np.ma.array(np.eye(4), mask=False), lambda a: NuclearNorm((2, 2), D=a)),
    "start": ("x0", VECTOR, lambda a: lopro.solve(lopro.Problem(L1Norm(), Box(-ONES, ONES)), a)),
    "bpdn-matrix": ("A", MATRIX, lambda a: lopro.bpdn(a, ONES, 0.1)),
    "bpdn-data": ("y", VECTOR, lambda a: lopro.bpdn(EYE, a, 0.1)),
    "bpdn-weights": ("weights", VECTOR, lambda a: lopro.bpdn(EYE, ONES, 0.1, weights=a)),
    "bpdn-groups": ("groups", INDEX, lambda a: lopro.bpdn(EYE, ONES, 0.1, groups=a)),
    "lasso-data": ("y", VECTOR, lambda a: lopro.lasso(EYE, a, 0.1)),
    "metric-samples": ("X", MATRIX, lambda a: lopro.learn_metric(a, LABELS)),
    "metric-labels": ("labels", INDEX, lambda a: lopro.learn_metric(EYE, a)),
    "metric-pairs": ("pairs", np.ma.array([[0, 1], [1, 2]], mask=False),
                     lambda a: lopro.learn_metric(EYE, LABELS, pairs=a)),
    "metric-pair": (r"pairs\[0\]", np.ma.array([0, 1], mask=False),
                    lambda a: lopro.learn_metric(EYE, LABELS, pairs=(a, [1, 2]))),
    "metric-targets": ("targets", np.ma.array([2.0, 1.0], mask=False),
                       lambda a: lopro.learn_metric(EYE, pairs=([0, 1], [1, 2]), targets=a)),
    "correlation": ("G", MATRIX, lopro.nearest_correlation),
    "correlation-weights": ("weights", VECTOR, lambda a: lopro.nearest_correlation(EYE, weights=a)),
    "correlation-fixed": ("fixed", MATRIX == 1.0, lambda a: lopro.nearest_correlation(EYE, fixed=a)),
    "minimize-start": ("x0", VECTOR, lambda a: lopro.minimize(np.sum, a, constraint=Box(-ONES, ONES))),
    "linear-rows": ("LinearConstraint.A", MATRIX,
                    lambda a: minimized(scipy.optimize.LinearConstraint(a, ub=ONES))),
    "nonlinear-upper": ("NonlinearConstraint.ub", VECTOR, lambda a: minimized(
        scipy.optimize.NonlinearConstraint(lambda x: x**2, -np.inf, a, jac=lambda x: 2 * np.diag(x)))),
    "fit-samples": ("X", MATRIX, lambda a: fitted("SparseMetricLearner", a, LABELS)),
    "fit-labels": ("y", INDEX, lambda a: fitted("SparseMetricLearner", EYE, a)),
    "fit-pairs": ("pairs", np.ma.array(np.eye(4).reshape(4, 2, 2), mask=False),
                  lambda a: fitted("SparsePairMetricLearner", a, [1, -1, -1, 1])),
    "fit-preprocessor": ("preprocessor", MATRIX, lambda a: fitted(
        "SparseMetricLearner", [0, 1, 2], LABELS, preprocessor=a)),
    "fit-matrix": ("X", MATRIX, lambda a: fitted("BasisPursuitDenoising", a, ONES, sigma=0.1)),
    "fit-data": ("y", VECTOR, lambda a: fitted("BasisPursuitDenoising", EYE, a, sigma=0.1)),
}  # fmt: skip

each = pytest.mark.parametrize(("name", "array", "act"), CASES.values(), ids=CASES)


@each
def test_masked_entries_are_refused_by_name(name, array, act):
    masked = np.ma.array(array, copy=True)
    masked[(0,) * array.ndim] = np.ma.masked
    with pytest.raises(ValueError, match=f"^{name} has 1 masked of {array.size} entries"):
        act(masked)


@each
def test_a_mask_that_hides_nothing_changes_nothing(name, array, act):
    act(array)
