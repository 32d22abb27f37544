"""From a matrix and measurements to a `Problem`, the method that suits it, and its result."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass
from typing import Any

import numpy as np

from lopro.basis_pursuit.blocks import BlockNorm
from lopro.basis_pursuit.by_products import ByProducts
from lopro.basis_pursuit.free_columns import FreeColumns
from lopro.basis_pursuit.matrix_free import MatrixFree
from lopro.basis_pursuit.problem import NORMS, residual_ball_of
from lopro.basis_pursuit.result import BPDNResult
from lopro.basis_pursuit.working_set import WorkingSet
from lopro.constraints import Box, Intersection, ResidualBall
from lopro.core.arrays import Array, asarray_like, is_array, is_complex, to_numpy
from lopro.core.deadline import current_deadline
from lopro.core.validation import check_array, check_shape
from lopro.driver.options import Options
from lopro.driver.run import Run
from lopro.errors import MissingCapabilityError
from lopro.maps import linear_map
from lopro.methods import MultiplierMethod
from lopro.objectives import L1Norm
from lopro.problem import Problem
from lopro.protocol import Method
from lopro.solving import run_to_the_end

__all__ = ["BasisPursuit", "ProblemData", "bpdn_problem", "solve_one"]


class BasisPursuit:
    """The l1 norm over a residual ball, possibly with ``x >= 0``."""

    name = "basis pursuit denoising"
    methods: dict[str, Any] = {  # noqa: RUF012
        "ByProducts": ByProducts,
        "MatrixFree": MatrixFree,
        "WorkingSet": WorkingSet,
    }

    def recognise(self, problem: Problem) -> Method | None:
        """Return the method of `lopro.bpdn` for a problem of this form."""
        ball, _ = residual_ball_of(problem.constraint)
        objective = problem.objective
        if ball is None or not isinstance(objective, NORMS) or objective.least_weight <= 0.0:
            return None
        return self.choose(problem)

    def choose(self, problem: Problem) -> Method:
        """Return the method: by columns where ``A`` has some or can be read, matrix-free otherwise."""
        for method in (WorkingSet(), ByProducts(), MatrixFree()):
            with suppress(MissingCapabilityError):
                method.check(problem)
                return method
        return MultiplierMethod()


def bpdn_problem(
    A: Any,
    y: Any,
    sigma: float,
    *,
    weights: Any = None,
    nonneg: bool = False,
    groups: Any = None,
) -> Problem:
    """Return the problem that `bpdn` solves, for use with `lopro.solve` and `lopro.iterate`.

    Examples
    --------
    >>> import numpy as np
    >>> from lopro.basis_pursuit.application import bpdn_problem
    >>> bpdn_problem(np.eye(2), np.ones(2), 0.5).shape
    (2,)
    """
    ball = ResidualBall(A, y, sigma)
    d = ball.A.shape[1]
    objective: L1Norm | BlockNorm
    if groups is not None:
        objective = BlockNorm(groups, weights)
        check_shape("groups", objective.labels, (d,))
        if len(objective.of_blocks) == d:  # groups of one
            objective = L1Norm(_in_precision_of(ball.like, objective.of_blocks[objective.labels]))
    else:
        objective = L1Norm(_in_precision_of(ball.like, weights), shape=(d,))
    if objective.least_weight <= 0.0:
        raise ValueError("weights must be positive: a coefficient that costs nothing has no bound")
    if not nonneg:
        return Problem(objective, ball, gap_scale=0.0)
    if is_complex(ball.like):
        raise TypeError("nonneg asks for real data, got complex A or y")
    orthant = Box(np.zeros(d, dtype=to_numpy(ball.y[:1]).dtype), np.full(d, np.inf))
    return Problem(objective, Intersection(ball, orthant), gap_scale=0.0)


def _in_precision_of(like: Array, weights: Any) -> Any:
    """Return weights that do not widen the points: the precision of ``A`` and ``y`` decides."""
    if weights is None or getattr(weights, "ndim", np.ndim(weights)) == 0:
        return weights
    checked = check_array("weights", weights, allow_complex=False)
    return asarray_like(checked, abs(like)) if is_array(weights) else to_numpy(checked)


@dataclass(frozen=True, eq=False)
class ProblemData:
    """What the problems of one call share: the matrix, the weights, the signs."""

    A: Any
    weights: Any = None
    nonneg: bool = False
    groups: Any = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "A", linear_map(self.A, "A"))

    def free_columns(self) -> FreeColumns | None:
        """Return how to do without the columns of weight 0; None where there are none, or only these."""
        if self.weights is None or self.nonneg or self.groups is not None:
            return None
        w = to_numpy(check_array("weights", self.weights, allow_complex=False))
        fits = w.shape == (self.A.shape[1],)
        if not fits or w.min() != 0.0 or w.max() == 0.0:
            return None
        return FreeColumns(self.A, w)

    def problem(self, y: Array, sigma: float) -> Problem:
        """Return the problem for one right-hand side."""
        return bpdn_problem(
            self.A, y, sigma, weights=self.weights, nonneg=self.nonneg, groups=self.groups
        )


def solve_one(
    problem: Problem, x0: Array | None, method: Method | None, options: Options
) -> BPDNResult:
    """Solve one problem, by the method that suits it if none is given."""
    chosen = BasisPursuit().choose(problem) if method is None else method
    if current_deadline().passed:
        # The deadline of the batch has passed: return TIME_LIMIT without evaluating the start.
        run = Run(problem, chosen, x0, options)
        run.give_up()
        return BPDNResult.of(run.result(), problem)
    return BPDNResult.of(run_to_the_end(problem, x0, chosen, options), problem)
