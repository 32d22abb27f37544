"""Smooth parts of objectives, with their second derivatives."""

from lopro.newton.smooth.base import Slope, Smooth
from lopro.newton.smooth.huber import Huber
from lopro.newton.smooth.least_squares import LeastSquares
from lopro.newton.smooth.logistic import Logistic
from lopro.newton.smooth.on_device import (
    LeastSquaresOnDevice,
    LogisticOnDevice,
    QuadraticOnDevice,
)
from lopro.newton.smooth.quadratic import Linear, Quadratic, SquaredDistance
from lopro.newton.smooth.sums import Sum

__all__ = [
    "Huber",
    "LeastSquares",
    "LeastSquaresOnDevice",
    "Linear",
    "Logistic",
    "LogisticOnDevice",
    "Quadratic",
    "QuadraticOnDevice",
    "Slope",
    "Smooth",
    "SquaredDistance",
    "Sum",
]
