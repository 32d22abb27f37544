"""Objectives over sets: `solve`, `minimize`, and projections on each set."""
