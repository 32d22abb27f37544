"""Sparse regressions with a known solution: their weights are made from its optimality conditions."""
