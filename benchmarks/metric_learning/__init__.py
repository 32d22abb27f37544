"""Sparse metric learning: lopro and conic solvers on the same problems, and kNN with other metrics."""
