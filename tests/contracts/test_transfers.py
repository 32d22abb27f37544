"""Nothing as long as the data leaves the device inside a loop; matrices leave it only where that is counted.

Arrays on the second device of array-api-strict can be read by NumPy only through `numpy.from_dlpack`, which
these tests watch.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from support.array_calls import strict

import lopro
import lopro.constraints as lc
import lopro.objectives as lo

RNG = np.random.default_rng(0)
ROWS, COLUMNS = 300, 20
A = RNG.standard_normal((ROWS, COLUMNS))
B = A @ RNG.standard_normal(COLUMNS) + RNG.standard_normal(ROWS)
C, H = RNG.standard_normal((40, COLUMNS)), np.abs(RNG.standard_normal(40))
LARGE = np.linalg.norm(B - A @ np.linalg.lstsq(A, B, rcond=None)[0]) * 1.2
WIDE = RNG.standard_normal((60, 400))
Y = WIDE[:, :5] @ np.ones(5) + 0.1 * RNG.standard_normal(60)
POINTS, CLASSES = RNG.standard_normal((60, 12)), np.arange(60) % 2
POINTS[:, 1] += 2.0 * CLASSES
#: No correlation matrix: several eigenvalues are negative.
G = RNG.standard_normal((30, 30))
G = np.where(np.eye(30) > 0.0, 1.0, 0.25 * (G + G.T))


def squares_over_rows() -> lopro.Problem:
    return lopro.Problem(lo.LeastSquares(strict(A), strict(B)), lc.Polyhedron(strict(C), strict(H)))


def logistic() -> lopro.Problem:
    f = lo.Logistic(strict(A), strict(np.sign(B)), l2=0.1)
    return lopro.Problem(f, lc.Polyhedron(strict(C), strict(H)))


def squares_over_ball() -> lopro.Problem:
    f = lo.SquaredDistance(strict(np.ones(COLUMNS)))
    return lopro.Problem(f, lc.ResidualBall(strict(A), strict(B), LARGE))


#: A call with a number of steps, the size from which an array is as long as the data, and the number of such
#: arrays that may leave the device: the rows of a set are read once, for its projections or for a proof, and
#: the pairs of samples when a metric is posed.
LOOPS: dict[str, tuple[Callable[[int], Any], int, int]] = {
    "NewtonMultipliers": (
        lambda k: lopro.solve(logistic(), method=lopro.NewtonMultipliers(), max_iter=k), ROWS + 101, 1
    ),
    "LoPGD": (lambda k: lopro.solve(squares_over_rows(), method=lopro.LoPGD(), max_iter=k), ROWS, 1),
    "LoPNAG": (lambda k: lopro.solve(squares_over_ball(), method=lopro.LoPNAG(), max_iter=k), ROWS, 1),
    "MultiplierMethod": (
        lambda k: lopro.solve(squares_over_rows(), method=lopro.MultiplierMethod(), max_iter=k), ROWS, 1
    ),
    "bpdn": (lambda k: lopro.bpdn(strict(WIDE), strict(Y), 0.5, max_iter=k), 60 * 60, 0),
    "bpdn, MatrixFree": (
        lambda k: lopro.bpdn(strict(WIDE), strict(Y), 0.5, method=lopro.MatrixFree(), max_iter=k), 401, 0
    ),
    "learn_metric": (
        lambda k: lopro.learn_metric(strict(POINTS), CLASSES, l1=0.05, max_iter=k), POINTS.size, 12
    ),
    "nearest_correlation": (lambda k: lopro.nearest_correlation(strict(G), tol=1.0 / k), len(G) + 1, 0),
}  # fmt: skip


@pytest.fixture
def sizes(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Return the list to which the size of every array that leaves the device is added."""
    found: list[int] = []
    real = np.from_dlpack

    def watched(x: Any, *args: Any, **options: Any) -> Any:
        found.append(math.prod(x.shape))
        return real(x, *args, **options)

    monkeypatch.setattr(np, "from_dlpack", watched)
    return found


@pytest.mark.parametrize("name", LOOPS)
def test_what_leaves_the_device_does_not_grow_with_the_steps(name: str, sizes: list[int]) -> None:
    call, long, allowed = LOOPS[name]
    left, steps = [], []
    for k in (4, 400):
        del sizes[:]
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            result = call(k)
        assert result.counts.transfers == 0  # transfers of matrices, for engines of the host
        left.append(sum(size >= long for size in sizes))
        steps.append(result.iterations)
    assert steps[1] > steps[0] or min(steps) > allowed, "transfers in each step would not be seen"
    assert max(left) <= allowed
    assert sizes, "nothing was watched"


def test_a_transfer_is_seen(sizes: list[int]) -> None:
    """The negative control: an engine of the host takes the matrix of the rows, which is counted."""
    result = lopro.solve(squares_over_rows(), method=lopro.ProgramEngines())
    assert result.counts.transfers > 0
    assert result.counts.bytes_transferred >= C.nbytes
    assert max(sizes) >= C.size
