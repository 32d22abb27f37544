"""The experiments: seeded, runnable without data files; all numbers are measured."""
