"""SPGL1 with all its tolerances at one value. It projects on balls of the l1 norm, not on the set."""

import spgl1
from benchmark_utils import Counted, next_tolerance, patient, usable
from benchopt import BaseSolver


class Solver(BaseSolver):
    """Spectral projected gradients along the Pareto curve."""

    name = "SPGL1"
    requirements = ["pip::spgl1"]
    sampling_strategy = "tolerance"
    stopping_criterion = patient()

    def set_objective(self, A, y, sigma):
        """Keep the data."""
        self.data = A, y, sigma

    def get_next(self, stop_val):
        """Return the next tolerance."""
        return next_tolerance(stop_val)

    def run(self, tolerance):
        """Solve from scratch."""
        A, y, sigma = self.data
        self.A = Counted(A)
        names = ("bp_tol", "ls_tol", "opt_tol", "dec_tol")
        tolerances = dict.fromkeys(names, usable(tolerance, 1e-8))
        self.x = spgl1.spg_bpdn(self.A, y, sigma, **tolerances)[0]

    def get_result(self):
        """Return the point and the products it took."""
        return {"x": self.x, "products": self.A.products}
