"""Traces of every method, which a refactoring must leave unchanged bit by bit."""
