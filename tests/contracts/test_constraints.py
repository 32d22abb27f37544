"""The protocol of constraints, checked on the whole catalogue by sampling."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from support.catalogue import BOUNDED, CONSTRAINTS
from support.catalogue_objectives import LIBRARIES, NUMPY, Library
from support.constraint_case import ConstraintCase

from lopro.constraints import Intersection
from lopro.core.arrays import inner, is_single, namespace, norm, to_numpy
from lopro.functions import Ball, Source

every = pytest.mark.parametrize("case", CONSTRAINTS, ids=str)
SCALES = [1e-3, 1e-2, 0.1, 1.0, 10.0, 100.0, 1e3]


def samples(case: ConstraintCase, rng: np.random.Generator, each: int = 6) -> list[Any]:
    return [case.point(rng, scale) for scale in SCALES for _ in range(each)]


def size(*points: Any) -> float:
    return 1.0 + sum(norm(p) for p in points)


def steepness(case: ConstraintCase, x: Any) -> float:
    """The rounding error of c at x, in units of 1e-16."""
    c = case.numpy
    return size(x) * (1.0 + norm(c.subgradient(x))) + abs(c.value(x))


@every
def test_feasible_samples_are_feasible(case: ConstraintCase, rng: Any) -> None:
    c = case.numpy
    for _ in range(20):
        z = case.feasible(rng)
        assert c.value(z) <= 1e-12 * steepness(case, z)
        assert c.violation(z) <= case.allowed_violation(z)
    assert c.infeasibility() is None


@every
def test_convex_along_segments(case: ConstraintCase, rng: Any) -> None:
    c = case.numpy
    for x in samples(case, rng):
        y, t = case.point(rng, 1.0), float(rng.random())
        chord = t * c.value(x) + (1.0 - t) * c.value(y)
        assert c.value(t * x + (1.0 - t) * y) <= chord + 1e-12 * steepness(case, x)


@every
def test_subgradient_inequality(case: ConstraintCase, rng: Any) -> None:
    c = case.numpy
    for x in samples(case, rng):
        g = c.subgradient(x)
        for y in (case.point(rng, 1.0), case.feasible(rng), x + 1e-3 * (case.point(rng) - x)):
            below = c.value(x) + inner(g, y - x)
            slack = 1e-12 * (steepness(case, x) + steepness(case, y))
            assert c.value(y) >= below - slack


@every
def test_finite_differences(case: ConstraintCase, rng: Any) -> None:
    """At random points all functions here are differentiable, smooth or not."""
    c = case.numpy
    for _ in range(10):
        x = case.point(rng, 1.0)
        u = case.point(rng, 1.0) - x
        u, h = u / norm(u), 1e-6
        slope = (c.value(x + h * u) - c.value(x - h * u)) / (2.0 * h)
        assert slope == pytest.approx(inner(c.subgradient(x), u), abs=2e-8 * steepness(case, x))


@every
def test_regularity(case: ConstraintCase, rng: Any) -> None:
    """Eq. (3): rho dist <= c, at all scales, for points whose distance is not mere rounding."""
    c = case.numpy
    rho = c.regularity()
    if rho is None:
        unknown = {"ball-operator", "function-smooth", "intersection"}
        assert case.name in unknown or case.name.startswith(("semidefinite", "cone"))
        return
    assert rho.source in (Source.DERIVED, Source.GIVEN)
    checked = 0
    for x in samples(case, rng):
        distance = norm(x - c.project(x))
        if distance > 1e-7 * size(x):
            assert rho.value * distance <= c.value(x) * (1.0 + 1e-9) + 1e-13 * steepness(case, x)
            checked += 1
    assert checked >= 5


@every
def test_lipschitz(case: ConstraintCase, rng: Any) -> None:
    c = case.numpy
    centre = case.feasible(rng)
    for radius in SCALES:
        everywhere, there = c.lipschitz(), c.lipschitz(Ball(centre, radius))
        assert there is not None
        assert everywhere is None or there.value <= everywhere.value * (1.0 + 1e-12)
        for _ in range(5):
            x, y = (_shrunk(case.point(rng, radius) - centre, radius) + centre for _ in range(2))
            change = abs(c.value(x) - c.value(y))
            assert change <= there.value * norm(x - y) * (1.0 + 1e-9) + 1e-13 * steepness(case, x)


def _shrunk(u: Any, radius: float) -> Any:
    return u * min(1.0, radius / norm(u))


@every
def test_smoothness_and_infimum(case: ConstraintCase, rng: Any) -> None:
    c = case.numpy
    L, low = c.smoothness(), c.infimum()
    assert (L is None) or c.smooth
    for x in samples(case, rng, each=3):
        if low is not None:
            assert c.value(x) >= low.value - 1e-14 * steepness(case, x)
        if L is not None:
            y = x + 10.0 ** rng.uniform(-3, 1) * (case.point(rng, 1.0) - x)
            turn = norm(c.subgradient(x) - c.subgradient(y))
            assert turn <= L.value * norm(x - y) * (1.0 + 1e-9) + 1e-12 * size(x, y)


@every
def test_image_and_linearisation(case: ConstraintCase, rng: Any) -> None:
    """The two ways of calling agree, and the image is linear in the point."""
    c = case.numpy
    for x in samples(case, rng, each=2):
        y, t = case.point(rng, 1.0), float(rng.standard_normal())
        parts = c.image(x + t * (y - x))
        assert len(parts) == c.image_length
        for here, a, b in zip(parts, c.image(x), c.image(y), strict=True):
            assert norm(here - (a + t * (b - a))) <= 1e-12 * size(x, y) * size(here) * (1 + abs(t))
        value, gradient = c.linearize_at(c.image(x))
        assert value == pytest.approx(c.value(x), rel=1e-12, abs=1e-14)
        assert norm(gradient() - c.subgradient(x)) <= 1e-12 * steepness(case, x)


@every
def test_image_set(case: ConstraintCase, rng: Any) -> None:
    """The point is feasible if and only if its image is in Q; Q's support function is one."""
    c = case.numpy
    if not c.has_image_set:
        return
    for x in samples(case, rng, each=3):
        image = c.image(x)
        nearest = c.project_image(image)
        dual = tuple(m - q for m, q in zip(image, nearest, strict=True))
        gap = math.sqrt(sum(norm(u) ** 2 for u in dual))
        scale = sum(size(m) for m in image)
        if c.value(x) > 1e-9 * steepness(case, x):
            assert gap > 0.0
        if c.value(x) <= 0.0:
            assert gap <= 1e-13 * scale
        if gap <= 1e-9 * scale:
            continue
        attained = sum(inner(u, q) for u, q in zip(dual, nearest, strict=True))
        support = c.support_image(dual)
        assert support == pytest.approx(attained, abs=1e-11 * scale * gap)
        for _ in range(5):
            other = c.project_image(c.image(case.point(rng, 10.0)))
            reached = sum(inner(u, q) for u, q in zip(dual, other, strict=True))
            assert reached <= support + 1e-11 * gap * (scale + sum(size(q) for q in other))
        pulled = inner(c.pullback(dual), x)
        pushed = sum(inner(u, m) for u, m in zip(dual, image, strict=True))
        assert pulled == pytest.approx(pushed, abs=1e-11 * gap * scale * size(x))


@every
def test_normal_is_valid_for_feasible_points(case: ConstraintCase, rng: Any) -> None:
    c = case.numpy
    for x in samples(case, rng, each=2):
        weight = float(rng.exponential())
        n = c.valid_inequality(x, weight)
        for z in [case.feasible(rng) for _ in range(5)] + [case.boundary(rng)]:
            if z is not None:
                scale = steepness(case, x) * size(z) * (1.0 + weight)
                assert inner(n.direction, z) <= n.support + 1e-11 * scale
        if n.dual is not None:
            given = 1e-11 * steepness(case, x) * (1.0 + weight)
            shares = c.shares(n.dual) if isinstance(c, Intersection) else [(c, n.dual)]
            used = [(m, part) for m, part in shares if any(norm(v) > 0.0 for v in part)]
            assert norm(sum(m.pullback(part) for m, part in used) - n.direction) <= given
            support = sum(m.support_image(part) for m, part in used)
            assert abs(support - n.support) <= given * size(x)
            assert [v.shape for v in n.dual] == [v.shape for v in c.image(x)]


@every
def test_radius(case: ConstraintCase, rng: Any) -> None:
    R = case.numpy.radius()
    points = [case.feasible(rng) for _ in range(30)] + [case.boundary(rng) for _ in range(30)]
    if R is not None:
        assert max(norm(z) for z in points if z is not None) <= R.value
    assert (R is not None) == (case.name in BOUNDED), "see BOUNDED in tests/support/catalogue.py"


@every
def test_projection_keeps_feasible_points(case: ConstraintCase, rng: Any) -> None:
    c = case.numpy
    for z in [case.feasible(rng) for _ in range(5)] + [case.boundary(rng) for _ in range(5)]:
        if z is not None:
            assert norm(c.project(z) - z) <= 1e-10 * size(z)


@every
@pytest.mark.parametrize("library", LIBRARIES, ids=str)
def test_library_and_dtype_are_kept(case: ConstraintCase, library: Library, rng: Any) -> None:
    c, reference = case.build(library.of), case.numpy
    for scale in (0.1, 10.0):
        point = case.point(rng, scale)
        x = library.of(point)
        for result in (
            c.subgradient(x),
            c.project(x),
            *c.image(x),
            c.valid_inequality(x, 2.0).direction,
        ):
            assert namespace(result) is namespace(x)
            assert result.dtype == x.dtype
        assert isinstance(c.value(x), float)
        assert isinstance(c.violation(x), float)
        unit = 1e-5 if is_single(x) else 1e-11
        assert c.value(x) == pytest.approx(
            reference.value(point), abs=unit * steepness(case, point)
        )
        gap = norm(to_numpy(c.project(x)) - reference.project(point))
        assert gap <= 30.0 * unit * size(point) / (1e-2 if is_single(x) else 1e-4)
        if c.has_image_set:
            for part in (*c.project_image(c.image(x)), c.pullback(c.image(x))):
                assert namespace(part) is namespace(x)
                assert part.dtype == x.dtype


@every
def test_nothing_is_mutated_or_shared(case: ConstraintCase, rng: Any) -> None:
    handed_over: list[Any] = []

    def of(data: Any) -> Any:
        array = NUMPY.of(data)
        handed_over.append((array, array.copy()))
        return array

    c = case.build(of)
    for x in (case.feasible(rng), case.point(rng, 3.0)):
        before = x.copy()
        results = [c.subgradient(x), c.project(x), c.valid_inequality(x, 1.0).direction]
        c.value(x), c.violation(x), c.regularity(), c.radius(), c.lipschitz(Ball(x, 1.0))
        if c.has_image_set:
            results += [c.pullback(c.image(x)), *c.project_image(c.image(x))]
        assert (x == before).all()
        for result in results:
            assert not np.shares_memory(result, x)
            for array, _ in handed_over:
                assert not np.shares_memory(result, array)
            result[...] = 7.0
    for array, original in handed_over:
        assert (array == original).all()


@every
def test_repr_names_the_class(case: ConstraintCase) -> None:
    c = case.numpy
    assert type(c).__name__ in repr(c)
