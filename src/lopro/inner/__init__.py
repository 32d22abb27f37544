"""Algorithms for the penalised objective: they never project and never decide to stop."""

from lopro.inner.accelerated import (
    AcceleratedGradient,
    Backtracking,
    ConstantMomentum,
    FixedSmoothness,
    NesterovMomentum,
    NoMomentum,
)
from lopro.inner.averaging import (
    ConstantStep,
    InverseTimeStep,
    LastIterate,
    LinearWeights,
    PolynomialDecay,
    SqrtStep,
    SuffixAverage,
    UniformAverage,
    WeightedInverseTimeStep,
)
from lopro.inner.base import InnerAlgorithm
from lopro.inner.outside import LBFGSB
from lopro.inner.subgradient import StochasticSubgradient, SubgradientDescent

__all__ = [
    "LBFGSB",
    "AcceleratedGradient",
    "Backtracking",
    "ConstantMomentum",
    "ConstantStep",
    "FixedSmoothness",
    "InnerAlgorithm",
    "InverseTimeStep",
    "LastIterate",
    "LinearWeights",
    "NesterovMomentum",
    "NoMomentum",
    "PolynomialDecay",
    "SqrtStep",
    "StochasticSubgradient",
    "SubgradientDescent",
    "SuffixAverage",
    "UniformAverage",
    "WeightedInverseTimeStep",
]
