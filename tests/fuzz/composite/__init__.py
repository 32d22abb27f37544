"""Sums of functions of linear images with a known minimiser: a linear term balances chosen slopes."""
