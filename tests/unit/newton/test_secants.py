"""L-BFGS in compact form: against its recursion, and on quadratics."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from lopro.functions import atoms
from lopro.newton import curvature
from lopro.newton.callables import Secants, SmoothCallable
from lopro.newton.systems import CorrectedSystem, DenseSystem, choose_system
from lopro.objectives import FunctionObjective


def recursion(pairs: list[Any], size: int) -> Any:
    """``B - B s s'B / s'Bs + y y' / s'y``, step by step, from ``y'y / s'y`` of the last pair."""
    s, y = pairs[-1]
    B = float(y @ y) / float(s @ y) * np.eye(size)
    for s, y in pairs:
        Bs = B @ s
        B = B - np.outer(Bs, Bs) / (s @ Bs) + np.outer(y, y) / (s @ y)
    return B


@pytest.mark.parametrize("count", [1, 3, 10, 14])
@pytest.mark.parametrize("unit", [1.0, 1e-9, 1e9])
def test_the_compact_form_is_the_recursion_of_the_last_ten(
    count: int, unit: float, rng: Any
) -> None:
    size = 20
    root = rng.standard_normal((size, size))
    H = root @ root.T + np.eye(size)
    secants, pairs = Secants(size), []
    for s in unit * rng.standard_normal((count, size)):
        pairs.append((s, H @ s))
        secants.add(*pairs[-1])
    expected = recursion(pairs[-10:], size)
    found = np.array([curvature.apply(secants.pieces(), e) for e in np.eye(size)])
    assert found == pytest.approx(expected, rel=1e-8, abs=1e-8 * np.abs(expected).max())
    assert np.linalg.eigvalsh(found).min() > 0.0
    s, y = pairs[-1]
    assert curvature.apply(secants.pieces(), s) == pytest.approx(y, rel=1e-8, abs=1e-8 * unit)


def test_zero_or_negative_curvature_is_left_out(rng: Any) -> None:
    secants = Secants(4)
    s = rng.standard_normal(4)
    for y in (0.0 * s, -s):
        secants.add(s, y)
    assert len(secants) == 0
    assert curvature.apply(secants.pieces(), s) == pytest.approx(np.zeros(4))


@pytest.mark.parametrize("size", [20, 300])
def test_systems_solve_with_them(size: int, rng: Any) -> None:
    secants = Secants(size)
    system = choose_system(size, secants.pieces())
    assert isinstance(system, DenseSystem if size == 20 else CorrectedSystem)
    for _ in range(4):
        s = rng.standard_normal(size)
        secants.add(s, (2.0 + np.sin(np.arange(size))) * s)
        pieces, rhs = secants.pieces(), rng.standard_normal(size)
        x = system.solve(pieces, 0.1, rhs, 0.0)
        assert curvature.apply(pieces, x) + 0.1 * x == pytest.approx(rhs, abs=1e-8)


def test_gradients_of_a_callable_give_its_curvature_between_them(rng: Any) -> None:
    H = np.diag([1.0, 2.0, 5.0])
    f = FunctionObjective(lambda x: 0.5 * float(x @ H @ x), gradient=lambda x: H @ x)
    smooth = SmoothCallable(atoms.Opaque(f), 3, 4.0)
    x, z = rng.standard_normal((2, 3))
    for point in (x, z):
        smooth.gradient(point, ())
    found = curvature.apply(smooth.curvature(z, ()), z - x)
    assert found == pytest.approx(4.0 * H @ (z - x), rel=1e-12)
