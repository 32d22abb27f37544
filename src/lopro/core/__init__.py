"""What every room uses and none owns: arrays, checks on input, counting, threads, plots, progress."""
