"""The methods of Table 2, each with the steps that its tuning tries."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from lopro import protocol
from lopro.methods import LoPGD
from lopro.methods.baselines import OPGD, ProjectedSubgradient
from lopro.methods.inner import LastIterate, SqrtStep
from lopro.methods.paper.theorems import HalvingSteps

__all__ = ["METHODS", "Method"]

#: Makes a method from a step, a penalty weight, the iterations, and the iterations between two records.
Build = Callable[[float, float, int, int], protocol.Method]


@dataclass(frozen=True)
class Method:
    """A method: its name in the table, the steps to try in units of ``1 / L_f``, how it is made.

    Without steps to try it takes the one that was tuned for the method named ``step_of``.
    """

    name: str
    multiples: tuple[float, ...]
    build: Build
    #: Whether the answer after T iterations needs a separate run (with one projection, at its end).
    one_run_per_row: bool = False
    step_of: str = ""

    def scheme(
        self, eta: float, lam: float, iterations: int, period: int | None
    ) -> protocol.Method:
        """Return the method with a number of iterations and a record every ``period``."""
        between = iterations if period is None else min(period, iterations)
        return self.build(eta, lam, iterations, between)


def _lopgd(eta: float, lam: float, iterations: int, period: int) -> protocol.Method:
    return LoPGD(HalvingSteps(lam, eta, period, iterations // period))


def _lopgd_last(eta: float, lam: float, iterations: int, period: int) -> protocol.Method:
    return LoPGD(HalvingSteps(lam, eta, period, iterations // period, LastIterate()))


def _opgd(eta: float, lam: float, iterations: int, period: int) -> protocol.Method:
    return OPGD(lam, SqrtStep(eta), iterations)


def _pgd(eta: float, lam: float, iterations: int, period: int) -> protocol.Method:
    return ProjectedSubgradient(SqrtStep(eta), iterations=iterations, report=period)


def _pgd_last(eta: float, lam: float, iterations: int, period: int) -> protocol.Method:
    return ProjectedSubgradient(SqrtStep(eta), LastIterate(), iterations, report=period)


# A constant step is stable below 2 / L_f. A step that falls like 1 / sqrt(t) becomes stable in time, and
# projections keep the iterates bounded until then: very long steps are included for PGD.
_CONSTANT = (0.25, 0.5, 1.0, 1.5, 1.9)
_FALLING = (1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 64.0)

#: The paper's three with the mean of the iterates, to which their theorems apply; the first step of all
#: three is the same in the paper. Then two of them with the last iterate, for which nothing is proved.
METHODS = (
    Method("LoPGD", _CONSTANT, _lopgd),
    Method("LoPGD, last iterate", _CONSTANT, _lopgd_last),
    Method("OPGD", _FALLING, _opgd, one_run_per_row=True),
    Method("OPGD, step of LoPGD", (), _opgd, one_run_per_row=True, step_of="LoPGD"),
    Method("PGD", _FALLING, _pgd),
    Method("PGD, step of LoPGD", (), _pgd, step_of="LoPGD"),
    Method("PGD, last iterate", _FALLING, _pgd_last),
)
