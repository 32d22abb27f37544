"""The methods of lopro that prove their gap: `lopro.learn_metric`, and ADMM on all features."""

from benchmark_utils import next_tolerance, patient, usable
from benchopt import BaseSolver

import lopro

METHODS = {"default": lambda: None, "ConsensusADMM": lopro.ConsensusADMM}


class Solver(BaseSolver):
    """``lopro.learn_metric``: certified matrices."""

    name = "lopro"
    requirements = ["pip::lopro"]
    sampling_strategy = "tolerance"
    stopping_criterion = patient()
    parameters = {"method": list(METHODS)}
    test_config = {"solver": {"method": "default"}}

    def set_objective(self, X, pairs, targets, l1):
        """Keep the data."""
        self.data = {"X": X, "pairs": pairs, "targets": targets, "l1": l1}

    def get_next(self, stop_val):
        """Return the next tolerance."""
        return next_tolerance(stop_val)

    def run(self, tolerance):
        """Solve from scratch, at most for half a minute."""
        self.result = lopro.learn_metric(
            **self.data,
            method=METHODS[self.method](),
            tol=usable(tolerance, 1e-9),
            time_limit=30.0,
        )

    def get_result(self):
        """Return the matrix, and what it cost, certificates included."""
        parts = self.result.counts, self.result.certificate_counts
        return {
            "A": self.result.x,
            "projections": sum(part.projections for part in parts),
            "eigendecompositions": sum(part.eigendecompositions for part in parts),
        }
