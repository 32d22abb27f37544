"""Projections for `benchmarks.constants`: `lopro.projections` and the sets that use it.

The work of a projection is the number of calls of functions of the library that it makes, which does not
depend on the machine. A result that is outside the set, or farther from the point than the best known one,
counts as not solved.
"""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import scipy.sparse
from scipy.sparse.linalg import aslinearoperator

import lopro.constraints as lc
from lopro.constraints.polyhedron import Box
from lopro.errors import InfeasibleError
from lopro.projections.psd import smallest_eigenpairs
from lopro.projections.tracking import EigenpairTracker

__all__ = ["calls"]

#: The distances of the first run, in which no constant is changed.
_DISTANCES: dict[str, float] = {}


def calls() -> Iterator[tuple[str, Callable[[], float]]]:
    """Yield projections on sets of all kinds as calls that return their work."""
    for name, (set_, points) in _sets().items():
        yield name, functools.partial(_counted, functools.partial(_projected, name, set_, points))
    yield "eigenpairs by Lanczos", functools.partial(_counted, _lanczos)
    yield "eigenpairs followed", functools.partial(_counted, _followed)


def _sets() -> dict[str, tuple[Callable[[], Any], Any]]:
    """Return for each name a function that makes a set, and the points to project, one after the other."""
    rng = np.random.default_rng(0)
    C, x = rng.standard_normal((60, 12)), 4.0 * rng.standard_normal((1, 12))
    path = x + 0.1 * rng.standard_normal((6, 12)).cumsum(axis=0)
    b = np.abs(rng.standard_normal(60))
    twice = np.vstack([C, C[:20] * (1.0 + 1e-13), C[:20] + 1e-8 * rng.standard_normal((20, 12))])
    wide = rng.standard_normal((20, 60))
    sparse = scipy.sparse.random_array((700, 900), density=0.01, rng=rng, format="csr")
    bent = wide * np.geomspace(1.0, 1e-6, 20)[:, None]
    y, z = rng.standard_normal(20), 3.0 * rng.standard_normal((2, 60))
    far, apart = np.vstack([C, -C[:1]]), np.concatenate([b, [-b[0] - 1.0]])
    quartic = functools.partial(
        lc.FunctionConstraint,
        lambda v: float((v**4).sum()) - 1.0,
        lambda v: 4.0 * v**3,
        smooth=True,
    )
    rough = functools.partial(
        lc.FunctionConstraint, lambda v: float(np.abs(C @ v).max()) - 1.0,
        lambda v: np.sign(C[i := int(np.abs(C @ v).argmax())] @ v) * C[i],
    )  # fmt: skip
    ball = functools.partial(lc.ResidualBall, np.eye(12), np.zeros(12), 1.0)
    cone = functools.partial(
        lc.SecondOrderCone, C[:8], rng.standard_normal(8), 0.3 * rng.standard_normal(12), 3.0
    )
    return {
        "rows": (lambda: lc.Polyhedron(C, b), x),
        "rows of a sequence": (lambda: lc.Polyhedron(C, b), path),
        "rows nearly twice": (lambda: lc.Polyhedron(twice, np.concatenate([b, b[:20], b[:20]])), x),
        "rows, empty": (lambda: lc.Polyhedron(far, apart), x),
        "ball": (lambda: lc.ResidualBall(wide, y, 1.0), z),
        "ball, ill-conditioned": (lambda: lc.ResidualBall(bent, bent @ z[0] / 9.0, 1e-4), z),
        "ball, sparse": (lambda: lc.ResidualBall(sparse, np.ones(700), 20.0), np.ones((1, 900))),
        "ball of an operator": (lambda: lc.ResidualBall(aslinearoperator(wide), y, 1.0), z),
        "ball, single precision": (
            lambda: lc.ResidualBall(wide.astype(np.float32), y.astype(np.float32), 0.5),
            z.astype(np.float32),
        ),
        "equations": (lambda: lc.ResidualBall(bent, bent @ z[0], 0.0), z[1:]),
        "ball and signs, empty": (
            lambda: lc.Intersection(
                lc.ResidualBall(np.eye(12), -np.ones(12), 1.0), Box(np.zeros(12), np.full(12, np.inf))
            ), x,
        ),
        "cone": (cone, path),
        "smooth function": (lambda: quartic(), path),
        "function with kinks": (lambda: rough(), x),
        "ball and rows": (lambda: lc.Intersection(ball(), lc.Polyhedron(C, b)), path[:3]),
        "ball and function": (lambda: lc.Intersection(ball(), rough()), x),
        "ball and cone": (lambda: lc.Intersection(ball(), cone()), x),
        "simplex and ball": (
            lambda: lc.Intersection(lc.Simplex(12), lc.ResidualBall(C[:6], np.zeros(6), 0.5)), x,
        ),
    }  # fmt: skip


def _projected(name: str, make: Callable[[], Any], points: Any) -> None:
    """Project points one after the other; raise where a result is outside the set or not the nearest."""
    set_ = make()
    project, distance = set_.projector(), 0.0
    try:
        for x in points:
            z = project(x)
            if set_.violation(z) > 1e-8:
                raise AssertionError(f"{name}: outside")
            distance += float(np.linalg.norm(z.astype(np.float64) - x))
    except InfeasibleError:
        distance = np.inf
    best = _DISTANCES.setdefault(name, distance)
    if not (distance == best or abs(distance - best) <= 1e-6 * best):
        raise AssertionError(f"{name}: not the nearest point")


def _lanczos() -> None:
    X = np.random.default_rng(1).standard_normal((260, 260))
    smallest_eigenpairs(X + X.T, 2)


def _followed() -> None:
    rng = np.random.default_rng(2)
    X, tracker = rng.standard_normal((120, 120)), EigenpairTracker(1, 0.1)
    for _ in range(10):
        X = X + 0.02 * rng.standard_normal((120, 120))
        tracker.smallest(X + X.T)


def _counted(run: Callable[[], None]) -> float:
    """Return the number of calls of functions of the library."""
    calls = 0

    def count(frame: Any, event: str, argument: Any) -> None:
        nonlocal calls
        calls += event == "call" and "lopro" in frame.f_code.co_filename

    sys.setprofile(count)
    try:
        run()
    finally:
        sys.setprofile(None)
    return float(calls)
