"""Several problems on one matrix, solved together."""
