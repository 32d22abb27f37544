"""The result names the methods to which `WorkingSet` passes a problem; each can be chosen alone."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import lopro
from lopro.basis_pursuit.programs import PursuitPrograms
from lopro.basis_pursuit.rotated_program import RotatedProgram
from lopro.errors import MissingCapabilityError


def uniform(m: int, d: int, k: int, share: float, seed: int) -> tuple[Any, Any, float]:
    rng = np.random.default_rng(seed)
    A, x = rng.uniform(-1, 1, (m, d)), np.zeros(d)
    x[rng.choice(d, k, replace=False)] = rng.uniform(-1, 1, k)
    e = rng.uniform(-0.01, 0.01, m)
    return A, A @ x + e, share * float(np.linalg.norm(e))


def test_one_method_is_named_where_one_sufficed() -> None:
    assert lopro.bpdn(*uniform(200, 600, 20, 1.0, 0)).method == repr(lopro.WorkingSet())


@pytest.mark.parametrize("share", [0.0, 1e-3])
def test_programs_are_named_and_give_the_same_solution_when_chosen(share: float) -> None:
    instance = uniform(60, 220, 8, share, 2)
    found = lopro.bpdn(*instance, tol=1e-8)
    assert found.success and found.method == f"{lopro.WorkingSet()!r} -> {PursuitPrograms()!r}"
    alone = lopro.bpdn(*instance, tol=1e-8, method=PursuitPrograms())
    assert alone.success and alone.method == repr(PursuitPrograms())
    assert alone.fun == pytest.approx(found.fun, rel=2e-8)


def test_all_methods_are_tried_on_a_wide_matrix_in_memory() -> None:
    """The working-set method on a pool of columns stalls here; first-order steps took 8966 products."""
    found = lopro.bpdn(*uniform(60, 6000, 8, 1.0, 0))
    assert found.success and "MatrixFree" not in found.method
    assert found.counts.passes <= 45


def test_problems_that_are_too_large_or_of_another_form_are_refused() -> None:
    A, y, sigma = uniform(50, 3000, 5, 1.0, 0)
    with pytest.raises(
        MissingCapabilityError, match=r"RotatedProgram needs .* at most 1e\+05 entries"
    ):
        lopro.bpdn(A, y, sigma, method=RotatedProgram())
    with pytest.raises(MissingCapabilityError, match="PursuitPrograms needs"):
        lopro.bpdn(A[:, :40], y, sigma, method=PursuitPrograms())
    box = lopro.Problem(lopro.objectives.L1Norm(), lopro.constraints.Polyhedron.box([1.0], [2.0]))
    for method in (RotatedProgram(), PursuitPrograms()):
        with pytest.raises(MissingCapabilityError, match="L1Norm over a ResidualBall"):
            lopro.solve(box, method=method)
