"""Set-up of all tests: one thread of linear algebra per process, and a seeded generator for each test."""

from __future__ import annotations

import os

# Before NumPy is imported: the matrices here are small, and parallel test processes would
# otherwise fight over the cores.
for _variable in ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ.setdefault(_variable, "1")
os.environ.setdefault("MPLBACKEND", "Agg")

import signal

import numpy as np
import pytest

# What a shell starts in the background has SIGINT ignored, and hands that on: tests press Ctrl-C.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.fixture
def rng() -> np.random.Generator:
    """Return a fresh generator with a fixed seed, so that every test can be run alone."""
    return np.random.default_rng(2017)


def pytest_addoption(parser):
    parser.addoption("--all-pairs", action="store_true", help="contracts: all cases, not a sample")
    parser.addoption("--device", default=None, help="a device of PyTorch, for contracts: cuda")
