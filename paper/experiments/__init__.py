"""Experiments that anybody can run: seeded, without data files, with numbers that are measured."""
