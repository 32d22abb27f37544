"""The measure of an answer: suboptimality of the projected matrix, its distance to the cone, and its cost."""

import math

import numpy as np
from benchopt import BaseObjective

import lopro
from lopro.metric.api import metric_problem
from lopro.metric.pairs import pair_loss


class Objective(BaseObjective):
    """``min 1/(2n) sum_e (t_e - z_e'A z_e)^2 + l1 sum over i != j of |A_ij|`` over psd ``A``."""

    name = "Sparse metric learning"
    min_benchopt_version = "1.6"
    sampling_strategy = "tolerance"
    requirements = ["pip::lopro"]

    parameters = {"l1": [1e-3]}
    test_dataset_name = "planted"

    def set_data(self, X, labels):
        """Store the data, and compute a proved lower bound on the optimum."""
        self.loss = pair_loss(X, labels, None, None, None, None).listed()
        self.problem = metric_problem(self.loss, self.l1)
        best = lopro.learn_metric(**self.get_objective(), tol=1e-7, time_limit=60.0)
        # The bound comes from a dual point; it holds independently of the solver that found it.
        self.lower_bound = best.certificate.lower_bound

    def get_objective(self):
        """Return the data that solvers receive."""
        pairs, targets = self.loss.pairs, self.loss.targets
        return {"X": self.loss.X, "pairs": pairs, "targets": targets, "l1": self.l1}

    def evaluate_result(self, A, projections=math.nan, eigendecompositions=math.nan):
        """Evaluate a matrix: its value is that of its projection on the cone, for all methods."""
        A = 0.5 * (A + A.T)
        violation = self.problem.constraint.violation(A)
        point = self.problem.constraint.project(A) if violation > 0.0 else A
        objective = float(self.problem.objective.value(point))
        return {
            "value": max(0.0, objective - self.lower_bound) / objective,
            "violation": violation,
            "f": objective,
            "features": int(np.count_nonzero(np.diagonal(point))),
            "projections": projections,
            "eigendecompositions": eigendecompositions,
        }

    def get_one_result(self):
        """Return a matrix of the right shape, for benchopt's own tests."""
        return {"A": np.eye(self.loss.X.shape[1])}
