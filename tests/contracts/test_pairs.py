"""Every objective over every set through `lopro.solve`, on every array library: NumPy's answer.

Arrays of array-api-strict on its second device stand in for those of a GPU: they refuse to be mixed with
others.
``pytest tests/contracts/test_pairs.py --device cuda`` runs the same pairs on a GPU.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import array_api_strict
import numpy as np
import pytest

import lopro
import lopro.constraints as lc
import lopro.objectives as lo
from lopro.core.arrays import to_numpy

Convert = Callable[[Any], Any]
N = 6
RNG = np.random.default_rng(0)
A, B, WIDE = RNG.standard_normal((9, N)), RNG.standard_normal(9), RNG.standard_normal((4, N))
LABELS, Q = np.sign(RNG.standard_normal(9)), RNG.standard_normal(N)
C, H = RNG.standard_normal((5, N)), np.abs(RNG.standard_normal(5))

OBJECTIVES: dict[str, Callable[[Convert], lo.Objective]] = {
    "least squares": lambda of: lo.LeastSquares(of(A), of(B)),
    "quadratic": lambda of: lo.Quadratic(of(A.T @ A), of(Q)),
    "linear": lambda of: lo.Linear(of(Q)),
    "distance": lambda of: lo.SquaredDistance(of(Q)),
    "logistic": lambda of: lo.Logistic(of(A), of(LABELS), l2=0.1),
    "huber": lambda of: lo.Huber(of(A), of(B)),
    "l1": lambda of: lo.L1Norm(of(np.ones(N))),
    "lasso": lambda of: lo.LeastSquares(of(A), of(B)) + 0.5 * lo.L1Norm(of(np.ones(N))),
    "variation": lambda of: lo.TotalVariation(N) + 0.1 * lo.SquaredDistance(of(Q)),
    "hinge": lambda of: lo.HingeLoss(of(A), of(LABELS), l2=0.1),
    "pinball": lambda of: lo.PinballLoss(of(A), of(B), 0.3),
    "poisson": lambda of: lo.Poisson(of(0.3 * A), of(np.arange(9.0))),
}
SETS: dict[str, Callable[[Convert], lc.Constraint | None]] = {
    "none": lambda of: None,
    "box": lambda of: lc.Polyhedron.box(of(-np.ones(N)), of(np.ones(N))),
    "rows": lambda of: lc.Polyhedron(of(C), of(H)),
    "equations": lambda of: lc.Affine(of(C[:2]), 0.1, 0.1),
    "simplex": lambda of: lc.Simplex(N),
    "ball": lambda of: lc.ResidualBall(of(A), of(B), 3.0),
    "rows and ball": lambda of: lc.Intersection(
        lc.Polyhedron(of(C), of(H)), lc.ResidualBall(of(np.eye(N)), of(np.zeros(N)), 2.0)
    ),
}
#: A linear function has no minimum over these, which only the host can prove.
UNBOUNDED = {("linear", "none"), ("linear", "rows"), ("linear", "equations")}
PAIRS = [(f, s) for f in OBJECTIVES for s in SETS if (f, s) not in UNBOUNDED]


def strict(data: Any) -> Any:
    device = array_api_strict.Device("device1")
    return array_api_strict.asarray(np.asarray(data, dtype=np.float64), device=device)


def torch(data: Any, device: str = "cpu", dtype: Any = np.float64) -> Any:
    library = pytest.importorskip("torch", reason="PyTorch is not installed")
    return library.asarray(np.asarray(data, dtype=dtype), device=device)


LIBRARIES: dict[str, tuple[Convert, float]] = {
    "strict": (strict, 1e-6),
    "torch": (torch, 1e-6),
    "torch-single": (functools.partial(torch, dtype=np.float32), 1e-3),
}


@functools.cache
def expected(f: str, s: str) -> float:
    result = lopro.solve(lopro.Problem(OBJECTIVES[f](np.asarray), SETS[s](np.asarray)))
    assert result.success, result
    return float(result.fun)


def check(f: str, s: str, of: Convert, tol: float) -> None:
    result = lopro.solve(lopro.Problem(OBJECTIVES[f](of), SETS[s](of)), tol=tol)
    assert result.success, result
    like = of(Q)
    assert type(result.x) is type(like)
    assert (result.x.dtype, result.x.device) == (like.dtype, like.device)
    fun = expected(f, s)
    assert float(result.fun) == pytest.approx(fun, rel=2.0 * tol, abs=2.0 * tol)
    # Data in single precision have another optimum, by their own rounding.
    # A violation of 1e-9 may have gained as much.
    allowed = (1e-9 if tol < 1e-5 else 1e-5) * (1.0 + abs(fun))
    assert result.certificate.lower_bound <= fun + allowed
    assert np.isfinite(to_numpy(result.x)).all()


@pytest.mark.parametrize("library", LIBRARIES)
@pytest.mark.parametrize("pair", PAIRS, ids=lambda pair: f"{pair[0]} over {pair[1]}")
def test_a_pair_has_the_answer_of_numpy_where_its_data_are(
    pair: tuple[str, str], library: str
) -> None:
    check(*pair, *LIBRARIES[library])


@pytest.mark.parametrize("pair", PAIRS, ids=lambda pair: f"{pair[0]} over {pair[1]}")
def test_a_pair_on_a_device(pair: tuple[str, str], request: pytest.FixtureRequest) -> None:
    device = request.config.getoption("--device")
    if device is None:
        pytest.skip("no --device was given")
    check(*pair, functools.partial(torch, device=device), 1e-6)
