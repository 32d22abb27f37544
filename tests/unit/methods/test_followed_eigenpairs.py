"""Steps of the paper's methods over large matrices use tracked eigenpairs, which no proof uses."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest

import lopro
from lopro.constraints import Affine, Intersection, MinEigenvalue, NegativeSum, PSDCone
from lopro.methods.inner import ConstantStep, SubgradientDescent
from lopro.methods.paper.epochs import Epoch, Plan
from lopro.objectives import SquaredDistance
from lopro.penalties import Hinge
from lopro.protocol import Claim

SIZE = 80


def nearest(size: int = SIZE, form: Any = None) -> lopro.Problem:
    G = np.random.default_rng(0).standard_normal((size, size))
    return lopro.Problem(SquaredDistance(G + G.T), PSDCone(size, form))


def test_steps_use_tracked_eigenpairs_and_decompose_no_matrix() -> None:
    result = lopro.solve(nearest(), method=lopro.LoPGD(), max_iter=200)
    assert result.iterations == 200 and result.counts.eigenpairs >= 200
    assert result.counts.eigendecompositions <= 2 + 2 * result.counts.projections


def test_the_lower_bound_is_below_the_known_optimum() -> None:
    """The nearest matrix keeps the positive eigenvalues, so its distance is known."""
    problem = nearest()
    values = np.linalg.eigvalsh(problem.objective.z)
    optimum = 0.5 * float((np.minimum(values, 0.0) ** 2).sum())
    result = lopro.solve(problem, method=lopro.LoPGD(), max_iter=600)
    assert result.certificate.violation <= 1e-12
    assert result.certificate.lower_bound <= optimum <= result.fun <= 1.2 * optimum


@pytest.mark.parametrize(
    ("constraint", "other"),
    [
        (PSDCone(SIZE), True),
        (PSDCone(60), False),
        (PSDCone(SIZE, NegativeSum()), False),
        (PSDCone(SIZE, MinEigenvalue(), accuracy=0.2), False),
        (
            Intersection(
                PSDCone(SIZE), Affine.entries(([0], [0]), 1.0, 1.0, shape=(SIZE, SIZE)), rho=0.1
            ),
            True,
        ),
        (lopro.constraints.Simplex(3), False),
    ],
)
def test_which_sets_have_a_function_of_tracked_eigenpairs(constraint: Any, other: bool) -> None:
    followed = constraint.followed()
    assert (followed is not constraint) == other
    if other:
        assert any(member.approximate for member in followed.members())
        rho = constraint.regularity()
        assert (followed.regularity() is None) == (rho is None)
        assert rho is None or followed.regularity().value == rho.value


@dataclass(frozen=True)
class Once:
    """A schedule of a single plan, with or without a claimed bound of its steps."""

    claim: Claim | None

    def init(self, bench: Any, x: Any) -> tuple[Plan, None]:
        return Plan(Hinge(10.0), SubgradientDescent(ConstantStep(1e-2)), 20, x, self.claim), None

    def next(self, bench: Any, state: None, epoch: Epoch) -> tuple[None, None]:
        return None, None


def test_a_theorem_on_the_steps_requires_exact_values() -> None:
    promised = lopro.solve(nearest(), method=lopro.LoPGD(Once(Claim(1.0, "a test"))), tol=1e-9)
    plain = lopro.solve(nearest(), method=lopro.LoPGD(Once(None)), tol=1e-9)
    assert promised.iterations == plain.iterations == 20
    assert promised.claim is not None and plain.claim is None
    assert promised.counts.eigendecompositions >= 20 > plain.counts.eigendecompositions
    assert plain.counts.eigenpairs >= 20


def test_two_runs_of_one_problem_are_the_same() -> None:
    problem = nearest()
    first, second = (lopro.solve(problem, method=lopro.LoPGD(), max_iter=50) for _ in range(2))
    assert np.array_equal(first.x, second.x) and first.fun == second.fun
