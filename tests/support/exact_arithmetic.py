"""Exact rational arithmetic, and vectors over many orders of magnitude."""

from __future__ import annotations

from fractions import Fraction

import numpy as np


def rational(values):
    return [Fraction(v) for v in np.ravel(values).tolist()]


def exact_dot(x, y):
    return sum((a * b for a, b in zip(rational(x), rational(y), strict=True)), Fraction(0))


def wild(rng, n):
    return rng.standard_normal(n) * 10.0 ** rng.integers(-6, 6, n)
