"""Sets and norms as parts: prox and conjugate by Fenchel's equality, generalised Hessians by differences."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
import scipy.sparse
import scipy.sparse.linalg
from support.newton_examples import interval

import lopro
from lopro.functions.atoms import (
    L1,
    Ball,
    GroupNorm,
    HalfSquare,
    Huber,
    L1Ball,
    LInf,
    SecondOrderCone,
)
from lopro.functions.term import Term
from lopro.maps import Identity, linear_map
from lopro.maps.host import Transferred, host_map
from lopro.methods.second_order import composite
from lopro.newton import curvature
from lopro.newton.complement_pieces import complement_pieces, weighted
from lopro.newton.lagrangian import PointWithImages, mean_curvature
from lopro.newton.systems import CorrectedSystem, SparseSystem, choose_system

SIZE = 6
OFFSET = np.array([0.3, -0.2, 0.1, 0.0, 0.4, -0.5])


def parts() -> dict[str, Any]:
    center = np.linspace(-1.0, 1.0, SIZE)
    return {
        "interval": interval(-0.5, np.linspace(0.1, 2.0, SIZE)),
        "ball": Term(Ball(1.5), offset=center),
        "point": Term(Ball(0.0), offset=center),
        "cone": Term(SecondOrderCone(), offset=-OFFSET),
        "l1 ball": Term(L1Ball(1.2), offset=center),
        "largest": Term(LInf(), offset=center, scale=0.8),
        "l1": Term(L1(np.linspace(0.0, 2.0, SIZE))),
        "shifted l1": Term(L1(0.7), offset=center),
        "two-sided l1": Term(L1(np.linspace(0.0, 2.0, SIZE), 0.3), offset=center),
        "groups": Term(GroupNorm(2, 0.8)),
        "large groups": Term(GroupNorm(3, 0.8)),
        "scaled groups": Term(GroupNorm(3), offset=center, scale=0.3),
        "half square": Term(HalfSquare(), offset=center, scale=0.3),
        "huber": Term(Huber(0.7), offset=center, scale=0.3),
    }


PARTS = pytest.mark.parametrize("name", parts())


def points(rng: Any, part: Any) -> list[Any]:
    """Points inside, outside and on the far side of the set or the threshold."""
    found = [scale * rng.standard_normal(SIZE) for scale in (0.1, 1.0, 1.0, 4.0, 4.0)]
    if isinstance(part.atom, SecondOrderCone):
        # Inside, in the polar cone, and between both.
        found += [np.r_[t, 0.5 * rng.standard_normal(SIZE - 1)] for t in (5.0, -5.0, 0.5, -0.5)]
    return found


@PARTS
def test_the_prox_and_the_conjugate_satisfy_fenchels_equality(name: str, rng: Any) -> None:
    """With z = prox(w) and v = (w - z) / step: g(z) + g*(v) = <v, z>; a wrong factor breaks it."""
    part = parts()[name]
    for step in (0.5, 2.0):
        for w in points(rng, part):
            z = part.prox(w, step)
            v = part.into_domain((w - z) / step)
            assert v == pytest.approx((w - z) / step, abs=1e-12)
            value = part.value(z) if not part.is_set else 0.0
            assert value + part.conjugate(v) == pytest.approx(float(v @ z), abs=1e-11)
            enclosed = part.enclose_conjugate(v)
            assert enclosed.lower() - 1e-12 <= float(v @ z) - value <= enclosed.upper() + 1e-12
            assert np.max(part.distance(z)) <= 1e-14 * (1.0 + np.linalg.norm(w))


@PARTS
def test_the_conjugate_is_a_supremum(name: str, rng: Any) -> None:
    """No z gives more than g*(v), for v that need not come from a prox."""
    part = parts()[name]
    for v in 2.0 * rng.standard_normal((20, SIZE)):
        inside = part.into_domain(v)
        found = part.enclose_conjugate(inside)
        assert math.isfinite(found.value)
        for z in (part.prox(s * rng.standard_normal(SIZE), 1.0) for s in (0.1, 1.0, 10.0)):
            value = part.value(z) if not part.is_set else 0.0
            assert float(inside @ z) - value <= found.upper() + 1e-12


@pytest.mark.parametrize("name", ["cone", "l1", "groups", "large groups"])
def test_outside_of_its_domain_a_conjugate_is_infinite(name: str, rng: Any) -> None:
    """Multipliers that are too long by a millionth prove nothing; exactly at the border they do."""
    part = parts()[name]
    v = part.into_domain(np.r_[0.0, 3.0 * rng.standard_normal(SIZE - 1)])
    assert math.isfinite(part.enclose_conjugate(v).value)
    assert part.conjugate(v) < math.inf
    away = np.r_[v[0] * (1.0 - 1e-6), v[1:]] if name == "cone" else (1.0 + 1e-6) * v
    assert part.enclose_conjugate(away).value == math.inf
    assert part.conjugate(away) == math.inf


@PARTS
def test_the_complement_is_the_derivative_of_the_prox_residual(name: str, rng: Any) -> None:
    part, h = parts()[name], 1e-6
    for step in (0.5, 2.0):
        for w in points(rng, part):
            derivative = part.complement(w, step)
            for s in rng.standard_normal((3, SIZE)):
                ahead, behind = w + h * s, w - h * s
                moved = part.prox(ahead, step) - part.prox(behind, step)
                difference = (ahead - behind - moved) / (2.0 * h)
                assert derivative.apply(s) == pytest.approx(difference, abs=1e-8)
            matrix = np.array([derivative.apply(e) for e in np.eye(SIZE)])
            assert matrix == pytest.approx(matrix.T, abs=1e-15)
            values = np.linalg.eigvalsh(matrix)
            assert values.min() >= -1e-14 and values.max() <= 1.0 + 1e-14


def maps(M: Any) -> dict[str, Any]:
    return {
        "identity": Identity(SIZE),
        "dense": linear_map(M),
        "sparse": linear_map(scipy.sparse.csr_array(M)),
        "operator": host_map(linear_map(scipy.sparse.linalg.aslinearoperator(M))),
    }


@PARTS
@pytest.mark.parametrize("kind", ["identity", "dense", "sparse", "operator"])
def test_pieces_add_up_to_the_generalised_hessian(name: str, kind: str, rng: Any) -> None:
    """``beta D' (I - J) D``, in products, on the diagonal, and as systems see it."""
    part = parts()[name]
    M = rng.standard_normal((SIZE, SIZE)) * (rng.uniform(size=(SIZE, SIZE)) < 0.6)
    D = maps(M)[kind]
    matrix = np.eye(SIZE) if kind == "identity" else M
    beta = np.linspace(1.0, 2.0, SIZE) if part.separable else 1.7
    for w in points(rng, part):
        complement = part.complement(w, 1.0 / beta)
        middle = np.array([complement.apply(e) for e in np.eye(SIZE)])
        expected = matrix.T @ (np.diag(beta * np.ones(SIZE)) @ middle) @ matrix
        pieces = complement_pieces(complement, D, beta)
        found = np.array([curvature.apply(pieces, e) for e in np.eye(SIZE)])
        assert found == pytest.approx(expected, abs=1e-12)
        if kind != "operator":
            diagonal = curvature.diagonal(pieces, SIZE)
            assert diagonal == pytest.approx(np.diag(expected), abs=1e-12)
        rhs = rng.standard_normal(SIZE)
        solved = choose_system(SIZE, pieces).solve(pieces, 0.5, rhs, 1e-14)
        assert (expected + 0.5 * np.eye(SIZE)) @ solved == pytest.approx(rhs, abs=1e-9)


@pytest.mark.parametrize("name", ["ball", "cone", "groups"])
def test_sparse_systems_stay_sparse(name: str, rng: Any) -> None:
    """Differences of 900 variables: blocks keep the pattern, dense rows are corrected for."""
    n = 901
    D = scipy.sparse.diags_array([-np.ones(900), np.ones(900)], offsets=[0, 1], shape=(900, n))
    part: Any = {
        "ball": Ball(3.0),
        "cone": SecondOrderCone(),
        "groups": GroupNorm(3, 0.5),
    }[name]
    kinds = set()
    system = None
    for w in 2.0 * rng.standard_normal((3, 900)):
        pieces = complement_pieces(part.complement(w, 0.5), linear_map(D), 2.0)
        system = choose_system(n, pieces) if system is None else system
        kinds.add(type(system))
        rhs = rng.standard_normal(n)
        x = system.solve(pieces, 0.1, rhs, 1e-14)
        assert curvature.apply(pieces, x) + 0.1 * x == pytest.approx(rhs, abs=1e-9)
    assert kinds == {SparseSystem if name == "groups" else CorrectedSystem}


def test_the_mean_curvature_of_an_operator_follows_from_its_row_norms():
    """The trace of ``D' W D`` by columns, with as many norms as rows: those of an operator are estimated."""
    M = np.array([[3.0, 0.0], [0.0, 3.0], [0.0, 6.0]])
    D = Transferred(linear_map(scipy.sparse.linalg.aslinearoperator(M)))
    assert D.row_norms.shape == (3,)
    assert float(np.sum(D.row_norms**2)) == pytest.approx(54.0, rel=0.5)
    weights = np.array([1.0, 2.0, 0.25])
    piece = weighted(D, weights)
    assert piece.mean == pytest.approx(float(weights @ D.row_norms**2) / 2.0, rel=1e-15)


def test_the_first_penalty_is_in_units_of_the_farthest_bound_where_zero_is_feasible() -> None:
    """A linear function has no curvature and the start no length: slope over length, in any units of x."""
    c = np.array([3.0, -4.0])
    for unit in (1.0, 1e3):
        box = lopro.constraints.Box(-unit * np.ones(2), 2.0 * unit * np.ones(2))
        problem = composite(lopro.Problem(lopro.objectives.Linear(c), box))
        found = mean_curvature(problem, PointWithImages.of(problem, np.zeros(2)))
        assert found == pytest.approx(5.0 / (2.0 * unit), rel=1e-15)
