"""The protocol of objectives, checked by sampling on those of `catalogue_objectives`."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import pytest
import scipy.optimize
from support.catalogue_objectives import ENTRIES, NUMPY, Entry

from lopro.core.arrays import inner, norm
from lopro.functions import Ball, Source
from lopro.objectives import Objective

SCALES = [1e-3, 1e-1, 1.0, 1e1, 1e3]
#: Distance of the second point of a pair from the first, relative to the scale.
REACHES = [1e-4, 1.0]


def entries_with(claim: Callable[[Entry, Objective], object]) -> pytest.MarkDecorator:
    """Run a test on the objectives that state the constant."""
    chosen = [e for e in ENTRIES if claim(e, e.build(NUMPY.of)) not in (None, False)]
    return pytest.mark.parametrize("entry", chosen, ids=str)


@pytest.fixture(params=ENTRIES, ids=str)
def entry(request: pytest.FixtureRequest) -> Entry:
    return request.param


@pytest.fixture
def f(entry: Entry) -> Objective:
    return entry.build(NUMPY.of)


@pytest.fixture
def rng(entry: Entry) -> np.random.Generator:
    return np.random.default_rng(ENTRIES.index(entry))


def pairs(entry: Entry, rng: np.random.Generator, count: int = 6):
    """Near and far pairs of points at every scale, and pairs with one end in the origin."""
    for scale in SCALES:
        for reach in REACHES:
            for _ in range(count):
                x = entry.point(rng, scale)
                yield x, x + entry.point(rng, scale * reach)
        yield entry.point(rng, scale), np.zeros_like(entry.point(rng))


def rounding(f: Objective, *points: np.ndarray) -> float:
    """The rounding error of an evaluation in double precision: values are sums of terms of this size."""
    sizes = [abs(f.value(x)) + norm(f.subgradient(x)) * norm(x) for x in points]
    return 1e-13 * (1.0 + sum(sizes))


def test_convexity(entry, f, rng):
    for x, y in pairs(entry, rng):
        t = rng.uniform()
        chord = t * f.value(x) + (1.0 - t) * f.value(y)
        assert f.value(t * x + (1.0 - t) * y) <= chord + rounding(f, x, y)


def test_subgradient_inequality(entry, f, rng):
    for x, y in pairs(entry, rng):
        for a, b in ((x, y), (y, x)):
            below = f.value(a) + inner(f.subgradient(a), b - a)
            assert f.value(b) >= below - rounding(f, a, b)


def test_slope_agrees_with_differences(entry, f, rng):
    # A random point is one where even the nonsmooth ones are differentiable.
    for _ in range(10):
        x, v = entry.point(rng), entry.point(rng)
        v = v / norm(v)
        h = 1e-5
        difference = (f.value(x + h * v) - f.value(x - h * v)) / (2.0 * h)
        g = f.subgradient(x)
        assert inner(g, v) == pytest.approx(difference, rel=1e-6, abs=1e-7 * (1.0 + norm(g)))


@entries_with(lambda e, f: f.lipschitz())
def test_global_lipschitz_constant(entry, f, rng):
    G = f.lipschitz()
    for x, y in pairs(entry, rng):
        assert abs(f.value(x) - f.value(y)) <= G.value * norm(x - y) + rounding(f, x, y)
        assert norm(f.subgradient(x)) <= G.value * (1.0 + 1e-12)


@entries_with(lambda e, f: f.lipschitz(Ball(np.ones(e.shape), 1.0)))
@pytest.mark.parametrize("radius", [1e-3, 1.0, 1e3])
def test_lipschitz_constant_on_a_ball(entry, f, rng, radius):
    center = entry.point(rng, 3.0)
    G = f.lipschitz(Ball(center, radius))
    for _ in range(40):
        x, y = (_in_ball(entry, rng, center, radius) for _ in range(2))
        assert abs(f.value(x) - f.value(y)) <= G.value * norm(x - y) + rounding(f, x, y)
        assert norm(f.subgradient(x)) <= G.value * (1.0 + 1e-9)


def _in_ball(entry, rng, center, radius):
    """A point of the ball, often on its boundary, where slopes are steepest."""
    direction = entry.point(rng)
    return center + min(1.0, rng.uniform(0.0, 2.0)) * radius * direction / norm(direction)


def test_lipschitz_on_an_unbounded_ball_is_the_global_constant_or_none(entry, f, rng):
    constant = f.lipschitz(Ball(entry.point(rng), math.inf))
    assert constant is None or math.isfinite(constant.value)


@entries_with(lambda e, f: f.smoothness())
def test_smoothness_constant(entry, f, rng):
    L = f.smoothness()
    assert f.smooth
    for x, y in pairs(entry, rng):
        gx, gy = f.subgradient(x), f.subgradient(y)
        slack = 1e-13 * (1.0 + norm(gx) + norm(gy) + L.value * (norm(x) + norm(y)))
        assert norm(gx - gy) <= L.value * norm(x - y) * (1.0 + 1e-9) + slack


@entries_with(lambda e, f: f.strong_convexity())
def test_strong_convexity_constant(entry, f, rng):
    mu = f.strong_convexity()
    assert mu.value > 0.0
    for x, y in pairs(entry, rng):
        gx, gy = f.subgradient(x), f.subgradient(y)
        growth = inner(gx - gy, x - y)
        slack = 1e-13 * (1.0 + norm(gx) + norm(gy)) * norm(x - y)
        assert growth >= mu.value * norm(x - y) ** 2 * (1.0 - 1e-9) - slack


@entries_with(lambda e, f: f.sublevel_radius(100.0))
def test_sublevel_radius(entry, f, rng):
    scattered = [entry.point(rng, scale) for scale in SCALES for _ in range(20)]
    # Distant points have high values and are easy to bound: a radius is most likely to fail at low values.
    for z in scattered + list(descent(f, entry.point(rng))):
        assert norm(z) <= f.sublevel_radius(f.value(z)).value * (1.0 + 1e-9)


def descent(f: Objective, x: np.ndarray, steps: int = 300):
    """The iterates of a crude descent."""
    for step in np.geomspace(1.0, 1e-6, steps):
        g = f.subgradient(x)
        x = x - step * g / max(norm(g), 1e-300)
        yield x


@entries_with(lambda e, f: f.infimum())
def test_infimum(entry, f, rng):
    low = f.infimum()
    for x in descent(f, entry.point(rng)):
        assert f.value(x) >= low.value - rounding(f, x)
    for x, y in pairs(entry, rng, count=2):
        assert min(f.value(x), f.value(y)) >= low.value - rounding(f, x, y)


def test_constants_name_their_source(f):
    found = [f.lipschitz(), f.smoothness(), f.strong_convexity(), f.infimum()]
    for constant in (c for c in found if c is not None):
        assert math.isfinite(constant.value)
        assert isinstance(constant.source, Source)
        assert constant.note


# The prox.


@entries_with(lambda e, f: f.proximable)
@pytest.mark.parametrize("step", [1e-3, 0.5, 30.0])
def test_prox_is_optimal_to_first_order(entry, f, rng, step):
    for scale in (1e-2, 1.0, 10.0):
        x = entry.point(rng, scale)
        u = f.prox(x, step)
        for _ in range(30):
            z = u + entry.point(rng, rng.choice([1e-4, 1e-1, 10.0]))
            # (x - u) / step is a subgradient at u; times step, for u is rounded relative to x.
            growth = step * (f.value(z) - f.value(u))
            slack = 1e-15 * (norm(x) + norm(u)) * norm(z - u) + step * rounding(f, z, u)
            assert growth >= inner(x - u, z - u) - slack


@entries_with(lambda e, f: f.proximable and e.separable)
def test_prox_agrees_with_a_search_in_every_coordinate(entry, f, rng):
    step, x = 0.8, entry.point(rng, 1.5)
    u = f.prox(x, step)
    for index in np.ndindex(*entry.shape):
        found = _search(f, x, index, step)
        assert abs(u[index] - found) <= 2e-6


def _search(f: Objective, x: np.ndarray, index: tuple[int, ...], step: float) -> complex:
    """Minimise over one entry by a derivative-free search, independent of the prox."""

    def objective(parts: np.ndarray) -> float:
        z = x.copy()
        z[index] = complex(*parts) if parts.size == 2 else float(parts[0])
        return f.value(z) + abs(z[index] - x[index]) ** 2 / (2.0 * step)

    start = [x[index].real, x[index].imag] if np.iscomplexobj(x) else [x[index]]
    options = {"xatol": 1e-9, "fatol": 1e-15, "maxiter": 4000}
    for _ in range(2):
        start = scipy.optimize.minimize(
            objective, np.array(start), method="Nelder-Mead", options=options
        ).x
    return complex(*start) if len(start) == 2 else float(start[0])


@entries_with(lambda e, f: f.proximable)
def test_prox_of_a_step_of_zero_is_the_point(entry, f, rng):
    x = entry.point(rng)
    np.testing.assert_allclose(f.prox(x, 0.0), x, rtol=1e-15)


# Minorants, splitting, images.


def test_minorant_is_below(entry, f, rng):
    mu = f.strong_convexity()
    curvature = 0.0 if mu is None else mu.value
    for scale in SCALES:
        x, target = entry.point(rng, scale), entry.point(rng, rng.choice([0.1, 1.0, 100.0]))
        alpha, g = f.minorant(x, target)
        for other in SCALES:
            for z in (entry.point(rng, other), x + entry.point(rng, other), 0.0 * x):
                below = alpha + inner(g, z) + 0.5 * curvature * norm(z - x) ** 2
                slack = 1e-12 * (1.0 + abs(alpha) + norm(g) * (norm(z) + norm(x)))
                assert f.value(z) >= below - slack


def steep_directions(v):
    """Points with small norms beside -<v, z>: entries, pairs, all signs, singular vectors."""
    for index in np.ndindex(*v.shape):
        z = np.zeros_like(v)
        z[index] = -v[index]
        yield z
    yield -np.sign(v)
    if v.ndim == 1:
        for first in range(0, len(v), 2):
            pair = np.zeros_like(v)
            pair[first : first + 2] = -v[first : first + 2]
            yield pair
    if v.ndim == 2:
        U, s, Vh = np.linalg.svd(v)
        yield -s[0] * np.outer(U[:, 0], Vh[0])


@entries_with(lambda e, f: f.scale_into_domain(np.ones(e.shape)))
def test_scaling_into_the_domain_is_valid_and_largest(entry, f, rng):
    at_zero = f.value(np.zeros_like(entry.point(rng)))
    for size in (1e-2, 1.0, 1e2):
        v = entry.point(rng, size)
        t = f.scale_into_domain(v)
        assert 0.0 <= t <= 1.0
        steepest = -1.0
        for z in steep_directions(v):
            assert f.value(z) + t * inner(v, z) >= at_zero - 1e-12 * (1.0 + norm(v) ** 2)
            steepest = max(steepest, at_zero - f.value(z) - 1.01 * t * inner(v, z))
        if 0.0 < t < 1.0:
            assert steepest > 0.0, "a larger scale would have been valid"


def test_a_subgradient_can_be_added_to_a_total_that_is_given_away(entry, f, rng):
    x, total = entry.point(rng), entry.point(rng)
    expected, x0 = total + f.subgradient(x), x.copy()
    np.testing.assert_allclose(f.add_subgradient(x, total), expected, rtol=1e-13, atol=1e-13)
    np.testing.assert_array_equal(x, x0)
    if f.fresh_slopes:
        assert f.subgradient(x) is not f.subgradient(x)


def test_split_adds_up(entry, f, rng):
    smooth, proximable = f.split()
    if smooth is None and proximable is None:
        assert not f.smooth
        assert not f.proximable
        return
    assert smooth is None or smooth.smooth
    assert proximable is None or proximable.proximable
    parts = [part for part in (smooth, proximable) if part is not None]
    for x, _ in pairs(entry, rng, count=1):
        assert sum(p.value(x) for p in parts) == pytest.approx(f.value(x), rel=1e-12, abs=1e-12)
        total = sum(p.subgradient(x) for p in parts)
        np.testing.assert_allclose(total, f.subgradient(x), rtol=1e-11, atol=1e-11)


def test_image_and_linearization_agree_with_value_and_subgradient(entry, f, rng):
    for x, _ in pairs(entry, rng, count=1):
        image = f.image(x)
        assert isinstance(image, tuple)
        assert len(image) == f.image_length
        value, subgradient = f.linearize_at(image)
        assert isinstance(value, float)
        assert isinstance(f.value(x), float)
        assert value == pytest.approx(f.value(x), rel=1e-14)
        np.testing.assert_allclose(subgradient(), f.subgradient(x), rtol=1e-14)


def test_image_is_linear(entry, f, rng):
    x, y = entry.point(rng), entry.point(rng)
    combined = f.image(2.0 * x - 3.0 * y)
    for z, of_x, of_y in zip(combined, f.image(x), f.image(y), strict=True):
        np.testing.assert_allclose(z, 2.0 * of_x - 3.0 * of_y, rtol=1e-12, atol=1e-12)


def test_shape_is_that_of_the_points(entry, f):
    assert f.shape in (None, entry.shape)
    assert f.shaped(entry.shape).shape == (None if _is_shapeless(f) else entry.shape)


def _is_shapeless(f: Objective) -> bool:
    return type(f).shaped is Objective.shaped and f.shape is None
