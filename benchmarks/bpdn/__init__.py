"""Basis pursuit denoising: our methods and other packages, on the same problems, judged by one code."""
