"""Everything on every array library: NumPy's answer where the data are, or an error that says what to do.

A sample runs by default, another one for each library; ``--all-pairs`` runs all cases, and ``--device cuda``
runs all of them on a GPU.
"""

from __future__ import annotations

import functools
import warnings
import zlib
from typing import Any

import numpy as np
import pytest
from support.array_calls import LIBRARIES, Answer, Case, Convert, Q, every, torch

from lopro.core.arrays import to_numpy
from lopro.errors import MissingCapabilityError

CASES = {f"{kind}: {name}": case for kind, cases in every().items() for name, case in cases.items()}
#: One case in so many runs without ``--all-pairs``; JAX compiles each of them first.
ONE_IN = {"jax": 32, "jax-single": 32}
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
    assert type(found.x) is type(like)
    assert found.x.dtype == like.dtype
    assert getattr(found.x, "device", None) == getattr(like, "device", None)
    if not case.rough:
        assert found.status == reference.status, found
    if reference.status == "UNBOUNDED":
        return
    assert np.isfinite(to_numpy(found.x)).all()
    # Short runs take other turns in other roundings.
    allowed = (1e-2 if case.rough else 2.0 * tol) * (1.0 + abs(reference.fun))
    assert found.fun == pytest.approx(reference.fun, abs=allowed)
    # Data in single precision have another optimum, by their own rounding; and a violation of 1e-9 may
    # have gained as much.
    if not case.rough:
        share = 1e-9 if tol < 1e-5 else 1e-5
        assert found.bound <= reference.fun + share * (1.0 + abs(reference.fun)) + 1e-6 * abs(
            reference.fun
        )


@pytest.mark.parametrize("library", LIBRARIES)
@pytest.mark.parametrize("name", CASES)
def test_a_case_on_a_library(name: str, library: str, request: pytest.FixtureRequest) -> None:
    chosen = zlib.crc32(f"{name} {library}".encode()) % ONE_IN.get(library, 8) == 0
    if not (chosen or request.config.getoption("--all-pairs")):
        pytest.skip("a sample of the cases runs without --all-pairs")
    outcome(name, *LIBRARIES[library])


@pytest.mark.parametrize("name", CASES)
def test_a_case_on_a_device(name: str, request: pytest.FixtureRequest) -> None:
    device = request.config.getoption("--device")
    if device is None:
        pytest.skip("no --device was given")
    outcome(name, functools.partial(torch, device=device), 1e-6)
