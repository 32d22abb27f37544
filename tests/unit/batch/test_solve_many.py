"""`lopro.solve_many`: the answers of `lopro.solve`, in order, each with a bound that holds."""

from __future__ import annotations

import functools
from typing import Any

import array_api_strict
import numpy as np
import pytest

import lopro
import lopro.constraints as lc
import lopro.objectives as lo
from lopro.batch import QuadraticPrograms
from lopro.batch.results import METHOD
from lopro.core.arrays import to_numpy

N, M = 5, 8


def numbers(seed: int) -> Any:
    return np.random.default_rng([30, seed])


def quadratic(seed: int, rank: int = N) -> lo.Quadratic:
    B = numbers(seed).standard_normal((rank, N))
    return lo.Quadratic(B.T @ B, numbers(seed + 1).standard_normal(N))


def rows(seed: int) -> lc.Polyhedron:
    C = numbers(seed).standard_normal((M, N))
    return lc.Polyhedron(C, C @ numbers(seed + 1).standard_normal(N) + 0.5)


def box(seed: int) -> lc.Polyhedron:
    middle = numbers(seed).standard_normal(N)
    return lc.Polyhedron.box(middle - 1.0, middle + 1.0)


def equations(seed: int) -> lc.Affine:
    C = numbers(seed).standard_normal((M, N))
    side = C @ numbers(seed + 1).standard_normal(N)
    upper = side + 1.0
    upper[:2] = side[:2]
    lower = side - 0.5
    lower[:2], lower[5] = side[:2], -np.inf
    return lc.Affine(C, lower, upper)


def least_squares(seed: int, m: int = 9) -> lo.LeastSquares:
    rng = numbers(seed)
    return lo.LeastSquares(rng.standard_normal((m, N)), rng.standard_normal(m))


KINDS: dict[str, Any] = {
    "quadratic over rows": lambda k: lopro.Problem(quadratic(k), rows(k)),
    "quadratic over a box": lambda k: lopro.Problem(quadratic(k), box(k)),
    "quadratic, nonnegative": lambda k: lopro.Problem(
        quadratic(k), lc.Polyhedron.box(np.zeros(N), np.full(N, np.inf))
    ),
    "quadratic over equations": lambda k: lopro.Problem(quadratic(k), equations(k)),
    "quadratic alone": lambda k: lopro.Problem(quadratic(k)),
    "half a quadratic of rank 2 over a box": lambda k: lopro.Problem(0.5 * quadratic(k, 2), box(k)),
    "least squares over rows": lambda k: lopro.Problem(least_squares(k), rows(k)),
    "wide least squares over a box": lambda k: lopro.Problem(least_squares(k, 3), box(k)),
    "ridge over rows and a box": lambda k: lopro.Problem(
        least_squares(k, 3) + 0.7 * lo.SquaredDistance(numbers(k).standard_normal(N)),
        lc.Intersection(box(k), lc.Polyhedron(np.ones((1, N)), np.array([1.0]))),
    ),
    "distance from equations": lambda k: lopro.Problem(
        lo.SquaredDistance(numbers(k).standard_normal(N)), equations(k)
    ),
    "linear over a box": lambda k: lopro.Problem(lo.Linear(numbers(k).standard_normal(N)), box(k)),
    "linear over rows": lambda k: lopro.Problem(
        lo.Linear(-rows(k).C.matrix.T @ numbers(k).random(M)), rows(k)
    ),
    "a square that vanishes": lambda k: lopro.Problem(
        lo.LeastSquares(np.eye(N), np.zeros(N)), lc.Polyhedron.box(-np.ones(N), np.ones(N))
    ),
}


@pytest.mark.parametrize("kind", KINDS)
def test_a_batch_has_the_answers_of_solve(kind: str) -> None:
    problems = [KINDS[kind](10 * k) for k in range(12)]
    for problem, result in zip(problems, lopro.solve_many(problems), strict=True):
        alone = lopro.solve(problem, tol=1e-9)
        assert result.method == METHOD
        assert result.success
        certificate = result.certificate
        size = max(1e-8, problem.objective.magnitude(alone.x, alone.fun))
        assert certificate.lower_bound <= alone.fun + 1e-9 * size
        assert result.fun == pytest.approx(alone.fun, abs=2e-6 * size)
        assert certificate.gap >= result.fun - certificate.lower_bound
        assert result.fun == pytest.approx(problem.objective.value(result.x), abs=1e-13 * size)
        assert problem.constraint.violation(result.x) <= 1e-9
        assert certificate.violation <= 1e-9


@pytest.mark.parametrize("kind", KINDS)
def test_multipliers_are_those_of_the_user(kind: str) -> None:
    """They satisfy ``grad f + sum M'v = 0``, set by set, and `lopro.certify` accepts them."""
    problem = KINDS[kind](7)
    (result,) = lopro.solve_many([problem])
    slope = problem.objective.subgradient(result.x)
    terms = problem.constraint.terms
    assert result.multipliers is not None and len(result.multipliers) == len(terms)
    for term, v in zip(terms, result.multipliers, strict=True):
        slope = slope + (v if term.map is None else term.map.adjoint(v))
    size = 1.0 + max((float(np.abs(v).max()) for v in result.multipliers), default=0.0)
    assert np.abs(slope).max() <= 1e-3 * size


def test_a_mixed_list_keeps_its_order() -> None:
    kinds = [KINDS[name] for name in ("quadratic over rows", "linear over a box")]
    problems = [kinds[k % 2](k) for k in range(6)]
    problems.insert(2, lopro.Problem(lo.L1Norm(), lc.ResidualBall(np.eye(N), np.ones(N), 0.5)))
    results = lopro.solve_many(problems)
    assert results.success.all()
    assert [r.method == METHOD for r in results] == [True, True, False, True, True, True, True]
    assert results.fun == pytest.approx([lopro.solve(p).fun for p in problems], rel=4e-6)
    assert repr(results) == "Results(7 problems, 7 certified)"
    assert [r.fun for r in results[1:3]] == [results[1].fun, results[2].fun]


def test_problems_without_a_solution_are_passed_to_solve() -> None:
    wall = lc.Affine(np.eye(N)[:1], 1.0, 2.0)
    empty = lopro.Problem(quadratic(1), lc.Intersection(wall, lc.Affine(np.eye(N)[:1], 3.0, 4.0)))
    free = lopro.Problem(lo.Linear(np.ones(N)), wall)
    results = lopro.solve_many([empty, free, empty])
    assert [r.status.name for r in results] == ["INFEASIBLE", "UNBOUNDED", "INFEASIBLE"]


UNITS = [1e-12, 1e-3, 1e6, 1e12]


@pytest.mark.parametrize("unit", UNITS)
@pytest.mark.parametrize("what", ["row", "column", "objective", "x"])
def test_units_do_not_matter(unit: float, what: str) -> None:
    problems, plain = [], [KINDS["quadratic over rows"](k) for k in range(8)]
    for problem in plain:
        P, q = problem.objective.P.matrix.copy(), problem.objective.q.copy()
        C, b = problem.constraint.C.matrix.copy(), problem.constraint.b.copy()
        if what == "row":
            C[2], b[2] = unit * C[2], unit * b[2]
        columns = np.ones(N)
        columns[1 if what == "column" else slice(None)] = unit if what in ("column", "x") else 1.0
        factor = unit if what == "objective" else 1.0
        P, q, C = factor * columns[:, None] * P * columns, factor * columns * q, C * columns
        problems.append(lopro.Problem(lo.Quadratic((P + P.T) / 2.0, q), lc.Polyhedron(C, b)))
    results, factor = lopro.solve_many(problems), unit if what == "objective" else 1.0
    assert [r.method for r in results if r.success] == [METHOD] * 8
    assert results.fun / factor == pytest.approx(lopro.solve_many(plain).fun, rel=4e-6)


def strict(data: Any) -> Any:
    return array_api_strict.asarray(data, device=array_api_strict.Device("device1"))


def torch(data: Any, dtype: Any = np.float64) -> Any:
    return pytest.importorskip("torch").asarray(np.asarray(data, dtype=dtype))


def jax(data: Any) -> Any:
    library = pytest.importorskip("jax")
    library.config.update("jax_enable_x64", True)
    return library.numpy.asarray(data)


LIBRARIES: dict[str, Any] = {
    "numpy": np.asarray, "single": functools.partial(np.asarray, dtype=np.float32),
    "strict": strict, "torch": torch, "torch-single": functools.partial(torch, dtype=np.float32),
    "jax": jax,
}  # fmt: skip


@pytest.mark.parametrize("library", LIBRARIES)
def test_every_library_gives_the_answer_of_numpy_on_the_device_of_the_data(library: str) -> None:
    of = LIBRARIES[library]
    A, b = numbers(1).standard_normal((6, 9, N)), numbers(2).standard_normal((6, 9))
    C, h = numbers(3).standard_normal((6, M, N)), numbers(4).random((6, M))

    def make_problems(convert: Any) -> list[lopro.Problem]:
        sets = [
            lc.Intersection(
                lc.Affine(convert(C[k]), -h[k], h[k]),
                lc.Polyhedron.box(convert(np.full(N, -0.4)), convert(np.ones(N))),
            )
            for k in range(6)
        ]
        fs = [lo.LeastSquares(convert(A[k]), convert(b[k])) for k in range(6)]
        return [lopro.Problem(f, c) for f, c in zip(fs, sets, strict=True)]

    results, expected, like = (
        lopro.solve_many(make_problems(of)),
        lopro.solve_many(make_problems(np.asarray)),
        of(b),
    )
    single = library.endswith("single")
    assert results.success.all()
    assert {r.method for r in results} == {METHOD}
    assert results.fun == pytest.approx(expected.fun, rel=1e-5 if single else 1e-11)
    for result in results:
        assert type(result.x) is type(like)
        assert (result.x.dtype, result.x.device) == (like.dtype, like.device)
        assert [type(v) for v in result.multipliers or ()] == [type(like)] * 2
    assert results.x.dtype == like.dtype
    assert to_numpy(results.x).shape == (6, N)


@pytest.mark.parametrize("library", ["numpy", "torch", "jax", "strict"])
def test_stacked_programs(library: str) -> None:
    of = LIBRARIES[library]
    problems = [KINDS["quadratic over rows"](k) for k in range(5)]
    P, q = (np.stack([getattr(p.objective, k) for p in problems]) for k in ("q", "q"))
    P = np.stack([p.objective.P.matrix for p in problems])
    C = np.stack([p.constraint.C.matrix for p in problems])
    b = np.stack([p.constraint.b for p in problems])
    results = lopro.solve_many(QuadraticPrograms(of(q), of(P), of(C), upper=of(b)))
    expected = lopro.solve_many(problems)
    assert results.success.all()
    assert to_numpy(results.x) == pytest.approx(expected.x, rel=1e-9)
    assert to_numpy(results[2].multipliers[0]) == pytest.approx(expected[2].multipliers[0])


def test_stacked_programs_that_fail_are_passed_to_solve() -> None:
    least, most = np.array([[0.0], [-np.inf]]), np.array([[1.0], [np.inf]])
    results = lopro.solve_many(QuadraticPrograms(np.ones((2, 1)), least=least, most=most))
    assert [r.status.name for r in results] == ["CONVERGED", "UNBOUNDED"]


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"P": np.array([[[-1.0]]])}, "P must be positive semidefinite"),
        ({"P": np.ones((2, 1, 1))}, r"P must have the shape \(1, 1, 1\)"),
        ({"A": np.ones((1, 2, 1))}, "A must be given together with"),
        ({"least": np.ones((1, 1)), "most": np.zeros((1, 1))}, "least must not exceed most"),
        ({"P": np.full((1, 1, 1), np.nan)}, "P must be finite"),
    ],
)
def test_wrong_stacks_raise_errors(wrong: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        QuadraticPrograms(np.ones((1, 1)), **wrong)


def test_other_arguments_are_checked() -> None:
    problem = KINDS["quadratic alone"](0)
    with pytest.raises(TypeError, match=r"problems\[1\] must be a lopro.Problem"):
        lopro.solve_many([problem, 3])  # type: ignore[list-item]
    with pytest.raises(TypeError, match=r"for one problem call lopro\.solve"):
        lopro.solve_many(problem)  # type: ignore[arg-type]
    assert len(lopro.solve_many([])) == 0


def test_options_are_those_of_solve() -> None:
    problems = [KINDS["quadratic over rows"](k) for k in range(3)]
    seen = []
    results = lopro.solve_many(problems, callback=seen.append)
    assert results.success.all() and len(seen) >= 3
    assert METHOD not in {r.method for r in results}
    short = lopro.solve_many(problems, max_iter=2)
    assert [(r.status.name, r.iterations) for r in short] == [("MAX_ITER", 2)] * 3
    tight = lopro.solve_many(problems, tol=1e-9)
    assert tight.success.all()
    assert all(r.certificate.relative_gap <= 1e-9 for r in tight)
    given = lopro.solve_many(
        [lopro.Problem(p.objective, p.constraint, gap_scale=1e6) for p in problems]
    )
    assert {r.method for r in given} == {METHOD}
    unit = np.maximum(1e6, np.abs(given.fun))
    assert [r.certificate.relative_gap for r in given] == pytest.approx(list(given.gap / unit))


def test_the_time_limit_is_for_all_problems_together() -> None:
    from lopro.core.deadline import using_clock

    now = [0.0]

    def clock() -> float:
        now[0] += 1.0
        return now[0]

    problems = [KINDS["quadratic over rows"](k) for k in range(4)]
    problems.append(lopro.Problem(lo.L1Norm(), lc.ResidualBall(np.eye(N), np.ones(N), 0.5)))
    with using_clock(clock):
        results = lopro.solve_many(problems, time_limit=4.0)
    assert {r.status.name for r in results} == {"TIME_LIMIT"}
    for problem, result in zip(problems[:4], results, strict=False):
        assert result.certificate.lower_bound <= lopro.solve(problem).fun + 1e-9


def test_data_are_neither_changed_nor_aliased() -> None:
    problem = KINDS["quadratic over equations"](3)
    P, C = problem.objective.P.matrix.copy(), problem.constraint.M.matrix.copy()
    first, second = lopro.solve_many([problem, problem])
    first.x[:] = 0.0
    assert (problem.objective.P.matrix == P).all() and (problem.constraint.M.matrix == C).all()
    assert np.abs(second.x).max() > 0.0
