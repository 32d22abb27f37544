"""The path of one call through the library: files entered, functions called, objects built, by class."""

from __future__ import annotations

import importlib.util
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

import lopro
from traces.cvxpy_programs import quadratic_program
from traces.inventory import before

__all__ = ["Walk", "calls", "report", "summary", "walk"]

_HOME = Path(lopro.__file__).parent


@dataclass
class Walk:
    """Files, calls and objects of one call, by a profiler. A generator that is resumed is one more call."""

    home: Path = _HOME
    files: Counter[str] = field(default_factory=Counter)
    functions: Counter[str] = field(default_factory=Counter)
    #: Objects made, by class; of a class and the classes it inherits from only the class itself counts.
    built: Counter[str] = field(default_factory=Counter)

    @property
    def calls(self) -> int:
        """Number of calls of functions of the library."""
        return self.files.total()

    @property
    def packages(self) -> int:
        """Number of packages entered; a module beside them counts as one."""
        return len({name.split("/")[0] for name in self.files})

    def see(self, frame: Any, event: str, _: Any) -> None:
        """Note a call; Python's profiler calls this."""
        if event != "call":
            return
        code = frame.f_code
        path = Path(code.co_filename)
        if path.is_relative_to(self.home):
            name = path.relative_to(self.home).as_posix()
            self.files[name] += 1
            self.functions[f"{name}:{code.co_qualname}"] += 1
        if code.co_name == "__init__":
            self._see_construction(frame)

    def _see_construction(self, frame: Any) -> None:
        """Count an object of the library once, also where `__init__` calls those of its bases."""
        made, caller = _self(frame), frame.f_back
        if caller.f_code.co_name == "__init__" and _self(caller) is made:
            return
        kind = type(made)
        if kind.__module__.split(".")[0] == self.home.name:
            self.built[f"{kind.__module__}.{kind.__qualname__}"] += 1


def _self(frame: Any) -> Any:
    return frame.f_locals.get(frame.f_code.co_varnames[0]) if frame.f_code.co_varnames else None


def walk(call: Callable[[], Any], home: Path = _HOME) -> Walk:
    """Return the path of a call; it runs once before, so that imports and caches do not count."""
    call()
    seen = Walk(home)
    before = sys.getprofile()
    sys.setprofile(seen.see)
    try:
        call()
    finally:
        sys.setprofile(before)
    return seen


def calls() -> Iterator[tuple[str, Callable[[], Any]]]:
    """Yield the calls whose paths are measured; posing the problem is a part of each."""
    rng = np.random.default_rng(0)
    A, b, G = (rng.standard_normal(shape) for shape in ((30, 10), 30, (15, 10)))
    B, x = rng.standard_normal((200, 600)), np.zeros(600)
    x[:10] = 1.0
    y = B @ x + 0.01 * rng.standard_normal(200)
    f, c = lopro.objectives.LeastSquares, lopro.constraints.Polyhedron
    yield (
        "solve(LeastSquares 30x10, Polyhedron 15)",
        lambda: lopro.solve(lopro.Problem(f(A, b), c(G, np.full(15, 0.1)))),
    )
    yield "bpdn 200x600", lambda: lopro.bpdn(B, y, 0.15)
    if importlib.util.find_spec("cvxpy") is None:
        return
    solver = importlib.import_module("lopro.cvxpy").Lopro()
    yield "CVXPY quadratic program 30x10, 15 rows", lambda: quadratic_program().solve(solver=solver)


def summary() -> dict[str, Any]:
    """Return the numbers of all paths as plain data; of objects those that were built more than once."""
    found = {}
    for name, call in calls():
        seen = walk(call)
        again = {kind: n for kind, n in sorted(seen.built.items()) if n > 1}
        found[name] = _numbers(seen) | {"built more than once": again}
    return found


def _numbers(seen: Walk) -> dict[str, Any]:
    return {
        "files": len(seen.files), "packages": seen.packages, "calls": seen.calls,
        "objects": seen.built.total(),
    }  # fmt: skip


def report(details: int) -> list[str]:
    """Return the numbers as lines, with the functions that are called most."""
    lines, known = [], before().get("paths", {})
    for name, call in calls():
        seen = walk(call)
        numbers, old = _numbers(seen), known.get(name, {})
        words = [f"{key} {old.get(key, '-')} -> {value}" for key, value in numbers.items()]
        lines.append(f"{name}: {', '.join(words)}")
        again = old.get("built more than once", {})
        lines += [
            f"  built {again.get(kind, '-')} -> {n} times: {kind}"
            for kind, n in seen.built.most_common()
            if n > 1
        ]
        lines += [f"  called {n} times: {f}" for f, n in seen.functions.most_common(details)]
    return lines
