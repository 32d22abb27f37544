"""Sparse logistic regression on a working set of columns."""
