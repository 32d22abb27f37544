"""The LASSO in its constrained form: ``min |A x - y|_2  s.t.  sum w_i |x_i| <= tau``, certified.

The problem is the inverse of basis pursuit denoising: with ``v(sigma)`` the least norm for a radius, the
optimal residual is the ``sigma`` with ``v(sigma) = tau``, a point of the Pareto curve, found by Newton's
method (E. van den Berg and M. Friedlander, Probing the Pareto frontier for basis pursuit solutions, 2008). A
dual point ``nu`` of `bpdn` proves ``|A x - y| >= (Re <y, nu> - tau) / |nu|`` for every feasible ``x``, and
that number is also the next iterate of Newton's method: the radii are proved lower bounds.
"""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np
import scipy  # parts of it load when first used

from lopro.basis_pursuit.application import ProblemData, solve_one
from lopro.basis_pursuit.problem import SparseProblem
from lopro.basis_pursuit.results import BPDNResult, LassoResult
from lopro.constraints.pulled_back import stretch_at
from lopro.core.arrays import Array, asarray_like, eps, norm, to_numpy, widest
from lopro.core.counting import Counts, counting
from lopro.core.deadline import Deadline, OutOfTime, current_deadline
from lopro.core.validation import check_array, check_number
from lopro.driver.result import History, Status
from lopro.driver.workbench import Options
from lopro.maps.double import wide_dtype
from lopro.protocol import Certificate, Target

__all__ = ["ParetoSearch", "solve_constrained"]

#: The maximal number of radii. Newton's method takes a few; bisection below an infeasible radius one per
#: digit. A tenth, 6, changes no count of the instances of `python -m benchmarks.constants basis_pursuit`.
_MOST_RADII = 60
#: The absolute part of the tolerance in units of ``|y|``: the gap scale.
_FLOOR = 1e-3
_SOURCE = "dual point of basis pursuit denoising"


def solve_constrained(
    data: ProblemData, y: Any, tau: float, x0: Array | None, options: Options
) -> LassoResult:
    """Minimise the residual over vectors whose norm is at most ``tau``; see `lopro.lasso`."""
    tau, tol = check_number("tau", tau, minimum=0.0), options.tol
    with Deadline(options.time_limit).active() as deadline:
        y = check_array("y", y, ndim=1)
        # The gap of bpdn is an error of the bound here; 98 % of the tolerance is left for the root search.
        finer = dataclasses.replace(options.within_call(), tol=max(0.02 * tol, 1e-12))
        search = ParetoSearch(data, y, tau, Target(tol, _FLOOR * norm(y)))
        try:
            with counting(search.own):
                search.run(x0, finer)
        except OutOfTime:
            search.late()
        return search.result(deadline.elapsed)


class ParetoSearch:
    """The state of the root search: the best point, the best bound, and the radii between them."""

    def __init__(self, data: ProblemData, y: Array, tau: float, target: Target) -> None:
        self.data, self.y, self.tau, self.target = data, y, tau, target
        problem = data.problem(y, 0.0)
        self.like = problem.start(None)
        self.sparse = SparseProblem.of(
            problem, to_numpy(self.like)
        )  # bounds are computed on the host
        self.lower, self.upper = 0.0, norm(y)
        self.x: Array = self.like
        self.dual: Array | None = None
        self._stretch = 0.0  # a lower estimate of the norm of A
        self.own, self.runs = Counts(), list[BPDNResult]()
        self.curve: list[tuple[float, float]] = []
        self.empty = -1.0  # the largest radius that is proved to be infeasible
        self.status: Status | None = None

    @property
    def _dual_like(self) -> Array:
        """An array of the type of dual points: complex if A or y is."""
        return widest((self.sparse.ball.y, self.sparse.ball.like))

    @property
    def done(self) -> bool:
        """Whether the gap is small enough."""
        return self.target.reached(self.upper - self.lower, self.upper)

    def run(self, x0: Array | None, options: Options) -> None:
        """Solve for radii until the gap is closed or there is no progress."""
        self._keep_if_better(self.like if x0 is None else self.data.problem(self.y, 0.0).start(x0))
        start, tried_least_squares = x0, False
        sigma = self._next()
        for _ in range(_MOST_RADII):
            if self.done or self.status is not None or not sigma < self.upper:
                return
            found = solve_one(self.data.problem(self.y, sigma), start, None, options)
            self.runs.append(found)
            if found.status is Status.INFEASIBLE:
                self.empty = max(self.empty, sigma)
                if not tried_least_squares:
                    tried_least_squares = True
                    self._try_least_squares()
                sigma = self._next()
                continue
            if not found.success:
                self.status = found.status
                return
            start = found.x
            self.curve.append((sigma, float(found.fun)))
            self._learn(found, sigma)
            self._keep_if_better(found.x)
            sigma = self._next()

    def _next(self) -> float:
        """Return the next radius: the lower bound, which is Newton's iterate.

        Bisect if that is infeasible. Without a bound take a share of the residual, as equations cost more.
        """
        if self.lower <= self.empty:
            return 0.5 * (self.empty + self.upper)
        if self.lower > 0.0 or self.upper <= _FLOOR * norm(self.y):
            return self.lower
        return 0.05 * self.upper

    def _try_least_squares(self) -> None:
        """Evaluate the least-squares solution, which is optimal if its norm is at most tau."""
        A = self.data.A
        operator = scipy.sparse.linalg.LinearOperator(
            A.shape,
            matvec=lambda v: to_numpy(A.forward(asarray_like(v.ravel(), self.like))),
            rmatvec=lambda v: to_numpy(A.adjoint(asarray_like(v.ravel(), self.like))),
            dtype=wide_dtype(to_numpy(self.like).dtype),
        )
        close = 10.0 * eps(self.like)
        steps = 2 * min(A.shape)
        x = scipy.sparse.linalg.lsmr(
            operator,
            to_numpy(self.y).astype(operator.dtype),
            atol=close,
            btol=close,
            conlim=0.0,
            maxiter=steps,
        )[0]
        current_deadline().check()
        self._keep_if_better(asarray_like(np.maximum(x, 0.0) if self.data.nonneg else x, self.like))

    def _learn(self, found: BPDNResult, sigma: float) -> None:
        """Improve the bound by the dual point of basis pursuit denoising."""
        if found.dual is None:
            return
        ball = self.data.problem(self.y, sigma)
        length = norm(found.dual)
        support = SparseProblem.of(ball, self.like).ball.support_image((-found.dual,))
        if length > 0.0:
            self._raise_lower(sigma - (support + self.tau) / length, found.dual)

    def _keep_if_better(self, x: Array) -> None:
        """Scale a point to norm tau, keep it if its residual is shorter, and use that as a dual point."""
        size = float(self.sparse.objective.value(x))
        x = x * (self.tau / size) if size > self.tau else x
        ball = self.sparse.ball
        image = ball.image(x)[0]
        r = asarray_like(ball.y, self._dual_like) - image
        if norm(r) <= self.upper:
            self.upper, self.x = norm(r), x
        g = ball.pullback((r,))
        self._stretch = self._stretch or stretch_at(g, ball.image(asarray_like(g, x))[0])
        self._stretch = max(self._stretch, stretch_at(x, image))
        found = self.sparse.proved(to_numpy(r), to_numpy(g), self._stretch)
        if found is not None and found.dual is not None:
            of_ball = found.dual[0 if self.sparse.ball_first else 1]
            self._raise_lower((-found.support - self.tau) / norm(of_ball), -of_ball)

    def _raise_lower(self, bound: float, dual: Array | None) -> None:
        bound -= 8.0 * eps(self.like) * abs(bound)
        if bound > self.lower:
            self.lower, self.dual = bound, dual

    def late(self) -> None:
        """Set the status of a run whose deadline has passed."""
        stopped = current_deadline().stopped_by_user
        self.status = Status.INTERRUPTED if stopped else Status.TIME_LIMIT

    def result(self, seconds: float) -> LassoResult:
        """Return the best point with its certificate."""
        size = float(self.sparse.objective.value(self.x))
        violation = max(0.0, size / self.tau - 1.0) if self.tau > 0.0 else 0.0
        certificate = Certificate.of(
            self.upper, self.lower, violation, _SOURCE, self.target,
            absolute=max(0.0, size - self.tau),
        )  # fmt: skip
        # A bound above the residual by more than rounding errors would be false.
        contradiction = self.lower - self.upper > 1e-9 * norm(self.y)
        done = self.done and not contradiction
        status = Status.CONVERGED if done else self.status or Status.STALLED
        return LassoResult(
            x=asarray_like(self.x, self.like),
            fun=self.upper,
            status=status,
            message=status.value,
            certificate=certificate,
            counts=_total([self.own, *(r.counts for r in self.runs)]),
            certificate_counts=_total([r.certificate_counts for r in self.runs]),
            iterations=sum(r.iterations for r in self.runs),
            seconds=seconds,
            method="root search on the Pareto curve",
            history=self.runs[-1].history if self.runs else History(),
            warnings=tuple(
                w for r in self.runs if r.status is not Status.INFEASIBLE for w in r.warnings
            ),
            dual=None if self.dual is None else asarray_like(self.dual, self._dual_like),
            curve=tuple(sorted(self.curve)),
        )


def _total(parts: list[Counts]) -> Counts:
    """Return the sum of counts."""
    names = [field.name for field in dataclasses.fields(Counts)]
    return Counts(**{name: sum(getattr(part, name) for part in parts) for name in names})
