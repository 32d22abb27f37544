"""How basis pursuit denoising is recognised in a general problem, and which method it gets."""

from __future__ import annotations

from contextlib import suppress
from typing import Any

from lopro.basis_pursuit.by_products import ByProducts
from lopro.basis_pursuit.matrix_free import MatrixFree
from lopro.basis_pursuit.problem import NORMS, residual_ball_of
from lopro.basis_pursuit.working_set import WorkingSet
from lopro.errors import MissingCapabilityError
from lopro.methods import MultiplierMethod
from lopro.problem import Problem
from lopro.protocol import Method

__all__ = ["BasisPursuit"]


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
