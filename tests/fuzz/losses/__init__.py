"""Losses of samples with columns in units of their own, and certificates of points with any multipliers."""
