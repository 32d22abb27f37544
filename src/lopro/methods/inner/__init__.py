"""Algorithms for the penalised objective; they neither project nor stop by themselves."""

from lopro.driver.method import InnerAlgorithm
from lopro.methods.inner.accelerated import (
    AcceleratedGradient,
    Backtracking,
    ConstantMomentum,
    FixedSmoothness,
    NesterovMomentum,
    NoMomentum,
)
from lopro.methods.inner.averaging import (
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
from lopro.methods.inner.lbfgsb import LBFGSB
from lopro.methods.inner.subgradient import StochasticSubgradient, SubgradientDescent

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
