"""Parts of all judges: claims, verdicts, extended precision, conic programs. No library code."""
