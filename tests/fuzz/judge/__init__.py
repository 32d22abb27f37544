"""What every judge shares: claims, verdicts, wide arithmetic, conic programs. No library code."""
