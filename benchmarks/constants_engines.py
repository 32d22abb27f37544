"""Problems for `benchmarks.constants engines`: programs from approximate multipliers, and conic programs."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import scipy.sparse

from lopro.engines import AnswerStatus, QuadraticProgram, solve_by_piqp
from lopro.engines.active_set import solve_by_active_set
from lopro.engines.cone_bound import ConicData
from lopro.engines.cones import Nonnegative, PSDTriangle, SecondOrder, Zero, triangle
from lopro.engines.exponentials import Exponentials
from lopro.engines.proved_cones import solve_conic

#: Work of a program that the active set method does not solve: more than any solution takes.
_FAILED = 1000.0


def calls() -> Iterator[tuple[str, Callable[[], Any]]]:
    """Yield sequences of quadratic programs and conic programs, from fixed seeds."""
    for n, move in ((30, 0.02), (30, 0.2), (100, 0.02), (100, 0.2)):
        programs = list(_sequence(n, move))
        yield f"{n} x {2 * n}, moved by {move}", lambda programs=programs: _exchanges(programs)
    for seed in range(3):
        for name, make in (("norms", _norms), ("entropy", _entropy), ("trace", _trace)):
            data = make(np.random.default_rng([40, seed]))
            yield f"{name} {seed}", lambda data=data: solve_conic(data, 1e-6)


def _sequence(n: int, move: float) -> Iterator[tuple[QuadraticProgram, Any]]:
    """Yield programs with the multipliers of the one before."""
    rng = np.random.default_rng([7, n])
    B, A = rng.standard_normal((n, n)), rng.standard_normal((2 * n, n))
    P, q, h = B @ B.T / n + 0.1 * np.eye(n), rng.standard_normal(n), 0.5 * rng.random(2 * n) + 0.05
    rows = solve_by_piqp(QuadraticProgram.of(P, q, A, upper=h), 1e-10).rows
    for _ in range(10):
        q = q + move * np.linalg.norm(q) / np.sqrt(n) * rng.standard_normal(n)
        h = h * (1.0 + move * rng.standard_normal(2 * n))
        program = QuadraticProgram.of(P, q, A, upper=h)
        yield program, rows
        rows = solve_by_piqp(program, 1e-10).rows


def _exchanges(programs: list[tuple[QuadraticProgram, Any]]) -> float:
    work = 0.0
    for program, rows in programs:
        answer = solve_by_active_set(program, rows, np.zeros(len(program.q)))
        work += answer.iterations if answer.status is AnswerStatus.SOLVED else _FAILED
    return work


def _norms(rng: np.random.Generator) -> ConicData:
    """``min sum t_i`` over ``|B_i x - c_i| <= t_i`` and equations."""
    n, count, size = 20, 15, 4
    C = scipy.sparse.csr_array(rng.standard_normal((5, n)))
    blocks, b = [scipy.sparse.hstack([C, scipy.sparse.csr_array((5, count))])], [np.ones(5)]
    for i in range(count):
        top = scipy.sparse.csr_array(([-1.0], ([0], [n + i])), (1, n + count))
        B = scipy.sparse.csr_array(-rng.standard_normal((size - 1, n)))
        blocks += [top, scipy.sparse.hstack([B, scipy.sparse.csr_array((size - 1, count))])]
        b += [np.zeros(1), -rng.standard_normal(size - 1)]
    cones: list[Any] = [(Zero(5), 5)] + [(SecondOrder(size), size)] * count
    q = np.concatenate([np.zeros(n), np.ones(count)])
    P = scipy.sparse.csr_array((n + count, n + count))
    return ConicData(P, q, scipy.sparse.vstack(blocks, format="csr"), np.concatenate(b), cones)


def _entropy(rng: np.random.Generator) -> ConicData:
    """``min sum x log x`` over equations with a positive solution; t_i >= x_i log x_i."""
    n, m = 20, 6
    C, x = rng.standard_normal((m, n)), rng.random(n) + 0.1
    eye, none = scipy.sparse.eye_array(n), scipy.sparse.csr_array((n, n))
    # (-t, x, 1) is in the exponential cone: x exp(-t / x) <= 1.
    triples = scipy.sparse.vstack(
        [
            scipy.sparse.hstack([none, eye]),
            scipy.sparse.hstack([-eye, none]),
            0.0 * scipy.sparse.hstack([eye, eye]),
        ],
        format="csr",
    )
    order = np.arange(3 * n).reshape(3, n).T.ravel()
    sides = np.concatenate([np.zeros(2 * n), np.ones(n)])[order]
    A = scipy.sparse.vstack(
        [
            scipy.sparse.hstack([scipy.sparse.csr_array(C), scipy.sparse.csr_array((m, n))]),
            triples[order],
        ],
        format="csr",
    )
    q = np.concatenate([np.zeros(n), np.ones(n)])
    cones: list[Any] = [(Zero(m), m), (Exponentials(n), 3 * n)]
    return ConicData(
        scipy.sparse.csr_array((2 * n, 2 * n)), q, A, np.concatenate([C @ x, sides]), cones
    )


def _trace(rng: np.random.Generator) -> ConicData:
    """``min <C, X>`` over semidefinite X with diagonal 1 and some entries that are not negative."""
    order = 8
    i, j = triangle(order)
    rows = len(i)
    eye = scipy.sparse.eye_array(rows, format="csr")
    A = scipy.sparse.vstack([eye[i == j], -eye[: rows // 4], -eye], format="csr")
    b = np.concatenate([np.ones(order), np.zeros(rows // 4 + rows)])
    cones: list[Any] = [
        (Zero(order), order),
        (Nonnegative(rows // 4), rows // 4),
        (PSDTriangle(order), rows),
    ]
    return ConicData(scipy.sparse.csr_array((rows, rows)), rng.standard_normal(rows), A, b, cones)
