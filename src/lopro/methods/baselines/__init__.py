"""Methods for comparison, with the same driver and counters; each projects as often as its paper states.

By default the numbers of iterations, epochs, stages and levels, and of iterations between reports, limit the
work and do not steer a method. The other defaults are those of the literature, derived, or measured.
"""

from lopro.methods.baselines.epro import EproORDA, EproSGD
from lopro.methods.baselines.frank_wolfe import AwayStepFrankWolfe, FrankWolfe, PairwiseFrankWolfe
from lopro.methods.baselines.frank_wolfe_steps import LineSearch, OpenLoop, ShortStep
from lopro.methods.baselines.level_set import LevelSetFrankWolfe
from lopro.methods.baselines.light_touch import LightTouch
from lopro.methods.baselines.nesta import NESTA
from lopro.methods.baselines.one_projection import FullTouch, OneProjectionSmoothed
from lopro.methods.baselines.opgd import OPGD
from lopro.methods.baselines.primal_dual import ConEx, OneProjectionSaddle
from lopro.methods.baselines.projected_gradient import LogTProjections, ProjectedGradient
from lopro.methods.baselines.projected_subgradient import BestIterate, ProjectedSubgradient
from lopro.methods.baselines.rsg import R2SG, RSG
from lopro.methods.baselines.sequential import AugmentedLagrangian, ExteriorPenalty
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
