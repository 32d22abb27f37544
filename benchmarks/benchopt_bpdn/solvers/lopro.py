"""The methods of lopro: `lopro.bpdn` with its defaults, and with a given method."""

from benchmark_utils import next_tolerance, patient, usable
from benchopt import BaseSolver

import lopro

METHODS = {
    "default": lambda: None,
    "MatrixFree": lopro.MatrixFree,
    "MultiplierMethod": lopro.MultiplierMethod,
    "LoPNAG": lopro.LoPNAG,
}


class Solver(BaseSolver):
    """``lopro.bpdn``: certified points, few projections."""

    name = "lopro"
    requirements = ["pip::lopro"]
    sampling_strategy = "tolerance"
    stopping_criterion = patient()
    parameters = {"method": list(METHODS)}
    test_config = {"solver": {"method": "default"}}

    def set_objective(self, A, y, sigma):
        """Keep the data."""
        self.data = A, y, sigma

    def get_next(self, stop_val):
        """Return the next tolerance."""
        return next_tolerance(stop_val)

    def run(self, tolerance):
        """Solve from scratch, at most for half a minute."""
        method = METHODS[self.method]()
        tol = usable(tolerance, 1e-10)
        self.result = lopro.bpdn(*self.data, method=method, tol=tol, time_limit=30.0)

    def get_result(self):
        """Return the point, and what it cost, certificates included."""
        parts = self.result.counts, self.result.certificate_counts
        return {
            "x": self.result.x,
            "projections": sum(part.projections for part in parts),
            "products": sum(part.matvecs + part.rmatvecs for part in parts),
        }
