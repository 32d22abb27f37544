"""Adapters for the methods of lopro."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

import lopro
from benchmarks.bpdn.adapter import Adapter, Answer
from benchmarks.bpdn.problems import Instance
from lopro.maps import linear_map
from lopro.methods.baselines import NESTA
from lopro.methods.paper.adaptive import AdaptiveSmoothing
from lopro.methods.paper.theorems import HalvingSmoothing

__all__ = ["OURS"]

#: The certified relative gap at which methods of lopro stop.
TOLERANCE = 1e-8


def answer_of(run: Callable[..., lopro.Result], cap: float, tol: float) -> Answer:
    """Run a method of lopro and return its counts, those of its certificates included."""
    history: list[tuple[float, int, float]] = []

    def record(iterate: lopro.Iterate) -> None:
        history.append((iterate.seconds, iterate.products, iterate.relative_gap))

    result = run(tol=tol, time_limit=cap, callback=record)
    parts = (result.counts, result.certificate_counts)
    # Work on single columns is not a product with all of A, but it has a cost, so it is shown.
    columns = sum(c.columns for c in parts)
    return Answer(
        x=result.x,
        forward=sum(c.matvecs for c in parts),
        adjoint=sum(c.rmatvecs for c in parts),
        projections=sum(c.projections for c in parts),
        iterations=result.iterations,
        status=result.status.name.lower().replace("_", " ")
        + (f", {columns} columns read" if columns else ""),
        lower_bound=result.certificate.lower_bound,
        history=history,
    )


class Bpdn(Adapter):
    """`lopro.bpdn` with its default method."""

    name = "lopro.bpdn"

    def solve(self, instance: Instance, cap: float) -> Answer:
        def run(**options: Any) -> lopro.Result:
            return lopro.bpdn(instance.A, instance.y, instance.sigma, **options)

        return answer_of(run, cap, TOLERANCE)


class Method(Adapter):
    """A given method on the same problem; ``make`` constructs it for the instance."""

    def __init__(self, name: str, make: Callable[[Instance], Any], tol: float = TOLERANCE) -> None:
        self.name, self.make, self.tol = name, make, tol

    def solve(self, instance: Instance, cap: float) -> Answer:
        ball = lopro.constraints.ResidualBall(
            instance.for_projections, instance.y, instance.sigma, tight_frame=instance.tight_frame
        )
        objective = lopro.objectives.L1Norm(shape=(instance.A.shape[1],))
        problem = lopro.Problem(objective, ball, gap_scale=0.0)
        method = self.make(instance)

        def run(**options: Any) -> lopro.Result:
            return lopro.solve(problem, method=method, **options)

        return answer_of(run, cap, self.tol)


class Tuned(Method):
    """LoPNAG as in the paper's table: the weight is twice the multiplier of the solution.

    That multiplier comes from a solution computed in advance and not timed, which is the meaning of "tuned".
    """

    def __init__(self) -> None:
        super().__init__("LoPNAG halving (tuned)", self._halving, tol=1e-6)
        self._known: dict[str, float] = {}

    def _halving(self, instance: Instance) -> lopro.LoPNAG:
        return lopro.LoPNAG(HalvingSmoothing(2.0 * self._known[self._key(instance)], epochs=1))

    @staticmethod
    def _key(instance: Instance) -> str:
        return f"{instance.name} {instance.A.shape}"

    def prepare(self, instance: Instance, cap: float) -> None:
        """Find the multiplier ``1 / (2 |A^H r|_inf)`` of the constraint in squared form."""
        x = lopro.bpdn(instance.A, instance.y, instance.sigma, tol=1e-6, time_limit=cap).x
        A = linear_map(instance.A)
        pulled = A.adjoint(instance.y - A.forward(x))
        self._known[self._key(instance)] = 0.5 / float(np.abs(pulled).max())


OURS: list[Adapter] = [
    Bpdn(),
    Method("MatrixFree", lambda _: lopro.MatrixFree()),
    Method("MultiplierMethod", lambda _: lopro.MultiplierMethod()),
    Method("LoPNAG adaptive", lambda _: lopro.LoPNAG(AdaptiveSmoothing()), tol=1e-6),
    Tuned(),
    Method("NESTA", lambda _: NESTA(), tol=1e-6),
]
