"""Basis pursuit denoising: one right-hand side, many, and paths."""
