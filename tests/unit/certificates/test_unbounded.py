"""UNBOUNDED needs a feasible point: the functions that search for one, without an engine."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import lopro
from lopro.certificates import check_descent
from lopro.certificates.certificate import Outcome, Status
from lopro.engines import QuadraticProgram
from lopro.newton.program_rays import unproved
from lopro.newton.programs import _from_a_point, program_composite

INF = np.inf


def falling(program: QuadraticProgram) -> Outcome:
    """Return the outcome for a ray (0, 1) reported by an engine."""
    d = np.array([0.0, 1.0])
    rows = [(program.A, program.lower, program.upper), (None, program.least, program.most)]
    descent = check_descent(program.P, program.q, rows, d)
    assert descent.exact
    found = unproved(program_composite(program), Status.UNBOUNDED)
    return replace(found, certificate=descent, ray=d)


def test_a_ray_over_an_empty_set_is_emptiness() -> None:
    """x_1 >= 1 and x_1 <= 0, while x_2 has no upper bound."""
    rows = np.array([[1.0, 0.0], [1.0, 0.0]])
    program = QuadraticProgram.of(None, [0.0, -1.0], rows, [1.0, -INF], [INF, 0.0])
    found = _from_a_point(program, falling(program), None)
    assert found.status is Status.INFEASIBLE and found.certificate.proved


def test_a_ray_without_a_known_point_claims_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    """No engine finds a point or a proof that there is none: then nothing is claimed."""
    program = QuadraticProgram.of(None, [0.0, -1.0], np.array([[1.0, 0.0]]), [1.0], [2.0])
    ray = falling(program)
    lost = replace(unproved(program_composite(program), Status.STOPPED), violation=1e-8)
    monkeypatch.setattr("lopro.newton.programs.solve_program", lambda *_, **__: lost)
    assert _from_a_point(program, ray, None).status is Status.STOPPED


def test_a_ray_from_a_point_is_unbounded_and_has_the_point() -> None:
    program = QuadraticProgram.of(None, [0.0, -1.0], np.array([[1.0, 0.0]]), [1.0], [2.0])
    found = _from_a_point(program, falling(program), None)
    assert found.status is Status.UNBOUNDED
    assert 1.0 - 1e-9 <= found.x[0] <= 2.0 + 1e-9 and found.violation <= 1e-9
    assert found.ray.tolist() == [0.0, 1.0]


def test_a_ray_along_equations_is_not_mistaken_for_rounding(rng):
    """All rows of the cone of rays have the side 0: an entry of a direction is not rounding beside a side."""
    c, C = rng.standard_normal(6), rng.standard_normal((2, 6))
    result = lopro.solve(
        lopro.Problem(lopro.objectives.Linear(c), lopro.constraints.Affine(C, 0.1, 0.1)),
        method=lopro.NewtonMultipliers(),
        max_iter=50,
    )
    assert result.status is lopro.Status.UNBOUNDED
    ray = result.ray
    assert c @ ray < 0.0
    np.testing.assert_allclose(C @ ray, 0.0, atol=1e-10 * np.linalg.norm(ray))
