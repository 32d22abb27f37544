"""Shared by all judges: claims, verdicts, wide arithmetic, conic programs. No library code."""
