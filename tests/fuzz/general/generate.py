"""Cases of `solve`, `minimize` and `project` from a seed. Frozen: see the docs before changing it."""

from __future__ import annotations

from typing import Any

import numpy as np

from fuzz.general import random_objectives as ro
from fuzz.general import random_sets as rs
from fuzz.general.balls import ResidualBall
from fuzz.general.case import MinimizeCase, SolveCase
from fuzz.general.matrix_sets import PSDCone, Spectrahedron
from fuzz.general.model import Model
from fuzz.general.more_objectives import Exponentials, Farthest, OffDiagonal, Sum
from fuzz.general.objectives import L1, Linear, Objective, SquaredDistance
from fuzz.general.precision import in_single
from fuzz.general.projection import ProjectCase
from fuzz.general.sets import Array, Box, Polyhedron, Set

__all__ = ["minimize_case", "project_case", "solve_case"]

Rng = np.random.Generator

_WAYS = {
    "regular": 72.0,
    "flat": 9.0,
    "point": 4.0,
    "thin": 5.0,
    "empty": 6.0,
    "unbounded": 4.0,
}
_METHODS = {
    "": 88.0,
    "lopro.MultiplierMethod()": 3.0,
    "lopro.LoPGD()": 3.0,
    "lopro.LoPNAG()": 3.0,
    "lopro.baselines.InteriorPoint()": 3.0,
}


def solve_case(seed: int) -> SolveCase:
    """A problem of vectors, or of matrices."""
    rng = np.random.default_rng([4, seed])
    model = _matrices(rng) if rng.random() < 0.15 else _vectors(rng, ro.any_objective)
    model = _in_units(rng, model)
    x0 = _start(rng, model) if rng.random() < 0.4 else None
    single = rng.random() < 0.08
    if single:
        model, x0 = in_single(model), None if x0 is None else _single(x0)
    return SolveCase(
        model,
        x0=x0,
        dtype="float32" if single else "float64",
        method=_pick(rng, _METHODS) or None,
        tol=float(rng.choice([1e-2, 1e-3])) if single else _tol(rng),
        options={"time_limit": float(rng.choice([2.0, 0.5, 0.1], p=[0.9, 0.07, 0.03]))},
    )


def minimize_case(seed: int) -> MinimizeCase:
    """Callables, with constraints of SciPy or of the library."""
    rng = np.random.default_rng([5, seed])
    model = _vectors(rng, ro.with_callables, known=True)
    jac = str(rng.choice(["callable", "true", "none"], p=[0.7, 0.15, 0.15]))
    if jac != "none":  # differences are taken in sane units only
        model = _in_units(rng, model)
    return MinimizeCase(
        model,
        x0=_start(rng, model),
        tol=_tol(rng) if jac != "none" else float(rng.choice([1e-2, 1e-3])),
        options={"time_limit": 2.0},
        jac=jac,
        smooth=not isinstance(_first(model.objective), (Farthest, L1)),
        scipy=bool(rng.random() < 0.7),
    )


def project_case(seed: int) -> ProjectCase:
    """A set, and a point far away, near, on it or inside."""
    rng = np.random.default_rng([6, seed])
    if rng.random() < 0.15:
        model = _matrices(rng)
    else:
        model = _vectors(rng, lambda rng, n: Linear(np.zeros(n)), project=True)
    model = _in_units(rng, model)
    x = _start(rng, model)
    if rng.random() < 0.08:
        return ProjectCase(in_single(model), _single(x), dtype="float32")
    return ProjectCase(model, x)


def _single(x: Array) -> Array:
    return x.astype(np.float32).astype(np.float64)


def _first(objective: Objective) -> Objective:
    return _first(objective.parts[0]) if isinstance(objective, Sum) else objective


def _pick(rng: Rng, shares: dict[str, float]) -> str:
    p = np.array(list(shares.values()))
    return list(shares)[rng.choice(len(p), p=p / p.sum())]


def _tol(rng: Rng) -> float | None:
    return None if rng.random() < 0.5 else float(rng.choice([1e-2, 1e-3, 1e-4, 1e-8, 1e-8]))


def _dimension(rng: Rng) -> int:
    way = rng.random()
    if way < 0.6:
        return int(rng.integers(1, 7))
    return int(rng.integers(7, 21)) if way < 0.93 else int(rng.integers(21, 71))


def _vectors(rng: Rng, draw: Any, project: bool = False, known: bool = False) -> Model:
    """Draw a problem; ``known``: only the set bounds the solution."""
    n = _dimension(rng)
    way = _pick(rng, _WAYS)
    if way == "unbounded":
        way = "regular" if project else way
    objective: Objective = draw(rng, n)
    if way == "unbounded":
        return _falling(rng, n)
    if way in ("flat", "point", "thin"):
        p = rng.integers(-4, 5, n).astype(float)
        maker = {"flat": rs.flat_set, "point": rs.point_set, "thin": rs.thin_set}[way]
        members: tuple[Set, ...] = (maker(rng, p),)
        if isinstance(members[0], ResidualBall) and (known or not ro.coercive(objective)):
            members = (*members, Box(p - 3.0, p + 3.0))  # equations alone bound nothing
    else:
        p = rng.standard_normal(n)
        p = np.abs(p) + 0.05 if rng.random() < 0.4 else p
        if way == "empty":
            return Model(objective, rs.empty_pair(rng, p), (n,), empty=True)
        free = project or (not known and ro.coercive(objective))
        members = _regular(rng, p, free, known)
    if way != "regular" and rng.random() < 0.3:
        members = (*members, rs.bounded_set(rng, p))
    return Model(objective, members, (n,), inside=p)


def _regular(rng: Rng, p: Array, free: bool, known: bool) -> tuple[Set, ...]:
    """Return one to three sets; the first is mostly bounded, less often with a coercive objective."""
    count = int(rng.choice([1, 2, 3], p=[0.6, 0.3, 0.1]))
    open_ended = rng.random() < (0.4 if free else 0.03)
    first = rs.unbounded_set(rng, p) if open_ended else rs.bounded_set(rng, p, balls=not known)
    rest = tuple(
        rs.unbounded_set(rng, p) if rng.random() < 0.5 else rs.bounded_set(rng, p)
        for _ in range(count - 1)
    )
    return (first, *rest)


def _falling(rng: Rng, n: int) -> Model:
    """A linear objective that falls along a ray of the set."""
    p, ray = rng.integers(-3, 4, n).astype(float), rng.integers(-2, 3, n).astype(float)
    ray[rng.integers(0, n)] = 1.0
    C = rng.integers(-3, 4, (int(rng.integers(1, n + 3)), n)).astype(float)
    C *= np.where(C @ ray > 0, -1.0, 1.0)[:, None]
    b = C @ p + rng.integers(1, 5, len(C)).astype(float)
    a = rng.standard_normal(n)
    a -= ray * ((a @ ray + rng.uniform(0.1, 2.0)) / (ray @ ray))
    if rng.random() < 0.3:
        lower = np.where(ray < 0, -np.inf, p - 1.0)
        upper = np.where(ray > 0, np.inf, p + 1.0)
        return Model(Linear(a), (Box(lower, upper),), (n,), inside=p, ray=ray)
    cone = Polyhedron(C, b, np.zeros((0, n)), np.zeros(0))
    return Model(Linear(a), (cone,), (n,), inside=p, ray=ray)


def _matrices(rng: Rng) -> Model:
    d = int(rng.integers(1, 8))
    Z = rng.standard_normal((d, d)) * 10.0 ** rng.uniform(-1.0, 1.0)
    Z = 0.5 * (Z + Z.T)
    away: Objective = SquaredDistance(Z)
    if rng.random() < 0.4:
        away = Sum((away, OffDiagonal(d, float(rng.uniform(0.01, 1.0)))), (1.0, 1.0))
    if rng.random() < 0.5:
        forms = ["", "", "lc.NegativeSum()", "lc.Distance()", "lc.KyFan(1)"]
        return Model(away, (PSDCone(d, str(rng.choice(forms))),), (d, d), inside=np.eye(d))
    trace, equality = float(rng.uniform(0.3, 5.0)), bool(rng.random() < 0.5)
    objective = Linear(Z) if rng.random() < 0.5 else away
    inside = np.eye(d) * (trace / d if equality else 0.5 * trace / d)
    return Model(objective, (Spectrahedron(d, trace, equality),), (d, d), inside=inside)


def _in_units(rng: Rng, model: Model) -> Model:
    """Change the units of points and of values, now and then; powers of two, so nothing is rounded."""
    if rng.random() < 0.65:
        return model
    s, c = (float(2.0**k) for k in rng.integers(-40, 41, 2))
    objective = model.objective.stretched(s)
    if rng.random() < 0.5:
        objective = Sum((objective,), (c,))

    def stretch(x: Any) -> Any:
        return None if x is None else x * s

    return model.changed(
        objective=objective,
        members=tuple(m.stretched(s) for m in model.members),
        unit=s,
        inside=stretch(model.inside),
        ray=stretch(model.ray),
    )


def _start(rng: Rng, model: Model) -> Array:
    way = rng.integers(0, 5)
    if isinstance(_first(model.objective), Exponentials):
        way = rng.integers(0, 2)  # elsewhere they may well overflow
    size = model.unit * 10.0 ** float(rng.choice([0.0, 0.0, 1.0, 4.0]))
    x: Array = size * rng.standard_normal(model.shape)
    if way == 0:
        x = np.zeros(model.shape)
    elif way == 1:
        x = x if model.inside is None else model.inside.copy()
    return np.asarray(0.5 * (x + x.T)) if model.matrices else x
