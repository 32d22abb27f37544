"""Helpers for all packages: arrays, checks of arguments, counting, deadlines, threads."""
