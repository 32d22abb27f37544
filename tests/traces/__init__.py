"""Traces of every method: what a change of structure must leave as it was, bit by bit."""
