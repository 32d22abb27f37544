"""The measure of an answer: relative suboptimality and violation of a point, and what it cost."""

import math

import numpy as np
from benchopt import BaseObjective

import lopro
from lopro.maps import linear_map


class Objective(BaseObjective):
    """``min |x|_1`` subject to ``|A x - y| <= sigma``."""

    name = "Basis pursuit denoising"
    min_benchopt_version = "1.6"
    sampling_strategy = "tolerance"
    requirements = ["pip::lopro"]

    # A tenth of the radius means that most of the noise has to be fitted: a harder problem.
    parameters = {"radius": [1.0]}
    test_dataset_name = "uniform"

    def set_data(self, A, y, sigma):
        """Store the data, and compute a proved lower bound on the optimum."""
        self.A, self.y, self.sigma = linear_map(A, "A"), y, self.radius * sigma
        best = lopro.bpdn(A, y, self.sigma, tol=1e-9)
        # The bound comes from a dual point; it holds independently of the solver that found it.
        self.lower_bound = best.certificate.lower_bound

    def get_objective(self):
        """Return the data that solvers receive."""
        return {"A": self.A.source, "y": self.y, "sigma": self.sigma}

    def evaluate_result(self, x, projections=math.nan, products=math.nan):
        """Return both relative errors of a point; the value is the larger one."""
        length = float(np.abs(x).sum())
        residual = float(np.linalg.norm(self.A.forward(x) - self.y))
        violation = max(0.0, residual - self.sigma) / self.sigma
        suboptimality = max(0.0, length - self.lower_bound) / self.lower_bound
        return {
            "value": max(suboptimality, violation),
            "suboptimality": suboptimality,
            "violation": violation,
            "l1_norm": length,
            "projections": projections,
            "products": products,
        }

    def get_one_result(self):
        """Return a point of the right shape, for benchopt's own tests."""
        return {"x": np.zeros(self.A.shape[1], dtype=self.y.dtype)}
