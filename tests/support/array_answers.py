"""Judge an answer on an array library by NumPy's: for the tests and for the record."""

from __future__ import annotations

import functools
import warnings
from typing import Any

import numpy as np
from support.array_calls import Answer, Case, Convert, Q, every
from support.array_penalised import penalised

from lopro.core.arrays import to_numpy
from lopro.errors import MissingCapabilityError

CASES = {f"{kind}: {name}": case for kind, cases in every().items() for name, case in cases.items()}
CASES |= {f"applications: {name}": case for name, case in penalised().items()}
#: Words of an error that names what to do instead.
ADVICE = ("NumPy arrays", "float64", "lopro.")


@functools.cache
def expected(name: str) -> Answer:
    """Return NumPy's answer in double precision."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found: Answer = CASES[name].call(functools.partial(np.asarray, dtype=np.float64), 1e-6)
    if not CASES[name].rough:
        assert found.status in ("CONVERGED", "UNBOUNDED"), found
    return found


def outcome(name: str, of: Convert, tol: float) -> str:
    """Return "answer", or "refused" for an error that names the alternative; else raise."""
    case, reference = CASES[name], expected(name)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            found = case.call(of, tol)
    except MissingCapabilityError as error:
        assert any(word in str(error) for word in ADVICE), error
        return "refused"
    check(found, reference, case, of(Q), tol)
    return "answer"


def check(found: Answer, reference: Answer, case: Case, like: Any, tol: float) -> None:
    """Check that an answer is NumPy's, in the library, dtype and device of the data."""
    assert type(found.x) is type(like), f"the answer is a {type(found.x).__name__}"
    assert found.x.dtype == like.dtype, f"the answer is {found.x.dtype}"
    assert getattr(found.x, "device", None) == getattr(like, "device", None), found.x.device
    if not case.rough:
        assert found.status == reference.status, found
    if reference.status == "UNBOUNDED":
        return
    assert np.isfinite(to_numpy(found.x)).all(), found
    # The iterates of short runs depend on rounding.
    allowed = (1e-2 if case.rough else 2.0 * tol) * (1.0 + abs(reference.fun))
    assert abs(found.fun - reference.fun) <= allowed, f"{found.fun}, of NumPy {reference.fun}"
    # Rounding the data to single precision changes the optimum; and a violation of 1e-9 may lower the
    # value by as much.
    if not case.rough:
        share = 1e-9 if tol < 1e-5 else 1e-5
        highest = reference.fun + share * (1.0 + abs(reference.fun)) + 1e-6 * abs(reference.fun)
        assert found.bound <= highest, f"bound {found.bound}, optimum {reference.fun}"
