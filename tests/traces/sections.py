"""The parts of a record: each yields names and calls, a call returns the entry of one trace."""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import numpy as np

import lopro
from lopro import constraints as lc
from lopro import objectives as lo
from lopro.core.deadline import using_clock
from traces import cvxpy_programs, instances
from traces.calls import benchmark_calls, bpdn_calls, correlation_calls, metric_calls
from traces.entry import digest, measured, outcome, row
from traces.methods import methods
from traces.problems import applications, problems

__all__ = ["SECTIONS", "Traces"]

Traces = Iterator[tuple[str, Callable[[], Any]]]

#: Limits in counts, so that a record does not depend on the machine's speed.
_METHODS = {"max_iter": 1500, "max_projections": 400, "seed": 0}
_CATALOGUE = {"max_iter": 2000, "max_projections": 400, "seed": 0}
#: How many calls of the fuzzer, and which.
_RANDOM, _RANDOM_SEED = 400, 26


def _with_rows(call: Callable[..., Any], **options: Any) -> Any:
    """Return the entry of a call that takes a callback, with a row for each iterate."""
    rows: list[Any] = []

    def run() -> Any:
        return call(callback=lambda iterate: rows.append(row(iterate)), **options)

    return measured(run, lambda result: outcome(result, rows))


def paper() -> Traces:
    """Every method and baseline on every problem of `traces.problems`, and the applications, row by row."""
    for name, problem in problems():
        for method_name, method in methods():
            solve = partial(lopro.solve, problem, method=method)
            yield f"{name} by {method_name}", partial(_with_rows, solve, **_METHODS)
    for name, call in applications():
        yield name, partial(_with_rows, call, seed=0)


def catalogue() -> Traces:
    """Every objective of the test catalogue on every constraint that has points of its shape, by Auto."""
    for name, problem in _pairs():
        yield name, partial(measured, partial(_solved, problem))


def _solved(make: Callable[[], Any]) -> Any:
    return lopro.solve(make(), **_CATALOGUE)


def _pairs() -> Iterator[tuple[str, Callable[[], Any]]]:
    """Yield problems; where the catalogue has no partner, a box, a distance or a linear function is one."""
    from support.catalogue import CONSTRAINTS
    from support.catalogue_objectives import ENTRIES

    points = {case: case.feasible(np.random.default_rng(0)) for case in CONSTRAINTS}
    kinds = {case: (z.shape, np.iscomplexobj(z)) for case, z in points.items()}
    for case, kind in kinds.items():
        partners = [entry for entry in ENTRIES if (entry.shape, entry.is_complex) == kind]
        for entry in partners:
            yield f"{entry.name} on {case.name}", partial(_problem, entry, case)
        if not partners:
            z = case.point(np.random.default_rng(1), 2.0)
            for f in (lo.SquaredDistance(z), lo.Linear(z), lo.SquaredDistance(z) + lo.L1Norm()):
                yield f"{_name_of(f)} on {case.name}", partial(_over, f, case)
    for entry in ENTRIES:
        if (entry.shape, entry.is_complex) not in kinds.values() and not entry.is_complex:
            yield f"{entry.name} on a box", partial(_boxed, entry)


def _name_of(f: Any) -> str:
    parts = getattr(f, "parts", None)
    return "+".join(type(part).__name__ for part in parts) if parts else type(f).__name__


def _double(data: Any) -> Any:
    data = np.asarray(data)
    return data.astype(np.complex128 if data.dtype.kind == "c" else np.float64)


def _problem(entry: Any, case: Any) -> Any:
    return lopro.Problem(entry.build(_double), case.numpy)


def _over(f: Any, case: Any) -> Any:
    return lopro.Problem(f, case.numpy)


def _boxed(entry: Any) -> Any:
    box = lc.Polyhedron.box(-np.ones(entry.shape), np.ones(entry.shape))
    return lopro.Problem(entry.build(_double), box)


def fuzz() -> Traces:
    """Calls that were wrong once; their limits are in processor time."""
    from fuzz.known_cases import KNOWN

    for name, make in KNOWN.items():
        yield name, partial(_scripted, make)


def random() -> Traces:
    """Calls as the fuzzer draws them, of all kinds; their limits are in processor time."""
    from fuzz.kinds import make, plan

    for kind, seed in plan(_RANDOM, _RANDOM_SEED):
        yield f"{kind}:{seed}", partial(_scripted, partial(make, kind, seed))


def _scripted(make: Callable[[], Any]) -> Any:
    import scipy
    import scipy.optimize
    import scipy.sparse.linalg

    script = make().script()
    names = {"np": np, "scipy": scipy, "lopro": lopro, "lc": lc, "lo": lo}
    names |= {name: np.array(a, order="K") for name, a in script.arrays.items()}
    exec("\n".join(script.data), names)

    def run() -> Any:
        exec("\n".join([*script.setup, script.call]), names)
        return names["result"]

    with using_clock(time.process_time), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return measured(run, _any_outcome)


def _any_outcome(result: Any) -> dict[str, Any]:
    """Return the entry of a result, or of a point where the call is a projection."""
    if hasattr(result, "certificate"):
        return outcome(result)
    return {"status": "point", "certified": False, "x": digest(result)}


SECTIONS: dict[str, Callable[[], Traces]] = {
    "paper": paper,
    "catalogue": catalogue,
    "fuzz": fuzz,
    "random": random,
    "bpdn": bpdn_calls,
    "benchmark": benchmark_calls,
    "metric": metric_calls,
    "correlation": correlation_calls,
    "cvxpy": cvxpy_programs.programs,
    "maros": instances.maros,
    "netlib": instances.netlib,
    "sdplib": instances.sdplib,
}
