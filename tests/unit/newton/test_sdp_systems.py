"""Linear systems of semidefinite programs: Hessians, directions and Gram matrices, also under a deadline."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import scipy.sparse
from support.sdp_programs import CYCLE, max_cut, random_program

from lopro.core.deadline import Deadline, OutOfTime, using_clock
from lopro.linalg.dense import SingularSystem
from lopro.newton.sdp import SemidefiniteProgram
from lopro.newton.sdp.dual_point import Centre, DualPoint
from lopro.newton.sdp.hessian import Directions, _add_gram, _factor


def test_hessian_is_the_derivative_of_the_gradient(rng):
    program, _, y = random_program(rng)
    centre = Centre(tuple(np.zeros(p.shape) for p in program.blocks), 2.0)
    y = y + 3.0 * rng.standard_normal(4)
    point, h = DualPoint.of(program, centre, y), rng.standard_normal(4)
    assert 0 < point.spectra[0].rank < 6
    step = 1e-6
    ahead, behind = (DualPoint.of(program, centre, y + t * h) for t in (step, -step))
    expected = (ahead.gradient - behind.gradient) / (2.0 * step)
    found = centre.sigma * Directions(program)._product(point.spectra, h)
    np.testing.assert_allclose(found, expected, rtol=1e-6)
    slope = (ahead.value - behind.value) / (2.0 * step)
    assert slope == pytest.approx(point.gradient @ h, rel=1e-6)
    explicit = Directions(program)
    explicit.explicit = True
    d = explicit.find(point, centre.sigma, 1e-12, 1e-6)
    np.testing.assert_allclose(
        centre.sigma * explicit._product(point.spectra, d), -point.gradient, atol=1e-6
    )


@pytest.mark.parametrize("at_once", [1.0, 500.0, 1e9])
def test_the_matrix_in_parts_is_the_matrix(rng, monkeypatch, at_once):
    monkeypatch.setattr("lopro.newton.sdp.hessian._AT_ONCE", at_once)
    program, _, y = random_program(rng)
    centre = Centre(tuple(np.zeros(p.shape) for p in program.blocks), 2.0)
    point = DualPoint.of(program, centre, y + 3.0 * rng.standard_normal(4))
    directions = Directions(program)
    H = np.column_stack([directions._product(point.spectra, e) for e in np.eye(4)])
    found = np.zeros((4, 4))
    for block, spectrum in zip(program.blocks, point.spectra, strict=True):
        _add_gram(found, _factor(block, spectrum))
    np.testing.assert_allclose(found, H, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("explicit", [True, False])
def test_directions_are_interrupted_by_the_deadline(rng, monkeypatch, explicit):
    """The clock is checked for each part of the matrix, and for each product."""
    monkeypatch.setattr("lopro.newton.sdp.hessian._AT_ONCE", 1.0)
    program, _, y = random_program(rng)
    centre = Centre(tuple(np.zeros(p.shape) for p in program.blocks), 2.0)
    point = DualPoint.of(program, centre, y + 3.0 * rng.standard_normal(4))
    directions = Directions(program)
    directions.explicit = explicit
    calls = [0]

    def clock() -> float:
        calls[0] += 1
        return 0.0 if calls[0] <= 3 else 2.0

    with using_clock(clock):
        deadline = Deadline(1.0)
    with deadline.active(), pytest.raises(OutOfTime):
        directions.find(point, centre.sigma, 1e-12, 1.0)
    assert calls[0] == 4 and directions.matrices == 0


def test_gram_of_sparse_and_of_full_rows(rng):
    program, _, _ = random_program(rng)
    assert program.blocks[0].full
    cut = max_cut(5, CYCLE)
    assert not cut.blocks[0].full
    for some in (program, cut):
        A = np.hstack([block.A.toarray() for block in some.blocks])
        np.testing.assert_allclose(some.gram().toarray(), A @ A.T, rtol=1e-12, atol=1e-12)


def test_the_matrix_replaces_products_once_they_cost_as_much(rng):
    program, _, y = random_program(rng)
    centre = Centre(tuple(np.zeros(p.shape) for p in program.blocks), 2.0)
    point = DualPoint.of(program, centre, y + 3.0 * rng.standard_normal(4))
    directions = Directions(program)
    found = directions.find(point, centre.sigma, 1e-300, 1e-6)
    assert directions.explicit
    assert directions.products <= 4  # one for each row
    assert directions.matrices == 1
    np.testing.assert_allclose(found, directions.find(point, centre.sigma, 0.0, 1e-6), rtol=1e-12)


def test_a_singular_matrix_requires_a_larger_shift(rng):
    program, _, y = random_program(rng)
    double = SemidefiniteProgram(
        np.concatenate([program.b, program.b]),
        tuple(replace(p, A=scipy.sparse.vstack([p.A, p.A], format="csr")) for p in program.blocks),
    )
    centre = Centre(tuple(np.zeros(p.shape) for p in program.blocks), 2.0)
    point = DualPoint.of(double, centre, np.concatenate([y, y]))
    directions = Directions(double)
    directions.explicit = True
    with pytest.raises(SingularSystem, match="larger shift"):
        directions.find(point, centre.sigma, 0.0, 1e-12)
    assert np.isfinite(directions.find(point, centre.sigma, 0.0, 1e3)).all()
