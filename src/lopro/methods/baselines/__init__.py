"""Methods to compare with: each projects as often as its authors say, on lopro's driver and counters."""

from lopro.methods.baselines._steps import BestIterate
from lopro.methods.baselines.augmented_lagrangian import AugmentedLagrangian
from lopro.methods.baselines.conex import ConEx
from lopro.methods.baselines.epro import EproORDA, EproSGD
from lopro.methods.baselines.exterior_penalty import ExteriorPenalty
from lopro.methods.baselines.frank_wolfe import AwayStepFrankWolfe, FrankWolfe, PairwiseFrankWolfe
from lopro.methods.baselines.frank_wolfe_steps import LineSearch, OpenLoop, ShortStep
from lopro.methods.baselines.full_touch import FullTouch
from lopro.methods.baselines.level_set import LevelSetFrankWolfe
from lopro.methods.baselines.light_touch import LightTouch
from lopro.methods.baselines.log_projections import LogTProjections
from lopro.methods.baselines.mahdavi import OneProjectionSaddle, OneProjectionSmoothed
from lopro.methods.baselines.nesta import NESTA
from lopro.methods.baselines.opgd import OPGD
from lopro.methods.baselines.projected_gradient import ProjectedGradient
from lopro.methods.baselines.projected_subgradient import ProjectedSubgradient
from lopro.methods.baselines.rsg import R2SG, RSG
from lopro.methods.baselines.switching import SwitchingSubgradient
from lopro.methods.paper.restarts.parallel import ParallelRestarts
from lopro.methods.second_order.interior_point import InteriorPoint

__all__ = [
    "NESTA",
    "OPGD",
    "R2SG",
    "RSG",
    "AugmentedLagrangian",
    "AwayStepFrankWolfe",
    "BestIterate",
    "ConEx",
    "EproORDA",
    "EproSGD",
    "ExteriorPenalty",
    "FrankWolfe",
    "FullTouch",
    "InteriorPoint",
    "LevelSetFrankWolfe",
    "LightTouch",
    "LineSearch",
    "LogTProjections",
    "OneProjectionSaddle",
    "OneProjectionSmoothed",
    "OpenLoop",
    "PairwiseFrankWolfe",
    "ParallelRestarts",
    "ProjectedGradient",
    "ProjectedSubgradient",
    "ShortStep",
    "SwitchingSubgradient",
]
