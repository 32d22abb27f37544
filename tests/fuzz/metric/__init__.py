"""Sparse metric learning: `learn_metric`."""
