"""Benchmarks of `lopro.solve` against other solvers, on random problems and public collections."""
