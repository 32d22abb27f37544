"""The same runs with arrays of several libraries: results are in the same library, with the same values.

PyTorch is included where it is installed; the identifiers of its tests contain "torch".
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import lopro
from lopro import Problem
from lopro.constraints import Polyhedron, PSDCone, ResidualBall, ResidualNorm
from lopro.core.arrays import to_numpy
from lopro.methods.inner import AcceleratedGradient, ConstantStep, SubgradientDescent
from lopro.objectives import L1Norm, LeastSquares, Linear
from lopro.penalties import Hinge, QuadraticHinge, Softplus

LIBRARIES = ["numpy", "strict", "torch"]


@pytest.fixture(params=LIBRARIES)
def convert(request):
    """Return the conversion of NumPy data into the library under test."""
    if request.param == "numpy":
        return np.array
    module = "array_api_strict" if request.param == "strict" else "torch"
    return pytest.importorskip(module).asarray


def data(seed: int, *shape: int) -> np.ndarray:
    return np.random.default_rng(seed).standard_normal(shape)


def vector_objectives(of: Any) -> dict[str, Any]:
    return {
        "l1": L1Norm(),
        "linear": Linear(of(data(1, 4))),
        "least-squares": LeastSquares(of(data(2, 6, 4)), of(data(3, 6))),
    }


def matrix_objectives(of: Any) -> dict[str, Any]:
    M = data(4, 3, 3)
    # <C, X> with a positive definite C is bounded below on the cone; l1 is too.
    return {"l1": L1Norm(), "linear": Linear(of(M @ M.T + np.eye(3)))}


def constraints(of: Any) -> dict[str, Any]:
    C = data(5, 5, 4)
    rows = np.vstack([C, np.eye(4), -np.eye(4)])
    bounds = np.concatenate([np.full(5, 0.7), np.ones(8)])
    A, y = of(data(6, 5, 4)), of(3.0 * data(7, 5))
    sigma = float(np.linalg.norm(3.0 * data(7, 5))) * 0.9
    return {
        "ball": ResidualBall(A, y, sigma),
        "ball-norm": ResidualBall(A, y, sigma, ResidualNorm()),
        "polyhedron": Polyhedron(of(rows), of(bounds)),
        "psd": PSDCone(3),
    }


def one(inner: Any, penalty: Any) -> lopro.OneProjection:
    return lopro.OneProjection(inner, penalty, 60)


METHODS = {
    "auto": lopro.Auto(),
    "lopgd": lopro.LoPGD(),
    "lopnag": lopro.LoPNAG(),
    "one-subgradient": one(SubgradientDescent(ConstantStep(0.01)), Hinge(2.0)),
    "one-accelerated": one(AcceleratedGradient(restart=True), Softplus(2.0, 0.5)),
    "one-quadratic": one(AcceleratedGradient(), QuadraticHinge(2.0, 0.5)),
}


def cases() -> list[Any]:
    """Return every valid combination: LoPNAG requires a smooth c."""
    found = []
    for c in ("ball", "ball-norm", "polyhedron", "psd"):
        objectives = ("l1", "linear") if c == "psd" else ("l1", "linear", "least-squares")
        for m in METHODS:
            if m == "lopnag" and c != "ball":
                continue
            found += [pytest.param(c, f, m, id=f"{f}-{c}-{m}") for f in objectives]
    return found


def run(of: Any, constraint: str, objective: str, method: str) -> lopro.Result:
    objectives = matrix_objectives(of) if constraint == "psd" else vector_objectives(of)
    # A linear function over the cone is least at zero, where its value gives no scale.
    scale = 1.0 if (constraint, objective) == ("psd", "linear") else None
    problem = Problem(objectives[objective], constraints(of)[constraint], gap_scale=scale)
    x0 = 0.1 * data(8, 3, 3) if constraint == "psd" else 0.1 * data(8, 4)
    x0 = of(0.5 * (x0 + x0.T))
    return lopro.solve(problem, x0, METHODS[method], max_iter=600, tol=1e-6)


@pytest.mark.parametrize(("constraint", "objective", "method"), cases())
def test_every_library_gives_the_same_run(convert, constraint, objective, method):
    result = run(convert, constraint, objective, method)
    assert type(result.x) is type(convert(np.zeros(1)))
    assert result.x.dtype == convert(np.zeros(1)).dtype
    assert isinstance(result.fun, float) and isinstance(result.certificate.gap, float)
    assert result.certificate.violation <= 1e-9
    reference = run(np.array, constraint, objective, method)
    assert result.status is reference.status
    # Sums in another order: the same to rounding, which a long run may amplify. Where both functions
    # have kinks, rounding even decides which subgradient is met, and two good runs part.
    if (constraint, objective, method) == ("psd", "l1", "lopgd"):
        assert result.fun == pytest.approx(reference.fun, rel=0.5)
        return
    assert result.fun == pytest.approx(reference.fun, rel=1e-5, abs=1e-6)
    if reference.success:
        assert abs(result.fun - reference.fun) <= 2e-6 * max(1.0, abs(reference.fun))
    else:
        np.testing.assert_allclose(to_numpy(result.x), reference.x, rtol=1e-3, atol=1e-4)


def test_a_start_is_made_in_the_library_of_the_data(convert):
    A = convert(np.diag([1.0, 3.0]))
    problem = Problem(L1Norm(), ResidualBall(A, convert(np.ones(2)), 0.5))
    result = lopro.solve(problem)
    assert result.success and type(result.x) is type(A)


def test_single_precision_is_kept(convert):
    A = convert(np.diag([1.0, 3.0]).astype(np.float32))
    problem = Problem(L1Norm(), ResidualBall(A, convert(np.ones(2, dtype=np.float32)), 0.5))
    result = lopro.solve(problem, tol=1e-3)
    assert result.success and result.x.dtype == A.dtype


def test_no_graph_of_derivatives_is_kept_torch():
    torch = pytest.importorskip("torch")
    x0 = torch.ones(2, dtype=torch.float64, requires_grad=True)
    box = Polyhedron.box(torch.zeros(2, dtype=torch.float64), torch.ones(2, dtype=torch.float64))
    result = lopro.solve(Problem(Linear(torch.ones(2, dtype=torch.float64)), box), x0)
    assert not result.x.requires_grad and x0.grad is None
