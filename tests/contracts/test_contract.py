"""Everything on every array library: NumPy's answer on the data's device, or an error that says what to do.

A sample runs by default, another one for each library; ``--all-pairs`` runs all cases, and ``--device cuda``
runs all of them on a GPU. `support.array_record` writes down what all of them do, for the documentation.
"""

from __future__ import annotations

import functools
import zlib

import pytest
from support.array_answers import CASES, outcome
from support.array_calls import LIBRARIES, single, torch

#: Without ``--all-pairs`` one in this number of cases runs (default 8); JAX has to compile each of them.
ONE_IN = {"jax": 32, "jax-single": 32}


@pytest.mark.parametrize("library", LIBRARIES)
@pytest.mark.parametrize("name", CASES)
def test_a_case_on_a_library(name: str, library: str, request: pytest.FixtureRequest) -> None:
    chosen = zlib.crc32(f"{name} {library}".encode()) % ONE_IN.get(library, 8) == 0
    if not (chosen or request.config.getoption("--all-pairs")):
        pytest.skip("a sample of the cases runs without --all-pairs")
    outcome(name, *LIBRARIES[library])


@pytest.mark.parametrize("precision", ["double", "single"])
@pytest.mark.parametrize("name", CASES)
def test_a_case_on_a_device(name: str, precision: str, request: pytest.FixtureRequest) -> None:
    device = request.config.getoption("--device")
    if device is None:
        pytest.skip("no --device was given")
    there = functools.partial(torch, device=device)
    if precision == "double":
        outcome(name, there, 1e-6)
    else:
        outcome(name, single(there), 1e-3)
