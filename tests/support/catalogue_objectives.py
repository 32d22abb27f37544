"""The objectives that every contract test runs on, and the array libraries it runs with.

To put a new objective under all contracts, add one line to ``ENTRIES``: a name, a function that
builds it from a converter (NumPy data in, data of the library and dtype under test out), and the
shape of its points.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import array_api_strict
import numpy as np
import scipy.sparse
import scipy.sparse.linalg

from lopro.core.arrays import inner, namespace, norm, to_numpy
from lopro.metric.loss import PairLoss
from lopro.objectives import (
    FunctionObjective,
    GroupNorm,
    HingeLoss,
    Huber,
    L1Norm,
    LeastSquares,
    Linear,
    LInfNorm,
    Logistic,
    NuclearNorm,
    Objective,
    OffDiagonalL1,
    PinballLoss,
    Poisson,
    Quadratic,
    Scaled,
    SquaredDistance,
    SquaredHingeLoss,
    Sum,
)

Convert = Callable[[Any], Any]


@dataclass(frozen=True)
class Library:
    """An array library with a precision: ``of`` converts NumPy data into it."""

    name: str
    asarray: Callable[[Any], Any]
    single: bool = False

    def of(self, data: Any) -> Any:
        data = np.asarray(data)
        kind = np.complex128 if data.dtype.kind == "c" else np.float64
        if self.single:
            kind = np.complex64 if data.dtype.kind == "c" else np.float32
        return self.asarray(data.astype(kind))

    @property
    def tolerance(self) -> float:
        return 2e-4 if self.single else 1e-11

    def __str__(self) -> str:
        return f"{self.name}-{'single' if self.single else 'double'}"


def _torch_libraries() -> list[Library]:
    try:
        import torch
    except ImportError:
        return []
    return [Library("torch", torch.asarray, single) for single in (False, True)]


NUMPY = Library("numpy", np.array)
LIBRARIES = [
    NUMPY,
    Library("numpy", np.array, single=True),
    Library("strict", array_api_strict.asarray),
    Library("strict", array_api_strict.asarray, single=True),
    *_torch_libraries(),
]


@dataclass(frozen=True)
class Entry:
    """One objective of the catalogue."""

    name: str
    build: Callable[[Convert], Objective]
    shape: tuple[int, ...]
    #: Whether points are complex.
    is_complex: bool = False
    #: Whether f is a sum of functions of single entries, so that its prox can be checked by each.
    separable: bool = False

    def point(self, rng: np.random.Generator, scale: float = 1.0) -> np.ndarray[Any, Any]:
        """Draw a NumPy point; other libraries convert it."""
        x = rng.standard_normal(self.shape)
        if self.is_complex:
            x = x + 1j * rng.standard_normal(self.shape)
        return scale * x

    def __str__(self) -> str:
        return self.name


def _data(seed: int, *shape: int) -> np.ndarray[Any, Any]:
    return np.random.default_rng(seed).standard_normal(shape)


def _complex_data(seed: int, *shape: int) -> np.ndarray[Any, Any]:
    return _data(seed, *shape) + 1j * _data(seed + 1000, *shape)


TALL = _data(1, 9, 4)
WIDE = _data(2, 3, 6)
DEFICIENT = np.outer(_data(3, 5), _data(4, 4)) + np.outer(_data(5, 5), _data(6, 4))
COMPLEX = _complex_data(7, 6, 4)
SPARSE = np.where(np.abs(_data(8, 8, 5)) > 0.7, _data(9, 8, 5), 0.0)
LABELS = np.where(_data(10, 9) > 0.0, 1.0, -1.0)
WEIGHTS = np.array([0.0, 0.5, 2.0, 1.0])
#: All pairs of five samples, some of them twice, one the other way round, and a sample with itself.
PAIRS = (np.array([0, 0, 0, 1, 1, 2, 3, 2, 4, 2]), np.array([1, 2, 3, 2, 3, 3, 4, 0, 4, 3]))


def _pairs(samples: int) -> tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]]:
    return np.triu_indices(samples, 1)


def sparse(of: Convert, A: np.ndarray[Any, Any]) -> Any:
    """The matrix as scipy.sparse, in the precision under test."""
    return scipy.sparse.csr_array(to_numpy(of(A)))


def operator(of: Convert, A: np.ndarray[Any, Any]) -> Any:
    """The matrix behind matvec and rmatvec alone."""
    A = to_numpy(of(A))
    return scipy.sparse.linalg.LinearOperator(
        A.shape, matvec=lambda x: A @ x, rmatvec=lambda y: A.conj().T @ y, dtype=A.dtype
    )


def hyperbola(shape: tuple[int, ...] = (4,)) -> FunctionObjective:
    """``sum sqrt(1 + x^2)`` from callables of the array API."""
    return FunctionObjective(
        lambda x: float(namespace(x).sum(namespace(x).sqrt(1.0 + x * x))),
        gradient=lambda x: x / namespace(x).sqrt(1.0 + x * x),
        shape=shape,
        lipschitz=float(np.sqrt(np.prod(shape))),
        smoothness=1.0,
    )


def euclidean(shape: tuple[int, ...] = (4,)) -> FunctionObjective:
    """``|x|_2`` from callables, with its prox."""
    return FunctionObjective(
        norm,
        subgradient=lambda x: x / norm(x) if norm(x) > 0.0 else 0.0 * x,
        prox=lambda x, step: max(0.0, 1.0 - step / max(norm(x), 1e-300)) * x,
        shape=shape,
        lipschitz=1.0,
    )


def largest_entry() -> FunctionObjective:
    """``max |x_i| + |x|^2 / 4``: neither smooth nor proximable, strongly convex."""

    def subgradient(x: Any) -> Any:
        xp = namespace(x)
        first = xp.cumulative_sum(xp.astype(xp.abs(x) == xp.max(xp.abs(x)), x.dtype)) == 1.0
        first = xp.logical_and(first, xp.abs(x) == xp.max(xp.abs(x)))
        return xp.sign(x) * xp.astype(first, x.dtype) + 0.5 * x

    return FunctionObjective(
        lambda x: float(namespace(x).max(namespace(x).abs(x))) + 0.25 * inner(x, x),
        subgradient=subgradient,
        shape=(4,),
        strong_convexity=0.5,
    )


ENTRIES = [
    Entry("l1", lambda of: L1Norm(shape=(4,)), (4,), separable=True),
    Entry("l1-shapeless", lambda of: L1Norm(), (2, 3), separable=True),
    Entry("l1-number", lambda of: L1Norm(2.5, shape=(2, 2)), (2, 2), separable=True),
    Entry("l1-weights", lambda of: L1Norm(of(WEIGHTS)), (4,), separable=True),
    Entry("l1-list", lambda of: L1Norm([3, 0.5, 2, 1]), (4,), separable=True),
    Entry("l1-complex", lambda of: L1Norm(of(WEIGHTS + 0.1)), (4,), True, separable=True),
    Entry("linear", lambda of: Linear(of(_data(11, 4))), (4,), separable=True),
    Entry("linear-matrix", lambda of: Linear(of(_data(12, 2, 3))), (2, 3), separable=True),
    Entry("linear-complex", lambda of: Linear(of(_complex_data(13, 4))), (4,), True, True),
    Entry("least-squares", lambda of: LeastSquares(of(TALL), of(_data(14, 9))), (4,)),
    Entry("least-squares-exact", lambda of: LeastSquares(of(TALL), of(TALL @ [9, -5, 7, 2])), (4,)),
    Entry("least-squares-wide", lambda of: LeastSquares(of(WIDE), of(_data(15, 3)), 2), (6,)),
    Entry("least-squares-deficient", lambda of: LeastSquares(of(DEFICIENT), [1] * 5), (4,)),
    Entry(
        "least-squares-complex",
        lambda of: LeastSquares(of(COMPLEX), of(_complex_data(16, 6))),
        (4,),
        True,
    ),
    Entry(
        "least-squares-sparse", lambda of: LeastSquares(sparse(of, SPARSE), of(_data(17, 8))), (5,)
    ),
    Entry(
        "least-squares-sparse-complex",
        lambda of: LeastSquares(sparse(of, COMPLEX), of(_complex_data(18, 6))),
        (4,),
        True,
    ),
    Entry(
        "least-squares-operator",
        lambda of: LeastSquares(operator(of, WIDE), of(_data(19, 3))),
        (6,),
    ),
    Entry(
        "quadratic",
        lambda of: Quadratic(of(TALL.T @ TALL), of(_data(20, 4)), constant=-2.0),
        (4,),
    ),
    Entry("quadratic-singular", lambda of: Quadratic(of(WIDE.T @ WIDE)), (6,)),
    Entry(
        "quadratic-sparse",
        lambda of: Quadratic(sparse(of, SPARSE.T @ SPARSE + np.eye(5)), of(_data(21, 5))),
        (5,),
    ),
    Entry(
        "weighted-distance",
        lambda of: SquaredDistance(of(_data(22, 4)), weights=of(np.array([1.0, 0.0, 2.0, 0.5]))),
        (4,),
        separable=True,
    ),
    Entry("squared-distance", lambda of: SquaredDistance(of(_data(22, 4))), (4,), separable=True),
    Entry(
        "squared-distance-matrix",
        lambda of: SquaredDistance(of(_data(23, 3, 3))),
        (3, 3),
        False,
        True,
    ),
    Entry(
        "squared-distance-complex",
        lambda of: SquaredDistance(of(_complex_data(24, 4))),
        (4,),
        True,
        True,
    ),
    Entry("logistic", lambda of: Logistic(of(TALL), of(LABELS), batch_size=3), (4,)),
    Entry("logistic-ridge", lambda of: Logistic(of(TALL), (LABELS + 1) / 2, l2=0.3), (4,)),
    Entry("logistic-sparse", lambda of: Logistic(sparse(of, SPARSE), LABELS[:8], l2=0.1), (5,)),
    Entry("logistic-operator", lambda of: Logistic(operator(of, TALL), LABELS), (4,)),
    Entry("hinge", lambda of: HingeLoss(of(TALL), of(LABELS), batch_size=3), (4,)),
    Entry("hinge-sparse", lambda of: HingeLoss(sparse(of, SPARSE), LABELS[:8], l2=0.1), (5,)),
    Entry("squared-hinge", lambda of: SquaredHingeLoss(of(TALL), LABELS, l2=0.3), (4,)),
    Entry("pinball", lambda of: PinballLoss(of(TALL), of(_data(21, 9)), 0.8), (4,)),
    Entry(
        "pinball-operator", lambda of: PinballLoss(operator(of, TALL), _data(21, 9), l2=1.0), (4,)
    ),
    Entry("poisson", lambda of: Poisson(of(0.01 * TALL), np.arange(9.0)), (4,)),
    Entry("poisson-ridge", lambda of: Poisson(of(0.01 * TALL), np.arange(9.0), l2=0.2), (4,)),
    Entry("off-diagonal", lambda of: OffDiagonalL1(3, 0.7), (3, 3), separable=True),
    Entry("pairs", lambda of: PairLoss(of(_data(32, 5, 3)), PAIRS, of(_data(33, 10))), (3, 3)),
    Entry("pairs-unique", lambda of: PairLoss(of(_data(34, 4, 6)), _pairs(4), [0, 2] * 3), (6, 6)),
    Entry("pairs-few", lambda of: PairLoss(of(_data(35, 5, 3)), ([0, 2], [1, 4]), [1, 0]), (3, 3)),
    Entry(
        "pairs-differences",
        lambda of: PairLoss.from_differences(of(_data(36, 4, 3)), of(_data(37, 4))),
        (3, 3),
    ),
    Entry("nuclear", lambda of: NuclearNorm((3, 4)), (3, 4)),
    Entry("nuclear-complex", lambda of: NuclearNorm((3, 2)), (3, 2), True),
    Entry("nuclear-mapped", lambda of: NuclearNorm((2, 4), of(_data(38, 8, 5))), (5,)),
    Entry("nuclear-sparse", lambda of: NuclearNorm((2, 4), sparse(of, SPARSE)), (5,)),
    Entry("linf", lambda of: LInfNorm(), (4,)),
    Entry("linf-shape", lambda of: LInfNorm(shape=(2, 3)), (2, 3)),
    Entry("linf-complex", lambda of: LInfNorm(shape=(4,)), (4,), True),
    Entry("linf-mapped", lambda of: LInfNorm(of(TALL)), (4,)),
    Entry("linf-operator", lambda of: LInfNorm(operator(of, WIDE)), (6,)),
    Entry("linf-offset", lambda of: LInfNorm(b=of(_data(39, 4))), (4,)),
    Entry("linf-mapped-offset", lambda of: LInfNorm(of(TALL), b=of(_data(40, 9))), (4,)),
    Entry(
        "l1-offset", lambda of: L1Norm(of(np.array([1.0, 0.5, 2.0, 0.0])), b=of(_data(41, 4))), (4,)
    ),
    Entry("l1-mapped-offset", lambda of: L1Norm(0.5, D=of(TALL), b=of(_data(42, 9))), (4,)),
    Entry("groups", lambda of: GroupNorm(group_size=2), (4,)),
    Entry("groups-centre", lambda of: GroupNorm(None, 2, b=of(_data(44, 4))), (4,)),
    Entry("groups-offset", lambda of: GroupNorm(of(TALL), 3, b=of(_data(43, 9))), (4,)),
    Entry("huber", lambda of: Huber(delta=0.7), (4,), separable=True),
    Entry("huber-centre", lambda of: Huber(b=of(_data(39, 2, 3)), delta=0.5), (2, 3), False, True),
    Entry("huber-regression", lambda of: Huber(of(TALL), of(_data(40, 9)), delta=1.3), (4,)),
    Entry("huber-sparse", lambda of: Huber(sparse(of, SPARSE), of(_data(41, 8))), (5,)),
    Entry(
        "sum-nuclear",
        lambda of: SquaredDistance(of(_data(42, 3, 3))) + 0.3 * NuclearNorm((3, 3)),
        (3, 3),
    ),
    Entry("function-smooth", lambda of: hyperbola(), (4,)),
    Entry("function-prox", lambda of: euclidean(), (4,)),
    Entry("function-strongly-convex", lambda of: largest_entry(), (4,)),
    Entry("scaled-smooth", lambda of: 3.0 * Logistic(of(TALL), of(LABELS), l2=0.2), (4,)),
    Entry("scaled-prox", lambda of: 0.25 * L1Norm(of(WEIGHTS)), (4,), separable=True),
    Entry("scaled-zero", lambda of: Scaled(0.0, L1Norm(of(WEIGHTS))), (4,), separable=True),
    Entry("sum-lasso", lambda of: LeastSquares(of(TALL), of(_data(25, 9))) + 0.5 * L1Norm(), (4,)),
    Entry(
        "sum-smooth",
        lambda of: Sum(
            LeastSquares(of(TALL), of(_data(26, 9))),
            SquaredDistance(of(_data(27, 4))),
            Quadratic(of(np.diag(WEIGHTS))),
            Linear(of(_data(28, 4))),
        ),
        (4,),
    ),
    Entry("sum-rough", lambda of: L1Norm() + euclidean() + 0.5 * hyperbola(), (4,)),
    Entry(
        "sum-nested",
        lambda of: 2.0 * (Linear(of(_data(29, 4))) + L1Norm(5.0)) + Logistic(of(TALL), LABELS),
        (4,),
    ),
    Entry(
        "sum-matrix",
        lambda of: SquaredDistance(of(_data(30, 3, 3))) + OffDiagonalL1(3, 0.4),
        (3, 3),
    ),
    Entry(
        "sum-complex",
        lambda of: LeastSquares(of(COMPLEX), of(_complex_data(31, 6))) + L1Norm(0.3),
        (4,),
        True,
    ),
]
