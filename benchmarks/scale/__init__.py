"""Benchmarks with data in files, on clusters and on GPUs."""
