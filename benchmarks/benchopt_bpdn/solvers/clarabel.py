"""Clarabel, an interior-point method, through CVXPY; compiling the problem is part of the time."""

import warnings

import cvxpy
import numpy as np
from benchmark_utils import next_tolerance, patient, usable
from benchopt import BaseSolver


class Solver(BaseSolver):
    """The cone program of a modelling language: suited to small problems."""

    name = "Clarabel by CVXPY"
    requirements = ["pip::cvxpy"]
    sampling_strategy = "tolerance"
    stopping_criterion = patient()

    def skip(self, A, y, sigma):
        """Skip operators and large matrices."""
        fits = isinstance(A, np.ndarray) and A.size <= 1e6
        return not fits, None if fits else "takes minutes for a million entries or more"

    def set_objective(self, A, y, sigma):
        """Keep the data."""
        self.data = A, y, sigma

    def get_next(self, stop_val):
        """Return the next tolerance."""
        return next_tolerance(stop_val)

    def run(self, tolerance):
        """State the problem and solve it."""
        A, y, sigma = self.data
        x = cvxpy.Variable(A.shape[1])
        problem = cvxpy.Problem(cvxpy.Minimize(cvxpy.norm1(x)), [cvxpy.norm2(A @ x - y) <= sigma])
        names = ("tol_gap_abs", "tol_gap_rel", "tol_feas")
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # inaccurate answers show in the errors
            problem.solve(solver="CLARABEL", **dict.fromkeys(names, usable(tolerance, 1e-10)))
        self.x = np.zeros(A.shape[1]) if x.value is None else x.value

    def get_result(self):
        """Return the point."""
        return {"x": self.x}
