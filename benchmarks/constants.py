"""Sensitivity to constants: each is divided and multiplied by a factor, and the work is counted.

    python -m benchmarks.constants PACKAGE [--factor 10] [--only NAME] [--skip NAME] [--time]

For every numeric constant of the modules of a package (newton, newton.sdp, linalg, ...): the work on some
problems relative to that with its own value (the ratio of the sums, and the largest ratio of one problem),
and the problems that are not certified any more. Work is the number of iterations, factorisations and
eigendecompositions, of `basis_pursuit` that of products (`benchmarks.bpdn.counted`), of projections that of
calls of functions (`benchmarks.constants_projections`), or with ``--time`` the processor time. A constant
that changes nothing at either end is a candidate for removal, with the branch that it steers.

`FAMILIES` names the problems of each package: the longest name that a package begins with counts. A problem
is a name and a call that returns a result, an outcome, or its work as a number.
"""

from __future__ import annotations

import argparse
import ast
import dataclasses
import functools
import gc
import importlib
import pkgutil
import signal
import sys
import time
import warnings
from collections.abc import Callable, Iterator
from types import ModuleType
from typing import Any

import numpy as np

#: The work of a problem, and whether it was certified.
Work = tuple[float, bool]

_VECTORS, _MATRICES = "constants_newton:over_vectors", "constants_newton:over_matrices"
_PROGRAMS = "constants_newton:programs"

#: Functions that yield the problems of a package, as ``module:function`` of this folder.
FAMILIES = {
    "basis_pursuit": ("bpdn.counted:calls",),
    "batch": ("constants_batch:calls",),
    "newton": (_VECTORS,),
    "newton.programs": (_PROGRAMS,),
    "newton.systems": (_VECTORS, _PROGRAMS),
    "newton.losses": (_VECTORS, _PROGRAMS),
    "newton.sdp": (_MATRICES,),
    "certificates": (_VECTORS, _PROGRAMS),
    "engines": ("constants_engines:calls",),
    "linalg": (_VECTORS, _PROGRAMS, _MATRICES),
    "methods.second_order": (_VECTORS, _PROGRAMS),
    "methods.multipliers": ("constants_first_order:multipliers",),
    "methods.paper": ("constants_first_order:paper",),
    "penalties": ("constants_first_order:paper",),
    "methods.inner.accelerated": (
        "constants_first_order:multipliers",
        "constants_first_order:paper",
    ),
    "methods.semidefinite": ("constants_newton:over_factors",),
    "metric": ("constants_metric:calls",),
    "methods.splitting": ("constants_images:products",),
    "projections": ("constants_projections:calls",),
    "constraints": ("constants_projections:calls",),
}

#: The number of runs of a problem, of which the least processor time counts.
RUNS = 3
#: Seconds after which a problem counts as not solved.
LIMIT = 20


def problems(package: str) -> Iterator[tuple[str, Callable[[], Any]]]:
    """Yield calls that run a package on small problems, from fixed seeds."""
    known = [name for name in FAMILIES if f"{package}.".startswith(f"{name}.")]
    if not known:
        raise SystemExit(f"no problems for {package!r}: add a line to FAMILIES")
    for family in FAMILIES[max(known, key=len)]:
        module, _, function = family.partition(":")
        yield from getattr(importlib.import_module(f"benchmarks.{module}"), function)()


def measure(package: str, timed: bool = False) -> dict[str, Work]:
    """Return the work of all problems: infinite where a call raises or takes longer than `LIMIT`."""
    found = {}
    for name, call in problems(package):
        runs = [_run(call, timed) for _ in range(RUNS if timed else 1)]
        found[name] = min(work for work, _ in runs), runs[0][1]
    return found


def _run(call: Callable[[], Any], timed: bool) -> Work:
    before = signal.signal(signal.SIGALRM, _too_long)
    signal.alarm(LIMIT)
    begin = time.process_time()
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            result = call()
    except Exception:  # an error means that the constant is needed
        return np.inf, False
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)
    spent = 1e3 * (time.process_time() - begin)
    status = getattr(getattr(result, "status", None), "name", "CONVERGED")
    return spent if timed else _work(result), status in _CERTIFIED


def _too_long(number: int, frame: Any) -> None:
    raise TimeoutError


_CERTIFIED = ("CONVERGED", "INFEASIBLE", "UNBOUNDED")


def _work(result: Any) -> float:
    if isinstance(result, (int, float)):
        return float(result)
    if not hasattr(result, "counts"):
        return float(result.steps)
    counts = result.counts
    return float(result.iterations + counts.factorizations + counts.eigendecompositions)


def constants(package: str) -> Iterator[tuple[str, float, Callable[[Any], None]]]:
    """Yield the numeric constants of a package: full name, value, and a function that sets another value.

    Entries of tuples count one by one. So do the fields of frozen dataclasses all of whose fields have
    defaults: settings, and the options of methods.
    """
    for module in _modules(package):
        with open(str(module.__file__), encoding="utf-8") as file:
            tree = ast.parse(file.read())
        for node in tree.body:
            if isinstance(node, (ast.Assign, ast.AnnAssign)) and node.value is not None:
                for key in _names(node):
                    yield from _of(module, key, functools.partial(_set_global, module, key))
            if isinstance(node, ast.ClassDef) and _has_defaults(getattr(module, node.name)):
                kind = getattr(module, node.name)
                own = [
                    key
                    for part in node.body
                    if isinstance(part, ast.AnnAssign)
                    for key in _names(part)
                ]
                for key in (f.name for f in dataclasses.fields(kind) if f.name in own):
                    yield from _of(kind, key, functools.partial(_set_field, kind, key))


def _has_defaults(kind: Any) -> bool:
    """Whether a class is a frozen dataclass all of whose fields have defaults."""
    if not dataclasses.is_dataclass(kind) or not kind.__dataclass_params__.frozen:
        return False
    defaults = getattr(kind.__init__, "__defaults__", None) or ()
    return 0 < len(defaults) == len(dataclasses.fields(kind))


def _modules(package: str) -> Iterator[ModuleType]:
    home = importlib.import_module(f"lopro.{package}")
    if not hasattr(home, "__path__"):
        yield home
        return
    for info in pkgutil.walk_packages(home.__path__, f"{home.__name__}."):
        yield importlib.import_module(info.name)


def _names(node: ast.Assign | ast.AnnAssign) -> list[str]:
    targets = node.targets if isinstance(node, ast.Assign) else [node.target]
    return [t.id for top in targets for t in ast.walk(top) if isinstance(t, ast.Name)]


def _of(
    home: Any, key: str, setter: Callable[[Any], None]
) -> Iterator[tuple[str, float, Callable[[Any], None]]]:
    """Yield a number, or the entries of a tuple of numbers."""
    value = getattr(home, key, None)
    name = f"{getattr(home, '__module__', home.__name__).removeprefix('lopro.')}.{key}"
    if type(value) in (int, float):
        yield name, value, setter
    elif type(value) is tuple and all(type(v) in (int, float) for v in value):
        for i, v in enumerate(value):
            yield f"{name}[{i}]", v, lambda new, i=i: setter((*value[:i], new, *value[i + 1 :]))


def _set_global(home: ModuleType, key: str, value: Any) -> None:
    """Set a constant in its module and in those that import it."""
    before = getattr(home, key)
    for name, module in list(sys.modules.items()):
        if name.startswith("lopro.") and getattr(module, key, None) is before:
            setattr(module, key, value)


def _set_field(kind: Any, key: str, value: Any) -> None:
    """Set the default of a field of a dataclass all of whose fields have one, in its instances as well."""
    places = [field.name for field in dataclasses.fields(kind)]
    found = list(kind.__init__.__defaults__)
    found[places.index(key)] = value
    kind.__init__.__defaults__ = tuple(found)
    setattr(kind, key, value)
    for instance in [o for o in gc.get_objects() if type(o) is kind]:
        object.__setattr__(instance, key, value)


def compare(base: dict[str, Work], now: dict[str, Work]) -> str:
    """Return a text with the largest change, the change of the sum, and the problems lost."""
    ratios = {k: (now[k][0] + 1.0) / (base[k][0] + 1.0) for k in base}
    worst = max(ratios, key=lambda k: abs(np.log(ratios[k])))
    whole = sum(w for w, _ in now.values()) / sum(w for w, _ in base.values())
    lost = [k for k in base if base[k][1] and not now[k][1]]
    changed = sum(r != 1.0 for r in ratios.values())
    said = f"{whole:5.2f} in all, {ratios[worst]:5.2f} at most ({worst}), {changed} changed"
    return said + (f", lost: {', '.join(lost)}" if lost else "")


def main() -> None:
    """Print a line for each constant and end."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("package", help="of lopro: newton, for instance")
    parser.add_argument("--factor", type=float, default=10.0)
    parser.add_argument("--only", default="", help="names that contain this")
    parser.add_argument("--skip", help="leave out names that contain this")
    parser.add_argument("--time", action="store_true", help="measure processor time")
    options = parser.parse_args()
    base = measure(options.package, options.time)
    for name, (work, certified) in base.items():
        print(f"{name:32s} {work:6.0f} {'certified' if certified else 'not certified'}", flush=True)
    for name, own, setter in constants(options.package):
        if options.only not in name or (options.skip and options.skip in name):
            continue
        for factor in (1.0 / options.factor, options.factor):
            setter(_scaled(own, factor))
            try:
                said = compare(base, measure(options.package, options.time))
            except ValueError as error:
                said = str(error)
            setter(own)
            print(f"{name + f' = {own:g}':48s} x {factor:<5g} {said}", flush=True)


def _scaled(value: float, factor: float) -> float:
    """Return the value times the factor; integers stay integers."""
    return type(value)(value * factor)


if __name__ == "__main__":
    main()
