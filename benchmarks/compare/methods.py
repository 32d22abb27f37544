"""Every method of `lopro.methods.registry`, and the parameters that some of them are given.

Methods are made without arguments. Those that need constants which cannot be computed from the problem
receive those of the instance, and those whose default schedule would end before the time limit get a
longer one.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import lopro
from benchmarks.compare.problems import Instance
from lopro import protocol
from lopro.core.arrays import norm
from lopro.driver.minorants import solution_radius
from lopro.errors import MissingCapabilityError
from lopro.functions import Ball
from lopro.methods.inner import (
    LinearWeights,
    SqrtStep,
    StochasticSubgradient,
    SubgradientDescent,
    WeightedInverseTimeStep,
)
from lopro.methods.paper.restarts import ApproximateSharpness, LogScaleGrid
from lopro.methods.registry import methods
from lopro.methods.theory import ProblemConstants, constants_of
from lopro.penalties import Hinge

__all__ = ["FAMILIES", "Method", "methods_for"]

#: More iterations than are possible within any time limit.
ENDLESS = 10**9

#: Families in the order of the legend; methods not listed here are lopro's own.
FAMILIES = {
    "lopro": (),
    "restarts": ("ParallelRestarts", "LogScaleGrid", "ApproximateSharpness"),
    "one or few projections": (
        "OPGD",
        "OneProjectionSaddle",
        "OneProjectionSmoothed",
        "EproSGD",
        "EproORDA",
        "FullTouch",
        "LightTouch",
    ),
    "a projection per step": (
        "ProjectedGradient",
        "ProjectedSubgradient",
        "RSG",
        "R2SG",
        "LogTProjections",
        "NESTA",
    ),
    "penalties and multipliers": (
        "ExteriorPenalty",
        "AugmentedLagrangian",
        "ConEx",
        "SwitchingSubgradient",
    ),
    "Frank-Wolfe": (
        "FrankWolfe",
        "AwayStepFrankWolfe",
        "PairwiseFrankWolfe",
        "LevelSetFrankWolfe",
    ),
    "interior point": ("InteriorPoint",),
}


@dataclass(frozen=True)
class Method:
    """A way to make a method for one problem.

    Where ``horizon`` is set the method fixes its steps by the number of iterations and reports once: its
    curve is made of separate runs, each with a horizon of its own.
    """

    name: str
    make: Callable[[int], protocol.Method]
    stochastic: bool = False
    horizon: bool = False

    @property
    def family(self) -> str:
        """The family, by the table above."""
        short = self.name.partition(" ")[0]
        found = [family for family, names in FAMILIES.items() if short in names]
        return found[0] if found else "lopro"


#: Schedules whose steps depend on the number of iterations.
HORIZON = (
    "OneProjection",
    "OPGD",
    "OneProjectionSaddle",
    "OneProjectionSmoothed",
    "FullTouch",
    "LightTouch",
    "ConEx",
)
#: Methods that take constants of the problem.
CONSTANTS = (
    "OneProjectionSaddle",
    "OneProjectionSmoothed",
    "EproSGD",
    "EproORDA",
    "FullTouch",
    "LightTouch",
    "ConEx",
    "ParallelRestarts",
)
#: Schedules that would end before the time limit, and methods that would report too rarely for a curve.
LONGER: dict[str, dict[str, Any]] = {
    "FrankWolfe": {"report": 10},
    "AwayStepFrankWolfe": {"report": 10},
    "PairwiseFrankWolfe": {"report": 10},
    "ProjectedGradient": {"iterations": ENDLESS},
    "ProjectedSubgradient": {"iterations": ENDLESS, "report": 20},
    "EproSGD": {"iterations": ENDLESS},
    "EproORDA": {"iterations": ENDLESS},
    "RSG": {"stages": 40},
    "R2SG": {"rounds": 15},
    "LogTProjections": {"stages": 40},
    "NESTA": {"max_iter": ENDLESS},
    "SwitchingSubgradient": {"levels": 40},
    "ParallelRestarts": {"reports": 20},
    "ApproximateSharpness": {"restarts": ENDLESS, "budget": ENDLESS},
}
#: Methods that can sample gradients.
SAMPLING = (
    "OneProjection",
    "OPGD",
    "OneProjectionSaddle",
    "OneProjectionSmoothed",
    "EproSGD",
    "EproORDA",
    "FullTouch",
    "LightTouch",
    "ProjectedSubgradient",
    "LogTProjections",
)


def arguments(name: str, instance: Instance, stochastic: bool, T: int) -> dict[str, Any]:
    """Return the arguments of a method for an instance; most have none."""
    given: dict[str, Any] = dict(LONGER.get(name, {}))
    if name in HORIZON:
        given["iterations"] = T
    if instance.constants is not None and name in CONSTANTS:
        given["constants"] = instance.constants
    if instance.constants is not None and name == "OPGD":
        given["lam"] = instance.constants.weight
    if stochastic:
        given["stochastic"] = True
        if name == "EproORDA":
            given["noise"] = instance.noise
    return given


def one_projection(instance: Instance, stochastic: bool, T: int) -> lopro.OneProjection:
    """Return the paper's method of one projection: the corollary that fits the problem."""
    problem = instance.problem
    constants = instance.constants or _known(problem)
    if constants.mu > 0.0:
        center = problem.constraint.project(problem.start(None))
        slope = norm(problem.objective.subgradient(center))
        ball = Ball(center, min(slope / constants.mu, norm(center) + _distance(problem)))
        if not stochastic:
            return lopro.theorems.weighted_average(constants, T, ball)
        inner = StochasticSubgradient(WeightedInverseTimeStep(constants.mu), LinearWeights(), ball)
        return lopro.OneProjection(inner, Hinge(constants.weight), T)
    try:
        return lopro.theorems.corollary_2a(constants, T, _distance(problem))
    except MissingCapabilityError:
        # Subgradients and an average of the iterates: Theorem 1 with any algorithm.
        D, Gbar = _distance(problem), constants.subgradient_bound(constants.weight)
        return lopro.OneProjection(
            SubgradientDescent(SqrtStep(D / Gbar)), Hinge(constants.weight), T
        )


def _known(problem: lopro.Problem) -> ProblemConstants:
    return constants_of(problem, Ball(problem.start(None), _distance(problem)))


def _distance(problem: lopro.Problem) -> float:
    """Return a bound on the norm of a solution, where the problem has one."""
    x = problem.constraint.project(problem.start(None))
    found = solution_radius(problem, float(problem.objective.value(x)))
    if found is None:
        raise MissingCapabilityError(
            "OneProjection's corollaries need a bound on the norm of a solution, and it is not known here; "
            "use a method that needs no constants, such as lopro.Auto()"
        )
    return found.value


def methods_for(instance: Instance) -> list[Method]:
    """Return every method; those that can sample gradients occur a second time with sampling."""
    found = []
    for public, make in methods().items():
        name = public.rpartition(".")[2]
        found.append(_method(name, make, instance, stochastic=False))
        if instance.sampled is not None and name in SAMPLING:
            found.append(_method(name, make, instance, stochastic=True))
    for schedule in (LogScaleGrid, ApproximateSharpness):
        found.append(_restarts(schedule, instance))
    return found


def _method(name: str, make: Any, instance: Instance, *, stochastic: bool) -> Method:
    def made(T: int) -> Method:
        if name == "OneProjection":
            return one_projection(instance, stochastic, T)
        return make(**arguments(name, instance, stochastic, T))

    shown = f"{name} (sampled)" if stochastic else name
    return Method(shown, made, stochastic, name in HORIZON)


def _restarts(schedule: Any, instance: Instance) -> Method:
    name = schedule.__name__
    given = {"constants": instance.constants, **LONGER.get(name, {})}
    return Method(f"{name} (LoPGD)", lambda T: lopro.LoPGD(schedule(**given)))
