"""NESTA of lopro.baselines; the smoothing parameter is its tolerance."""

from benchmark_utils import next_tolerance, patient, usable
from benchopt import BaseSolver

import lopro


class Solver(BaseSolver):
    """Nesterov's method on a smoothed norm, two projections in every iteration."""

    name = "NESTA"
    requirements = ["pip::lopro"]
    sampling_strategy = "tolerance"
    stopping_criterion = patient()

    def set_objective(self, A, y, sigma):
        """Keep the data."""
        self.data = A, y, sigma

    def get_next(self, stop_val):
        """Return the next tolerance."""
        return next_tolerance(stop_val)

    def run(self, tolerance):
        """Solve from scratch, at most for half a minute."""
        method = lopro.baselines.NESTA(0.1 * usable(tolerance, 1e-7), variation=1e-8)
        self.result = lopro.bpdn(*self.data, method=method, tol=0.0, time_limit=30.0)

    def get_result(self):
        """Return the point and what it cost."""
        counts = self.result.counts
        products = counts.matvecs + counts.rmatvecs
        return {"x": self.result.x, "projections": counts.projections, "products": products}
