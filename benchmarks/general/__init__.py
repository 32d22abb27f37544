"""Benchmarks of the second-order kernels against interior point and first-order peers."""
