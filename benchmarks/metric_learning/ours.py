"""Adapters for the methods of lopro."""

from __future__ import annotations

import math

import lopro
from benchmarks.metric_learning.adapter import Adapter, Answer, Settings, Snapshot
from benchmarks.metric_learning.problems import Instance
from lopro import protocol
from lopro.constraints import PSDCone
from paper.experiments.table2_methods import METHODS, Method

__all__ = ["OURS"]

#: The largest numbers of samples and features of the part on which steps are tuned; not timed.
TUNING_SAMPLES, TUNING_FEATURES = 100, 200
#: Weight of the hinge and iterations of an epoch, as in the paper; the largest number of epochs.
WEIGHT, PERIOD, ITERATIONS = 10.0, 1000, 8000


def answer_of(
    problem: lopro.Problem, scheme: protocol.Method | None, tol: float, time_limit: float
) -> Answer:
    """Run a method of lopro and return its counts and snapshots."""
    snapshots: list[Snapshot] = []

    def record(it: lopro.Iterate) -> None:
        snapshots.append(
            Snapshot(it.seconds, it.iterations, it.projections, it.fun, it.lower_bound)
        )

    result = lopro.solve(problem, None, scheme, tol=tol, time_limit=time_limit, callback=record)
    return Answer(
        A=result.x,
        lower_bound=result.certificate.lower_bound,
        status=result.status.name.lower().replace("_", " "),
        iterations=result.iterations,
        counts=result.counts,
        certificate_counts=result.certificate_counts,
        snapshots=snapshots,
    )


class Certified(Adapter):
    """A method without parameters that ends with a proved gap."""

    def __init__(self, name: str, scheme: protocol.Method) -> None:
        self.name, self.scheme = name, scheme

    def solve(self, instance: Instance, settings: Settings) -> Answer:
        return answer_of(instance.problem, self.scheme, settings.tol, settings.time_limit)


class FromTable2(Adapter):
    """A method of the paper's Table 2 with the step that is best in short trials."""

    def __init__(self, method: Method) -> None:
        self.name, self.method = method.name, method
        self._steps: dict[str, float] = {}

    @staticmethod
    def _problem(instance: Instance) -> lopro.Problem:
        # A step of LoPGD is a few products: exact eigenpairs would be most of its time.
        return lopro.Problem(instance.objective, PSDCone(instance.dim, accuracy=0.1))

    def prepare(self, instance: Instance, settings: Settings) -> str:
        """Choose the step by trials on a part of the problem."""
        part = instance.smaller(TUNING_SAMPLES, TUNING_FEATURES)
        T = settings.tuning_iterations
        values = {multiple: self._tried(part, multiple, T) for multiple in self.method.multiples}
        best = min(values, key=lambda multiple: values[multiple])
        self._steps[instance.name] = best / instance.loss.smoothness().value
        return f"step {best:g} / L_f"

    def _tried(self, part: Instance, multiple: float, iterations: int) -> float:
        eta = multiple / part.loss.smoothness().value
        scheme = self.method.scheme(eta, WEIGHT, iterations, None)
        value = lopro.solve(self._problem(part), None, scheme, tol=0).fun
        # A step that is too long overflows, which rejects it.
        return value if math.isfinite(value) else math.inf

    def solve(self, instance: Instance, settings: Settings) -> Answer:
        return self._run(instance, settings, ITERATIONS)

    def earlier(self, instance: Instance, settings: Settings) -> list[Snapshot]:
        """Return the results of shorter runs of a method that has a feasible point at its end only."""
        snapshots: list[Snapshot] = []
        if self.method.one_run_per_row:
            for iterations in (ITERATIONS // 8, ITERATIONS // 4, ITERATIONS // 2):
                answer = self._run(instance, settings, iterations)
                if answer.iterations != iterations:
                    break  # it reached the time limit, as longer ones will
                snapshots += answer.snapshots
        return snapshots

    def _run(self, instance: Instance, settings: Settings, iterations: int) -> Answer:
        scheme = self.method.scheme(self._steps[instance.name], WEIGHT, iterations, PERIOD)
        # With a tolerance of 0 the schedule runs to its end, or to the end of the time.
        return answer_of(self._problem(instance), scheme, 0.0, settings.time_limit)


#: Methods of Table 2 that use the step of another method are left out.
TABLE2 = [FromTable2(method) for method in METHODS if method.multiples]

OURS: list[Adapter] = [
    Certified("lopro.learn_metric", lopro.FeatureWorkingSet()),
    Certified("ConsensusADMM", lopro.ConsensusADMM()),
    *TABLE2,
]
