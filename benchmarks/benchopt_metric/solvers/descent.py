"""The methods of the paper's second table: LoPGD, and PGD, which projects in every iteration."""

from benchopt import BaseSolver
from benchopt.stopping_criterion import SufficientProgressCriterion

import lopro
from lopro.methods.baselines import ProjectedSubgradient
from lopro.methods.inner import LastIterate, SqrtStep
from lopro.methods.paper.theorems import HalvingSteps
from lopro.metric.api import metric_problem
from lopro.metric.loss import PairLoss


def lopgd(step, iterations):
    """Return LoPGD with four epochs, the step halved after each; the weight is the paper's."""
    return lopro.LoPGD(HalvingSteps(10.0, step, max(1, iterations // 4), min(4, iterations)))


def pgd(step, iterations):
    """Return projected gradient descent; its last iterate is much better than the mean."""
    return ProjectedSubgradient(SqrtStep(8.0 * step), LastIterate(), iterations, report=iterations)


METHODS = {"LoPGD": lopgd, "PGD": pgd}


class Solver(BaseSolver):
    """Subgradient methods that start at zero, with steps in units of ``1 / L_f``."""

    name = "descent"
    requirements = ["pip::lopro"]
    sampling_strategy = "iteration"
    stopping_criterion = SufficientProgressCriterion(patience=6, strategy="iteration")
    parameters = {"method": list(METHODS)}
    test_config = {"solver": {"method": "LoPGD"}}

    def set_objective(self, X, pairs, targets, l1):
        """Find the smoothness of the loss, which sets the step."""
        loss = PairLoss(X, pairs, targets)
        self.problem = metric_problem(loss, l1)
        self.step = 1.0 / loss.smoothness().value

    def get_next(self, stop_val):
        """Double the iterations; the mean of fewer than some dozens is close to the start."""
        return max(32, 2 * stop_val)

    def run(self, iterations):
        """Run the whole schedule from scratch, at most for half a minute."""
        method = METHODS[self.method](self.step, max(1, iterations))
        self.result = lopro.solve(self.problem, method=method, tol=0.0, time_limit=30.0)

    def get_result(self):
        """Return the matrix and what it cost, certificates excluded."""
        counts = self.result.counts
        return {
            "A": self.result.x,
            "projections": counts.projections,
            "eigendecompositions": counts.eigendecompositions,
        }
