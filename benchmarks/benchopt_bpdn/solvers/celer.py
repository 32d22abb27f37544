"""celer's Lasso inside a search for the weight whose residual is sigma."""

import math
import warnings

import numpy as np
from benchmark_utils import next_tolerance, patient, usable
from benchopt import BaseSolver
from celer import celer_path
from scipy.optimize import brentq


class Solver(BaseSolver):
    """Working sets for the penalised problem; the root search is ours."""

    name = "celer with root search"
    requirements = ["pip::celer"]
    sampling_strategy = "tolerance"
    stopping_criterion = patient()

    def skip(self, A, y, sigma):
        """Skip complex problems and operators: it reads columns of a real matrix."""
        explicit = isinstance(A, np.ndarray) and np.isrealobj(A)
        return not explicit, None if explicit else "celer needs an explicit real matrix"

    def set_objective(self, A, y, sigma):
        """Store the matrix by columns, as celer reads it."""
        self.data = np.asfortranarray(A), y, sigma

    def warm_up(self):
        """Compile."""
        self.run(1.0)

    def get_next(self, stop_val):
        """Return the next tolerance."""
        return next_tolerance(stop_val)

    def run(self, tolerance):
        """Find the weight by Brent's method; each trial starts from the solution before it."""
        tol = usable(tolerance, 1e-8)
        A, y, sigma = self.data
        inner = min(tol, 1e-3 * (sigma / np.linalg.norm(y)) ** 2)
        self.x, best = np.zeros(A.shape[1]), math.inf
        trial = self.x

        def excess(log_alpha):
            nonlocal trial, best
            with warnings.catch_warnings():
                warnings.simplefilter(
                    "ignore"
                )  # a subproblem that is not solved shows in the errors
                alphas = [math.exp(log_alpha)]
                path = celer_path(A, y, "lasso", alphas=alphas, coef_init=trial, tol=inner)[1]
            trial = path[:, 0].copy()
            off = math.log(np.linalg.norm(A @ trial - y) / sigma)
            if abs(off) < best:
                best, self.x = abs(off), trial
            return 0.0 if abs(off) <= 0.1 * tol else off

        high = low = math.log(np.abs(A.T @ y).max() / len(y))
        while excess(low) > 0.0:
            high, low = low, low - math.log(4.0)
        if low < high:
            brentq(excess, low, high, xtol=1e-12, rtol=1e-10, maxiter=60)

    def get_result(self):
        """Return the point; celer counts neither products nor projections."""
        return {"x": self.x}
