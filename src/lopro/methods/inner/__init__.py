"""Inner algorithms: they minimise a penalised objective, do not project, and do not decide when to stop."""

from lopro.driver.method import InnerAlgorithm
from lopro.methods.inner.accelerated import AcceleratedGradient, Backtracking, FixedSmoothness
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
from lopro.methods.inner.momentum import ConstantMomentum, NesterovMomentum, NoMomentum
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
