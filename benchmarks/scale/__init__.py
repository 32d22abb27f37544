"""Benchmarks of data that are larger than memory, or far away."""
