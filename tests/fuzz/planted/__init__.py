"""Programs with a known optimum: integers, in units that are powers of two, so that nothing is rounded."""
