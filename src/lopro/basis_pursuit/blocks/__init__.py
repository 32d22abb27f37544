"""Basis pursuit with blocks: complex coefficients, several right-hand sides, groups."""
