"""Basis pursuit denoising: our methods and everybody else's, on the same problems, judged by one code."""
