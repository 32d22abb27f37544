"""Projected subgradient descent: an eigendecomposition in every iteration."""

from benchmark_utils import patient
from benchopt import BaseSolver

import lopro


class Solver(BaseSolver):
    """The method with which low-projection methods are compared."""

    name = "projected subgradient"
    requirements = ["pip::lopro"]
    sampling_strategy = "tolerance"
    stopping_criterion = patient()

    def set_objective(self, X, pairs, targets, l1):
        """Keep the data."""
        self.data = {"X": X, "pairs": pairs, "targets": targets, "l1": l1}

    def get_next(self, stop_val):
        """Halve the tolerance, which doubles the iterations."""
        return min(1.0, 0.5 * stop_val)

    def run(self, tolerance):
        """Run as many iterations as its rate requires, up to ten thousand."""
        iterations = int(min(10_000, 10 / min(1.0, tolerance)))
        method = lopro.baselines.ProjectedSubgradient(iterations=iterations, report=iterations)
        self.result = lopro.learn_metric(**self.data, method=method, tol=0.0, time_limit=30.0)

    def get_result(self):
        """Return the matrix and what it cost."""
        counts = self.result.counts
        return {
            "A": self.result.x,
            "projections": counts.projections,
            "eigendecompositions": counts.eigendecompositions,
        }
