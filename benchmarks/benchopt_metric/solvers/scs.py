"""SCS, an operator-splitting conic solver, through CVXPY; compiling the problem is part of the time."""

import warnings

import cvxpy
import numpy as np
from benchmark_utils import next_tolerance, patient, usable
from benchopt import BaseSolver


class Solver(BaseSolver):
    """The cone program of a modelling language: suited to small problems."""

    name = "SCS by CVXPY"
    requirements = ["pip::cvxpy", "pip::scs"]
    sampling_strategy = "tolerance"
    stopping_criterion = patient()

    def skip(self, X, pairs, targets, l1):
        """Skip large problems: it forms a matrix with d^2 entries for each pair."""
        fits = len(targets) * X.shape[1] ** 2 <= 2e6
        return not fits, None if fits else "needs d^2 numbers for each pair: too many"

    def set_objective(self, X, pairs, targets, l1):
        """Form the vectors of ``z z'``."""
        Z = X[pairs[0]] - X[pairs[1]]
        outer = np.einsum("ei,ej->eij", Z, Z).reshape(len(Z), -1)
        self.data = outer, targets, l1, X.shape[1]

    def get_next(self, stop_val):
        """Return the next tolerance."""
        return next_tolerance(stop_val)

    def run(self, tolerance):
        """State the problem and solve it."""
        outer, targets, l1, d = self.data
        A = cvxpy.Variable((d, d), PSD=True)
        loss = cvxpy.sum_squares(outer @ cvxpy.vec(A, order="C") - targets) / (2 * len(targets))
        off = l1 * (cvxpy.sum(cvxpy.abs(A)) - cvxpy.trace(A))  # the diagonal is not negative
        tol = usable(tolerance, 1e-7)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # inaccurate answers show in the errors
            problem = cvxpy.Problem(cvxpy.Minimize(loss + off))
            problem.solve(solver="SCS", eps_abs=tol, eps_rel=tol, time_limit_secs=30.0)
        self.A = np.zeros((d, d)) if A.value is None else A.value

    def get_result(self):
        """Return the matrix."""
        return {"A": self.A}
