"""Targets of nearest correlation matrices."""

from __future__ import annotations


def uniform(rng, n):
    """A symmetric matrix of random entries: far from any correlation matrix."""
    G = rng.uniform(-1.0, 1.0, (n, n))
    return 0.5 * (G + G.T)
