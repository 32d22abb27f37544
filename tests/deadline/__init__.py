"""Real limits and real signals, one at a time: run by ``make deadline``, not among the parallel tests."""
