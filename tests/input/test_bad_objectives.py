"""Bad data for objectives and linear maps: an error that names the argument, and nothing changed."""

from __future__ import annotations

import array_api_strict
import numpy as np
import pytest
import scipy.sparse
import scipy.sparse.linalg

from lopro.errors import MissingCapabilityError
from lopro.maps import linear_map
from lopro.metric.loss import PairLoss
from lopro.objectives import (
    FunctionObjective,
    L1Norm,
    LeastSquares,
    Linear,
    Logistic,
    OffDiagonalL1,
    Quadratic,
    Scaled,
    SquaredDistance,
    Sum,
)

NAN, INF = float("nan"), float("inf")
A = np.array([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]])
B = np.ones(3)
EYE = np.eye(2)
MASKED = np.ma.array(EYE, mask=[[0, 1], [0, 0]])


def smooth(**options):
    """A callable objective on which single arguments are replaced by bad ones."""
    return FunctionObjective(**({"value": lambda x: 0.0, "gradient": lambda x: 0.0 * x} | options))


class OneWay:
    """An operator without adjoint."""

    shape = (2, 2)

    def matvec(self, x):
        return x


class ThreeWay(OneWay):
    shape = (2, 2, 2)

    def rmatvec(self, y):
        return y


def broken(dtype=np.float64):
    return scipy.sparse.csr_array(np.array([[1.0, NAN], [0.0, 1.0]], dtype=dtype))


def loss(X=A, pairs=((0, 1), (1, 2)), targets=(0.0, 2.0)):
    """A loss on pairs of which single arguments are replaced by bad ones."""
    return PairLoss(X, pairs, targets)


#: What is built, the error, and what its message has to say.
CASES = {
    "map-nan": (lambda: linear_map([[1.0, NAN]]), ValueError, "A must be finite"),
    "map-inf": (lambda: linear_map([[1.0, INF]], "Phi"), ValueError, "Phi must be finite"),
    "map-vector": (lambda: linear_map([1.0, 2.0]), ValueError, r"A must have 2 dimension.*\(2,\)"),
    "map-tensor": (lambda: linear_map(np.ones((2, 2, 2))), ValueError, "A must have 2 dimension"),
    "map-empty": (
        lambda: linear_map(np.ones((0, 3))),
        ValueError,
        r"A must not be empty.*\(0, 3\)",
    ),
    "map-empty-sparse": (
        lambda: linear_map(scipy.sparse.csr_array((3, 0))),
        ValueError,
        "A must not be empty",
    ),
    "map-ragged": (lambda: linear_map([[1.0], [1.0, 2.0]]), ValueError, "A is not a regular array"),
    "map-text": (lambda: linear_map([["a", "b"]]), TypeError, "A must be an array of numbers"),
    "map-none": (lambda: linear_map(None), TypeError, "A must be an array of numbers, got None"),
    "map-half": (lambda: linear_map(EYE.astype(np.float16)), TypeError, "A must hold.*float16"),
    "map-masked": (lambda: linear_map(MASKED), ValueError, "A has 1 masked of 4"),
    "map-sparse-nan": (lambda: linear_map(broken()), ValueError, "A must be finite"),
    "map-sparse-vector": (
        lambda: linear_map(scipy.sparse.coo_array(np.ones(3))),
        ValueError,
        "A must have 2 dimensions",
    ),
    "map-one-way": (lambda: linear_map(OneWay(), "Phi"), MissingCapabilityError, "Phi.*rmatvec"),
    "map-three-way": (lambda: linear_map(ThreeWay(), "Phi"), ValueError, "Phi must have 2 dim"),
    "l1-negative": (lambda: L1Norm(-1.0), ValueError, "weights must be in .*got -1"),
    "l1-negative-entry": (lambda: L1Norm([1.0, -2.0]), ValueError, "weights must be nonneg.*-2"),
    "l1-nan": (lambda: L1Norm([1.0, NAN]), ValueError, "weights must be finite"),
    "l1-number-nan": (lambda: L1Norm(NAN), ValueError, "weights must be finite"),
    "l1-complex": (lambda: L1Norm(np.array([1.0j])), TypeError, "weights must be real"),
    "l1-number-complex": (lambda: L1Norm(1.0j), TypeError, "weights must be a real number"),
    "l1-numpy-complex": (lambda: L1Norm(np.complex64(1j)), TypeError, "weights must be a real"),
    "l1-text": (lambda: L1Norm("1"), TypeError, "weights must be a real number, got '1'"),
    "l1-empty": (lambda: L1Norm(np.ones(0)), ValueError, "weights must not be empty"),
    "l1-shape": (lambda: L1Norm([1.0, 2.0], shape=(3,)), ValueError, r"weights .*\(3,\), got \(2,"),
    "l1-shape-number": (lambda: L1Norm(shape=3), TypeError, "shape must be a tuple"),
    "l1-shape-zero": (lambda: L1Norm(shape=(0,)), ValueError, "shape must be at least 1"),
    "l1-shape-float": (lambda: L1Norm(shape=(2.5,)), TypeError, "shape must be an integer"),
    "linear-nan": (lambda: Linear([1.0, NAN]), ValueError, "a must be finite"),
    "linear-empty": (lambda: Linear([]), ValueError, "a must not be empty"),
    "linear-text": (lambda: Linear("abc"), TypeError, "a must be an array of numbers, got 'abc'"),
    "linear-dict": (lambda: Linear({"x": 1}), TypeError, "a must be an array of numbers"),
    "linear-dates": (
        lambda: Linear(np.array(["2020-01-01"], dtype="datetime64[D]")),
        TypeError,
        "a must hold",
    ),
    "distance-inf": (lambda: SquaredDistance([INF]), ValueError, "z must be finite"),
    "distance-strict-nan": (
        lambda: SquaredDistance(array_api_strict.asarray([NAN])),
        ValueError,
        "z must be finite",
    ),
    "squares-b-short": (lambda: LeastSquares(A, [1.0, 2.0]), ValueError, r"b must have shape \(3,"),
    "squares-b-column": (
        lambda: LeastSquares(A, B[:, None]),
        ValueError,
        "b must have 1 dimension",
    ),
    "squares-b-nan": (lambda: LeastSquares(A, [1.0, NAN, 1.0]), ValueError, "b must be finite"),
    "squares-b-sparse": (
        lambda: LeastSquares(A, scipy.sparse.csr_array(B[:, None])),
        TypeError,
        "b must be an array of numbers",
    ),
    "squares-A-nan": (lambda: LeastSquares(NAN * A, B), ValueError, "A must be finite"),
    "squares-batch-zero": (
        lambda: LeastSquares(A, B, 0),
        ValueError,
        "batch_size must be at least",
    ),
    "squares-batch-float": (
        lambda: LeastSquares(A, B, 1.5),
        TypeError,
        "batch_size must be an int",
    ),
    "squares-batch-bool": (
        lambda: LeastSquares(A, B, True),
        TypeError,
        "batch_size must be an int",
    ),
    "quadratic-lopsided": (
        lambda: Quadratic([[1.0, 1.0], [0.0, 1.0]]),
        ValueError,
        "P must be symmetric.*size 1 ",
    ),
    "quadratic-lopsided-sparse": (
        lambda: Quadratic(scipy.sparse.csr_array([[1.0, 1.0], [0.0, 1.0]])),
        ValueError,
        "P must be symmetric",
    ),
    "quadratic-indefinite": (
        lambda: Quadratic(np.diag([1.0, -1e-6])),
        ValueError,
        "P must be positive semidefinite.*-1e-06",
    ),
    "quadratic-negative": (lambda: Quadratic(-EYE), ValueError, "P must be positive semidefinite"),
    "quadratic-oblong": (lambda: Quadratic(A), ValueError, r"P must be square, got shape \(3, 2\)"),
    "quadratic-complex": (lambda: Quadratic(EYE + 0j), TypeError, "P must be real"),
    "quadratic-operator": (
        lambda: Quadratic(scipy.sparse.linalg.aslinearoperator(EYE)),
        TypeError,
        "P must be a matrix, not an operator",
    ),
    "quadratic-q": (lambda: Quadratic(EYE, B), ValueError, r"q must have shape \(2,\), got \(3,\)"),
    "quadratic-q-complex": (lambda: Quadratic(EYE, [1j, 0]), TypeError, "q must be real"),
    "quadratic-constant": (
        lambda: Quadratic(EYE, constant=INF),
        ValueError,
        "constant must be fin",
    ),
    "logistic-labels": (
        lambda: Logistic(A, [1, 2, 3]),
        ValueError,
        "labels must be -1 and 1.*1, 2, 3",
    ),
    "logistic-mixed-labels": (
        lambda: Logistic(A, [-1, 0, 1]),
        ValueError,
        "labels must be -1 and 1",
    ),
    "logistic-text-labels": (
        lambda: Logistic(A, ["a", "b", "a"]),
        TypeError,
        "labels must be an ar",
    ),
    "logistic-short-labels": (
        lambda: Logistic(A, [1, -1]),
        ValueError,
        r"labels must have shape \(3",
    ),
    "logistic-nan-labels": (lambda: Logistic(A, [1, NAN, 0]), ValueError, "labels must be finite"),
    "logistic-complex": (lambda: Logistic(A + 0j, [1, 1, -1]), TypeError, "X must be real"),
    "logistic-nan": (lambda: Logistic(NAN * A, [1, 1, -1]), ValueError, "X must be finite"),
    "logistic-l2": (lambda: Logistic(A, [1, 1, -1], l2=-0.1), ValueError, "l2 must be in .*-0.1"),
    "logistic-batch": (
        lambda: Logistic(A, [1, 1, -1], batch_size=-2),
        ValueError,
        "batch_size must be at least 1, got -2",
    ),
    "off-diagonal-dim": (lambda: OffDiagonalL1(0), ValueError, "dim must be at least 1, got 0"),
    "off-diagonal-dim-float": (lambda: OffDiagonalL1(2.0), TypeError, "dim must be an integer"),
    "off-diagonal-weight": (lambda: OffDiagonalL1(2, -1.0), ValueError, "weight must be in .*-1"),
    "off-diagonal-list": (
        lambda: OffDiagonalL1(2, [1.0]),
        TypeError,
        "weight must be a real number",
    ),
    "function-slopeless": (
        lambda: FunctionObjective(lambda x: 0.0),
        MissingCapabilityError,
        "gradient=.*subgradient=",
    ),
    "function-value": (lambda: smooth(value=3.0), TypeError, "value must be callable, got 3.0"),
    "function-gradient": (lambda: smooth(gradient=3.0), TypeError, "gradient must be callable"),
    "function-prox": (lambda: smooth(prox="soft"), TypeError, "prox must be callable"),
    "function-lipschitz": (lambda: smooth(lipschitz=-1.0), ValueError, "lipschitz must be in"),
    "function-smoothness": (
        lambda: smooth(smoothness=NAN),
        ValueError,
        "smoothness must be finite",
    ),
    "function-mu": (lambda: smooth(strong_convexity="1"), TypeError, "strong_convexity must be a"),
    "function-shape": (lambda: smooth(shape="ab"), TypeError, "shape must be a tuple"),
    "function-rough-smoothness": (
        lambda: FunctionObjective(abs, subgradient=np.sign, smoothness=1.0),
        ValueError,
        "smoothness .* no gradient is given",
    ),
    "sum-empty": (lambda: Sum(), ValueError, "parts must not be empty"),
    "sum-callable": (lambda: Sum(abs), TypeError, "parts must be a lopro Objective.*FunctionObj"),
    "sum-shapes": (
        lambda: Linear([1.0]) + Linear([1.0, 2.0]),
        ValueError,
        r"parts must have points of one shape, got \[\(1,\), \(2,\)\]",
    ),
    "sum-number": (lambda: L1Norm() + 1.0, TypeError, "unsupported operand"),
    "pairs-samples-nan": (lambda: loss([[NAN, 1.0]] * 3), ValueError, "X must be finite"),
    "pairs-samples-vector": (lambda: loss(B), ValueError, "X must have 2 dimension"),
    "pairs-samples-complex": (lambda: loss(1j * A), TypeError, "X must be real"),
    "pairs-none": (lambda: loss(pairs=None), TypeError, "pairs must be two arrays of indices"),
    "pairs-three": (lambda: loss(pairs=([0], [1], [2])), TypeError, "pairs must be two arrays"),
    "pairs-empty": (lambda: loss(pairs=([], [])), ValueError, r"pairs\[0\] must be a vector"),
    "pairs-floats": (lambda: loss(pairs=([0.0, 1.0], [1, 2])), TypeError, r"pairs\[0\].*integers"),
    "pairs-beyond": (lambda: loss(pairs=([0, 1], [1, 3])), ValueError, r"pairs\[1\].*got 3"),
    "pairs-negative": (lambda: loss(pairs=([0, -1], [1, 2])), ValueError, r"pairs\[0\].*got -1"),
    "pairs-lengths": (lambda: loss(pairs=([0, 1], [1])), ValueError, "one length, got 2 and 1"),
    "pairs-targets-short": (lambda: loss(targets=[1.0]), ValueError, "targets must have shape"),
    "pairs-targets-nan": (lambda: loss(targets=[1.0, NAN]), ValueError, "targets must be finite"),
    "pairs-differences": (
        lambda: PairLoss.from_differences(B, [1.0]),
        ValueError,
        "Z must have 2 dimension",
    ),
    "scaled-negative": (lambda: -1.0 * L1Norm(), ValueError, "factor must be in .*-1"),
    "scaled-text": (lambda: Scaled("2", L1Norm()), TypeError, "factor must be a real number"),
    "scaled-bool": (lambda: Scaled(True, L1Norm()), TypeError, "factor must be a real number"),
    "scaled-huge": (lambda: Scaled(10**400, L1Norm()), TypeError, "factor must be a real number"),
    "scaled-array": (lambda: np.ones(2) * L1Norm(), TypeError, "factor must be a real number"),
    "scaled-callable": (lambda: Scaled(1.0, abs), TypeError, "f must be a lopro Objective"),
}


@pytest.mark.parametrize("name", CASES)
def test_bad_input_is_named(name):
    build, error, message = CASES[name]
    before = A.copy(), B.copy(), EYE.copy()
    with pytest.raises(error, match=message):
        build()
    for array, untouched in zip((A, B, EYE), before, strict=True):
        np.testing.assert_array_equal(array, untouched)


def test_a_point_of_the_wrong_shape_does_not_pass_silently():
    for f in (LeastSquares(A, B), Logistic(A, [1, 0, 1]), Quadratic(EYE), Linear([1.0, 2.0])):
        with pytest.raises(ValueError, match=r"dimension|shape|size|lengths"):
            f.value(np.ones(5))
