"""Planted programs from a generator: regular, feasibility, optimum 0, noise rows, empty, unbounded, free."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from fuzz.planted.program import Array, Program

__all__ = ["draw_program", "in_units", "transport"]

Rng = np.random.Generator

_WAYS = {
    "regular": 0.34,
    "feasibility": 0.12,
    "zero": 0.14,
    "noise": 0.12,
    "empty": 0.12,
    "unbounded": 0.06,
    "free": 0.1,
}


def draw_program(rng: Rng) -> Program:
    """Return a program of some way, in units that may differ by 24 decades."""
    way = str(rng.choice(list(_WAYS), p=list(_WAYS.values())))
    made = {"empty": _empty, "unbounded": _unbounded}.get(way)
    program = _optimal(rng, way) if made is None else made(rng)
    return in_units(rng, replace(program, way=way))


def _optimal(rng: Rng, way: str) -> Program:
    """Return a program with a solution: the slope is minus what multipliers of the right signs make."""
    n = int(rng.integers(1, 9))
    m = 0 if way == "free" else int(rng.integers(1, 9))
    z = rng.integers(-4, 5, n).astype(float) * (rng.random(n) < 0.7)
    z = 0.0 * z if way == "zero" else z
    A = _matrix(rng, m, n)
    lower, upper, y = _sides(rng, A @ z, way)
    low, high, w = _box(rng, z, way)
    P, slope = None, A.T @ y + w
    if way == "free" or (way != "feasibility" and rng.random() < 0.4):
        B = _matrix(rng, int(rng.integers(1, n + 2)), n)
        P = B.T @ B
        slope = slope + P @ z
    if way == "feasibility":
        slope = 0.0 * slope
    program = Program(-slope, A, lower, upper, low, high, z, P)
    if way == "noise":
        return _with_noise(rng, program)
    return _with_ball(rng, program) if way != "free" and rng.random() < 0.3 else program


def _matrix(rng: Rng, m: int, n: int) -> Array:
    A = rng.integers(-4, 5, (m, n)).astype(float) * (rng.random((m, n)) < 0.7)
    for row in A:
        if not row.any():
            row[rng.integers(0, n)] = 1.0
    return A


def _sides(rng: Rng, image: Array, way: str) -> tuple[Array, Array, Array]:
    """Return lower and upper sides and multipliers: equations, active rows, inactive rows."""
    m = len(image)
    kind = rng.integers(0, 5, m)  # equation, active above, active below, room, room on both sides
    room = rng.integers(1, 6, (2, m)).astype(float)
    upper = np.where(kind < 2, image, image + room[0])
    lower = np.where((kind == 0) | (kind == 2), image, image - room[1])
    upper = np.where((kind == 2) & (rng.random(m) < 0.6), np.inf, upper)
    lower = np.where(((kind == 1) | (kind == 3)) & (rng.random(m) < 0.6), -np.inf, lower)
    y = rng.integers(0, 4, m).astype(float)  # 0 at times: degenerate
    signs = np.where(kind == 0, rng.choice([-1.0, 1.0], m), np.where(kind == 1, 1.0, -1.0))
    return lower, upper, np.where(kind < 3, signs * y, 0.0)


def _box(rng: Rng, z: Array, way: str) -> tuple[Array, Array, Array]:
    n = len(z)
    if way == "free":
        return np.full(n, -np.inf), np.full(n, np.inf), np.zeros(n)
    kind = rng.integers(0, 4, n)  # none, active below, active above, room
    room = rng.integers(1, 6, n).astype(float)
    low = np.where(kind == 1, z, np.where(kind == 3, z - room, -np.inf))
    high = np.where(kind == 2, z, np.where((kind == 3) & (rng.random(n) < 0.5), z + room, np.inf))
    w = rng.integers(0, 4, n).astype(float)
    return low, high, np.where(kind == 1, -w, np.where(kind == 2, w, 0.0))


def _with_noise(rng: Rng, program: Program) -> Program:
    """Add rows whose coefficients are exactly 0 and whose sides are rounding of the other sides."""
    finite = [np.abs(s[np.isfinite(s)]).max(initial=0.0) for s in (program.lower, program.upper)]
    count, n = int(rng.integers(1, 4)), program.dim
    sides = -max(finite) * 2.0 ** -rng.integers(50, 62, count).astype(float)
    rows = np.zeros((count, n))
    return replace(
        program,
        A=np.vstack([program.A, rows]),
        lower=np.append(program.lower, np.full(count, -np.inf)),
        upper=np.append(program.upper, sides),
    )


def _with_ball(rng: Rng, program: Program) -> Program:
    """Add a ball, active (its normal is a Pythagorean triple) or inactive."""
    k, z = float(rng.integers(1, 4)), program.solution
    D = _matrix(rng, 2, program.dim)
    normal = np.array([3.0, 4.0])[:: rng.choice([-1, 1])] * rng.choice([-1.0, 1.0], 2)
    active = rng.random() < 0.6
    e, radius = D @ z - k * normal, k * (5.0 if active else 7.0)
    weight = float(rng.integers(1, 3)) * (active and program.q.any())
    return replace(program, q=program.q - weight * (D.T @ normal), D=D, e=e, radius=radius)


def _empty(rng: Rng) -> Program:
    """Return rows that contradict each other, and a direction along which all other rows are satisfied."""
    n = int(rng.integers(2, 7))
    d = rng.integers(-2, 3, n).astype(float)
    d[0] = 1.0
    A = _matrix(rng, int(rng.integers(2, 7)), n)
    A = A * np.where(A @ d > 0.0, -1.0, 1.0)[:, None]
    level = A[0] * (d @ d) - (A[0] @ d) * d  # orthogonal to the direction
    if not level.any():
        level[:2] = d[1], -1.0
    gap = float(rng.integers(1, 5))
    rows = np.vstack([A, level, -level])
    upper = np.concatenate([rng.integers(-3, 4, len(A)), [0.0, -gap]]).astype(float)
    q = rng.integers(-3, 4, n).astype(float)
    q = -d if q @ d >= 0.0 else q
    free, lower = np.full(n, np.inf), np.full(len(rows), -np.inf)
    return Program(q, rows, lower, upper, -free, free, np.zeros(n), empty=True)


def _unbounded(rng: Rng) -> Program:
    """Return rows around a point, and a direction along which all of them stay satisfied."""
    n = int(rng.integers(1, 7))
    d = rng.integers(-2, 3, n).astype(float)
    d[0] = 1.0
    A = _matrix(rng, int(rng.integers(1, 7)), n)
    A = A * np.where(A @ d > 0.0, -1.0, 1.0)[:, None]
    z = rng.integers(-3, 4, n).astype(float)
    q = rng.integers(-3, 4, n).astype(float)
    q = -d if q @ d >= 0.0 else q
    upper = A @ z + rng.integers(0, 4, len(A))
    free, lower = np.full(n, np.inf), np.full(len(A), -np.inf)
    return Program(q, A, lower, upper, -free, free, z, unbounded=True)


def in_units(rng: Rng, program: Program) -> Program:
    """Change units of the value, the ball, single rows and single columns, or of many."""

    def units(count: int) -> Array:
        share = float(rng.choice([1.0 / max(1, count), 0.5, 1.0]))
        return np.where(rng.random(count) < share, 2.0 ** rng.integers(-40, 41, count), 1.0)

    changes: dict[str, object] = {}
    if rng.random() < 0.4:
        changes["columns"] = units(program.dim)
    # Rows of noise are rounding beside the largest side: their units stay.
    if rng.random() < 0.4 and program.way != "noise":
        changes["rows"] = units(len(program.A))
    if rng.random() < 0.2:
        changes |= {"unit": float(2.0 ** rng.integers(-40, 41))}
    if rng.random() < 0.2:
        changes |= {"ball": float(2.0 ** rng.integers(-40, 41))}
    return replace(program, **changes)  # type: ignore[arg-type]


def transport(rng: Rng) -> Program:
    """Return a transport problem of up to 14,400 variables with a degenerate solution, planted."""
    k = int(rng.integers(30, 121))
    solution = np.zeros((k, k))
    for _ in range(int(rng.integers(1, 4))):
        solution[np.arange(k), rng.permutation(k)] += float(rng.integers(1, 4))
    u, v = rng.integers(-5, 6, (2, k)).astype(float)
    # Costs with many ties: entries without a share of the plan may be as cheap as those with one.
    cost = u[:, None] + v + rng.integers(0, 6, (k, k)) * (solution == 0.0)
    sums = np.concatenate([solution.sum(axis=1), solution.sum(axis=0)])
    A = np.vstack([np.kron(np.eye(k), np.ones(k)), np.kron(np.ones(k), np.eye(k))])
    free = np.full(k * k, np.inf)
    return Program(
        cost.ravel(), A, sums, sums, np.zeros(k * k), free, solution.ravel(), way="large"
    )
