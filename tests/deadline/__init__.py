"""Limits with a real clock and real signals, one at a time: run by ``make deadline``, not in parallel."""
