"""The judge of planted problems accepts what is right and rejects forgeries of every kind."""

from __future__ import annotations

import signal
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from fuzz.judge.claims import Claims, Outcome
from fuzz.judge.points import Known
from fuzz.judge.verdict import Class
from fuzz.kinds import make
from fuzz.machine.attempt import attempt
from fuzz.machine.case import decide
from fuzz.planted.case import CvxpyCase, ProgramCase
from fuzz.planted.entries import EntriesCase

PLANTED = ("program", "composite", "regression", "correlation")


def known_of(case: Any) -> Known:
    """Return the known properties that the judge of a case has, without other points."""
    if case.kind == "program":
        found: Known = case.program.known()
    elif case.kind == "regression":
        found = case.sample.known([])
    elif case.kind == "composite":
        found = case.known()
    else:
        typical = 0.5 * float(np.sum(case.W * case.G**2))
        shape = case.G.shape
        found = Known(case._value, case._excess, case._value, [case.solution], typical, shape)
    return found


def right(case: Any, known: Known) -> Claims:
    """Return the claims of a perfect solver."""
    x = np.array(known.points[0], dtype=float)
    fun = known.value(x)
    return Claims("CONVERGED", True, x, fun, fun, 0.0, 0.0, 0.0)


def labels(case: Any, *claims: Claims) -> str:
    verdict = decide(case, Outcome(claims))
    assert verdict.kind in (Class.WRONG, Class.CERTIFIED), verdict
    return verdict.label


@pytest.mark.parametrize("kind", PLANTED)
def test_forgeries_are_found(kind: str) -> None:
    seen = set()
    for seed in range(40):
        case = make(kind, seed)
        known = known_of(case)
        if not known.points or known.unbounded or getattr(case, "numbers", ()):
            continue
        good = right(case, known)
        size = known.size(good.x) + known.typical
        assert decide(case, Outcome((good,))).kind is Class.CERTIFIED
        high = replace(good, success=False, status="STALLED", lower_bound=good.fun + 1e-9 * size)
        if size > 0.0:
            assert labels(case, high) == "bound above optimum"
            off = good.fun - 1e-9 * size
            assert labels(case, replace(good, fun=off, lower_bound=off)) == "value misstated"
        assert labels(case, replace(good, status="INFEASIBLE", success=False)) == "false INFEASIBLE"
        assert labels(case, replace(good, status="UNBOUNDED", success=False)) == "false UNBOUNDED"
        for far in (good.x + np.abs(good.x) + 1.0, -good.x - 1.0):
            fun = known.value(far)
            bound = min(fun, good.fun)  # the gap is stated, and claimed to be small
            moved = replace(good, x=far, fun=fun, lower_bound=bound, gap=fun - bound)
            worse = fun > good.fun + 0.1 * size or known.excess(far) > 1e-6
            if np.isfinite(fun) and worse:
                seen.add(labels(case, moved))
    assert seen == {"infeasible success"} | ({"not within tol"} if kind != "correlation" else set())


def test_a_bound_is_compared_with_points_where_it_is_claimed() -> None:
    case = make("program", 0)
    good = right(case, known_of(case))
    x = good.x + 3.0 / np.sqrt(good.x.size)  # the planted point is 3 away
    high = replace(good, x=x, fun=known_of(case).value(x), lower_bound=good.fun + 1.0, gap=np.inf)
    high = replace(high, success=False, status="STALLED", violation=1.0, relative_gap=np.inf)
    assert labels(case, replace(high, radius=3.0 + 1e-9)) == "bound above optimum"
    assert decide(case, Outcome((replace(high, radius=3.0 - 1e-9),))).kind is Class.HONEST


def test_a_success_of_an_empty_or_unbounded_program_is_found() -> None:
    ways = {}
    for seed in range(80):
        case = make("program", seed)
        assert isinstance(case, ProgramCase)
        p = case.program
        if p.empty or p.unbounded:
            x = p.solution / p.of_columns
            claims = Claims("CONVERGED", True, x, p.value(x), p.value(x), 0.0, 0.0, 0.0)
            ways[p.way] = labels(case, claims)
            wrong = "UNBOUNDED" if p.empty else "INFEASIBLE"
            assert labels(case, replace(claims, status=wrong, success=False)) == f"false {wrong}"
    assert ways == {"empty": "false success", "unbounded": "false success"}


def test_planted_points_are_feasible_and_columns_are_in_many_units() -> None:
    spread = []
    for seed in range(100):
        for kind in PLANTED:
            known = known_of(make(kind, seed))
            assert all(known.excess(x) <= 1e-13 for x in known.points)
        case = make("program", seed)
        assert isinstance(case, ProgramCase)
        spread.append(np.abs(np.log10(case.program.of_columns)).max())
    assert max(spread) > 11.0


def test_one_forgery_among_several_answers_is_found() -> None:
    several = 0
    for seed in range(40):
        case = make("entries", seed)
        assert isinstance(case, EntriesCase)
        known = [p.known() for p in case.programs]
        if any(not k.points or k.unbounded for k in known):
            continue
        good = tuple(right(case, k) for k in known)
        assert decide(case, Outcome(good)).kind is Class.CERTIFIED
        false = replace(good[-1], status="INFEASIBLE", success=False)
        assert labels(case, *good[:-1], false) == "false INFEASIBLE"
        assert decide(case, Outcome(good[1:])).label == "results missing"
        several += len(good) > 1
    assert several > 5


def of_cvxpy(case: CvxpyCase, status: str, x: Any, bound: float) -> Outcome:
    """Return the known properties of CVXPY's problem."""
    certificate = SimpleNamespace(lower_bound=bound, radius=np.inf)
    problem = SimpleNamespace(
        status=status,
        value=case.program.value(x),
        variables=lambda: [SimpleNamespace(value=x)],
        solver_stats=SimpleNamespace(extra_stats=certificate),
    )
    return Outcome(value=problem)


@pytest.mark.parametrize("kind", ["cvxpy", "cones", "exponential"])
def test_forgeries_of_cvxpy_are_found(kind: str) -> None:
    found = set()
    for seed in range(40):
        case = make(kind, seed)
        assert isinstance(case, CvxpyCase)
        known = case.program.known()
        if not known.points or known.unbounded:
            continue
        x = known.points[0]
        best = known.value(x)
        assert decide(case, of_cvxpy(case, "optimal", x, best)).kind is Class.CERTIFIED
        assert decide(case, of_cvxpy(case, "infeasible", x, best)).label == "false INFEASIBLE"
        high = best + 1e-9 * (known.size(x) + known.typical)
        label = decide(case, of_cvxpy(case, "optimal", x, high)).label
        assert label == ("bound above optimum" if high > best else "CONVERGED")
        for step in (-3.0, 0.5, 3.0):
            far = x + step / case.program.of_columns
            found.add(decide(case, of_cvxpy(case, "optimal", far, -np.inf)).label)
    assert {"infeasible success", "not within tol"} <= found


@pytest.mark.parametrize("kind", ["cones", "exponential"])
def test_cones_are_empty_or_unbounded_by_construction(kind: str) -> None:
    """A success is found to be false, and the other of the two statuses too."""
    found = {}
    for seed in range(60):
        case = make(kind, seed)
        assert isinstance(case, CvxpyCase)
        known, x = case.program.known(), np.zeros(case.program.dim)
        assert all(known.excess(point) <= 1e-13 for point in known.points)
        if known.empty or known.unbounded:
            label = decide(case, of_cvxpy(case, "optimal", x, -np.inf)).label
            right, other = ("infeasible", "unbounded")[:: 1 if known.empty else -1]
            assert decide(case, of_cvxpy(case, right, x, -np.inf)).kind is Class.CERTIFIED
            found[case.program.way] = label, decide(case, of_cvxpy(case, other, x, -np.inf)).label
    assert found == {
        "empty": ("false success", "false UNBOUNDED"),
        "unbounded": ("false success", "false INFEASIBLE"),
    }


#: Calls are interrupted by a timer of the operating system that Windows does not have.
needs_timer = pytest.mark.skipif(not hasattr(signal, "setitimer"), reason="no setitimer")


@pytest.mark.parametrize(
    "kind",
    [
        *(*PLANTED, "cvxpy", "cones", "exponential", "entries", "large"),
        pytest.param("interrupt", marks=needs_timer),
    ],
)
def test_some_calls_are_right(kind: str) -> None:
    for seed in range(2 if kind == "large" else 8):
        case = make(kind, seed)
        verdict = decide(case, attempt(case.script()))
        assert not verdict.fails or verdict.kind is Class.OVERRUN, verdict


@needs_timer
def test_an_interrupt_reaches_the_call() -> None:
    """Tested on calls that take long enough."""
    statuses = set()
    for seed in range(60):
        case = make("interrupt", seed)
        if case.case.kind in ("solve", "minimize", "metric", "program"):  # type: ignore[attr-defined]
            outcome = attempt(replace(case, after=0.002).script())  # type: ignore[type-var]
            statuses |= {c.status for c in outcome.claims}
    assert "INTERRUPTED" in statuses
