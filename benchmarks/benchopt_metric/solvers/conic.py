"""Conic solvers through CVXPY; forming the moments and compiling the problem is part of the time."""

import warnings

import numpy as np
from benchmark_utils import conic_problem, next_tolerance, patient, usable
from benchopt import BaseSolver

#: Names of the tolerances, the lowest one that makes sense, and the most features.
SOLVERS = {
    "CLARABEL": (("tol_gap_abs", "tol_gap_rel", "tol_feas"), 1e-10, 64),
    "SCS": (("eps_abs", "eps_rel"), 1e-8, 200),
}


class Solver(BaseSolver):
    """The cone program of a modelling language: suited to few features."""

    name = "CVXPY on moments"
    requirements = ["pip::cvxpy", "pip::scs"]
    sampling_strategy = "tolerance"
    stopping_criterion = patient()
    parameters = {"solver": list(SOLVERS)}
    test_config = {"solver": {"solver": "CLARABEL"}}

    def skip(self, X, pairs, targets, l1):
        """Skip problems whose cone is too large."""
        most = SOLVERS[self.solver][2]
        fits = X.shape[1] <= most
        return not fits, None if fits else f"not tried on more than {most} features"

    def set_objective(self, X, pairs, targets, l1):
        """Keep the data."""
        self.data = X, pairs, targets, l1

    def get_next(self, stop_val):
        """Return the next tolerance."""
        return next_tolerance(stop_val)

    def run(self, tolerance):
        """State the problem and solve it."""
        names, lowest, _ = SOLVERS[self.solver]
        problem, matrix = conic_problem(*self.data)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # inaccurate answers show in the errors
            problem.solve(solver=self.solver, **dict.fromkeys(names, usable(tolerance, lowest)))
        found = matrix.value
        self.A = np.zeros(matrix.shape) if found is None else found

    def get_result(self):
        """Return the matrix; the operations of these solvers are not counted."""
        return {"A": self.A}
