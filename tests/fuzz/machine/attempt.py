"""Run one script and record its outcome; exceptions are outcomes."""

from __future__ import annotations

import time
import traceback
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import scipy
import scipy.optimize
import scipy.sparse
import scipy.sparse.linalg

from fuzz.judge.claims import Claims, Outcome, Raised, claims_of
from fuzz.machine.script import Script

__all__ = ["attempt"]


def attempt(script: Script) -> Outcome:
    """Run a script; only the call itself is timed."""
    import lopro
    import lopro.constraints as lc
    import lopro.objectives as lo

    names: dict[str, Any] = {"np": np, "scipy": scipy, "lopro": lopro, "lc": lc, "lo": lo}
    inputs: dict[str, Any] = {name: np.array(a, order="K") for name, a in script.arrays.items()}
    names.update(inputs)
    exec("\n".join(script.data), names)
    inputs = {name: v for name, v in names.items() if _content(v) is not None}
    before = {name: _content(value) for name, value in inputs.items()}
    started = time.perf_counter()
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            exec("\n".join(script.setup), names)
            started = time.perf_counter()
            exec(script.call, names)
            raised = None
        except Exception as error:
            raised = _raised(error, Path(lopro.__file__).parent)
    seconds = time.perf_counter() - started
    changed = tuple(name for name, v in inputs.items() if _content(v) != before[name])
    claims, value = _read(names.get("result"))
    return Outcome(
        claims=claims,
        value=value,
        raised=raised,
        seconds=seconds,
        changed=changed,
        shared=_shared(claims, value, inputs),
        warnings=tuple(sorted({f"{w.category.__name__}: {w.message}" for w in caught})),
    )


def _read(result: Any) -> tuple[tuple[Claims, ...], Any]:
    """Return the claims of a result or a list of them, and whatever else came back."""
    if hasattr(result, "certificate"):
        return (claims_of(result),), None
    if isinstance(result, list) and result and all(hasattr(r, "certificate") for r in result):
        return tuple(claims_of(r) for r in result), None
    return (), result


def _content(value: Any) -> Any:
    """Return the content of an input, for comparison; None for objects without data."""
    if isinstance(value, np.ndarray):
        return value.shape, value.dtype.str, value.tobytes()
    if scipy.sparse.issparse(value):
        held = {k: v for k, v in vars(value).items() if isinstance(v, np.ndarray)}
        return value.shape, {k: v.tobytes() for k, v in held.items()}
    if isinstance(value, list):
        return repr(value)
    if hasattr(value, "to_numpy"):  # pandas
        return repr(value.to_numpy().tolist())
    return None


def _shared(claims: tuple[Claims, ...], value: Any, inputs: dict[str, Any]) -> tuple[str, ...]:
    outputs = [c.x for c in claims] + [value] * isinstance(value, np.ndarray)
    arrays = {name: v for name, v in inputs.items() if isinstance(v, np.ndarray)}
    return tuple(n for n, v in arrays.items() if any(np.shares_memory(v, out) for out in outputs))


def _raised(error: Exception, home: Path) -> Raised:
    place = ""
    for frame in traceback.extract_tb(error.__traceback__):
        if frame.filename.startswith(str(home)):
            place = f"{Path(frame.filename).relative_to(home)}:{frame.lineno}"
    names = tuple(base.__name__ for base in type(error).__mro__)
    return Raised(type(error).__name__, str(error)[:500], place, names)
