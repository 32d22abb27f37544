"""The nearest correlation matrix."""

from lopro.newton.correlation.nearest import (
    NearestCorrelation,
    NoCorrelationMatrix,
    nearest_correlation,
)

__all__ = ["NearestCorrelation", "NoCorrelationMatrix", "nearest_correlation"]
