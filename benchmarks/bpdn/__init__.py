"""Basis pursuit denoising: methods of lopro and other packages on the same problems, with one judge."""
