"""Sparse metric learning: our methods and the conic solvers on one problem, and kNN against other metrics."""
