"""Basis pursuit denoising for many right-hand sides at once: what they share is computed once.

Searches walk in step, so that each product with ``A`` or ``A'`` is one matrix product for all of them,
several times cheaper per right-hand side than alone; and ``A'A`` is formed once, in single precision. Single
precision is enough to find the signs of a solution: a step corrects the present point by a solve with a rough
factor, and its residual is computed anew, in double precision at the end. What comes out is a proposal, which
the driver certifies like any other point.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from lopro.basis_pursuit.problem import SparseProblem, stretch_at
from lopro.basis_pursuit.rough_newton import RoughNewton, Vector
from lopro.basis_pursuit.working_set import WorkingSet
from lopro.constraints import ResidualBall
from lopro.constraints.base import ValidInequality
from lopro.core.arrays import Array
from lopro.core.counting import count
from lopro.core.deadline import current_deadline
from lopro.core.threads import one_pool
from lopro.functions import Image
from lopro.maps import LinearMap, NumPyMap
from lopro.problem import Problem
from lopro.protocol import Candidate, Candidates, Card, Method, Multiplier, Workbench

__all__ = ["Lockstep", "Proposal", "Proposed"]

_AT_A_TIME = 100  # searches: enough for fast matrix products, few enough to hold their factors
_GRAM_LIMIT = 5.0  # how much larger than A its Gram matrix may be
_COLUMNS_EACH = 200  # the Gram matrix of so many columns pays with each right-hand side


@dataclass(frozen=True)
class Proposal:
    """A point that should be a solution, with what proves it, and what it cost."""

    x: Vector
    image: Vector  # A x
    inequality: ValidInequality
    steps: int


def _too_large() -> np.errstate:
    """Let numbers beyond single precision become infinite in silence: searches get lost on them."""
    return np.errstate(over="ignore", invalid="ignore")


class Lockstep:
    """Searches for many right-hand sides that share one dense real matrix in double precision.

    Parameters
    ----------
    A : LinearMap
        The matrix. It is copied in single precision and its Gram matrix is formed.
    tol : float
        Relative gap a proposal has to prove.

    Examples
    --------
    >>> import numpy as np
    >>> from lopro.basis_pursuit.pose import bpdn_problem
    >>> from lopro.maps import linear_map
    >>> from lopro.basis_pursuit.lockstep import Lockstep
    >>> A = linear_map(np.random.default_rng(0).standard_normal((60, 90)))
    >>> problems = [bpdn_problem(A, A.columns([j])[:, 0], 0.1) for j in (3, 70)]
    >>> [np.flatnonzero(p.x).tolist() for p in Lockstep(A, 1e-8).search(problems)]
    [[3], [70]]
    """

    def __init__(self, A: LinearMap, tol: float) -> None:
        self.tol = tol
        self._fine: Vector = np.asarray(A.toarray())
        rows, columns = A.shape
        current_deadline().need(float(rows) * columns**2)
        with _too_large():
            self._rough: Vector = self._fine.astype(np.float32)
            self._gram: Vector = self._rough.T @ self._rough

    @staticmethod
    def pays(A: LinearMap, count: int) -> bool:
        """Whether sharing is possible, cheaper than ``count`` calls, and affordable in memory."""
        if not isinstance(A, NumPyMap) or A.like.dtype != np.float64:
            return False
        rows, columns = A.shape
        size = 4.0 * columns**2 / (8.0 * rows * columns)
        return columns <= _COLUMNS_EACH * count and size <= _GRAM_LIMIT

    def search(self, problems: Sequence[Problem]) -> list[Proposal | None]:
        """Return a proposal for each problem; None where a search does not come to an end."""
        found: list[Proposal | None] = [None] * len(problems)
        waiting = iter(enumerate(problems))
        active: list[_Walk] = []
        with one_pool(), _too_large():
            while self._fill(active, waiting):
                current_deadline().check()
                for walk in self._multiply(active):
                    if walk.done or walk.newton.lost:
                        found[walk.number] = walk.proposal() if walk.done else None
                        active.remove(walk)
                    else:
                        walk.newton.step()
        return found

    def _fill(self, active: list[_Walk], waiting: Iterator[tuple[int, Problem]]) -> bool:
        """Let searches that wait take the places of those that have ended."""
        while len(active) < _AT_A_TIME:
            number, problem = next(waiting, (-1, None))
            if problem is None:
                break
            sparse = SparseProblem.of(problem, self._fine[0])
            active.append(_Walk(number, sparse, self._gram, self.tol))
        return bool(active)

    def _multiply(self, walks: list[_Walk]) -> list[_Walk]:
        """Compute residuals and correlations, with one product for all; return those who had a look.

        Those who need double precision wait until they are many.
        """
        rough = [walk for walk in walks if not walk.newton.fine]
        fine = [walk for walk in walks if walk.newton.fine]
        if rough and len(fine) < _AT_A_TIME // 2:
            matrix, group = self._rough, rough
        else:
            matrix, group = self._fine, fine
        points = np.zeros((len(group), matrix.shape[1]), dtype=matrix.dtype)
        for point, walk in zip(points, group, strict=True):
            point[walk.newton.support] = walk.newton.x
        images = points @ matrix.T
        residuals = np.stack([walk.y for walk in group]).astype(matrix.dtype) - images
        correlations = residuals @ matrix
        for walk, r, g, image in zip(group, residuals, correlations, images, strict=True):
            walk.look(r, g, image)
        return group


class _Walk:
    """One search: Newton's method, and whether its point proves to be good enough."""

    def __init__(self, number: int, sparse: SparseProblem, gram: Vector, tol: float) -> None:
        self.number, self.sparse, self.tol, self.done = number, sparse, tol, False
        self.y: Vector = np.asarray(sparse.ball.y)
        self.newton = RoughNewton(gram, self.y, sparse.ball.sigma, sparse.weights, sparse.nonneg)

    def look(self, r: Vector, g: Vector, image: Vector) -> None:
        """Take note of residual and correlations at the present point; end, or choose new columns."""
        excess = self.sparse.excess(g)
        if self.newton.fine and self._proves(r, g, image):
            self.done, self._image = True, image.copy()
            return
        self.newton.look(r, g, excess)

    def _proves(self, r: Vector, g: Vector, image: Vector) -> bool:
        """Whether the residual is a dual point that leaves less than half of the gap allowed."""
        found = self.sparse.proved(r, g, stretch_at(self.newton.x, image))
        if found is None or float(np.linalg.norm(r)) > self.sparse.ball.sigma:
            return False
        weights = self.sparse.weights[self.newton.support]
        fun = float(weights @ np.abs(self.newton.x))
        self._inequality = found
        return fun + found.support <= 0.5 * self.tol * fun

    def proposal(self) -> Proposal:
        x = np.zeros(self.sparse.weights.size)
        x[self.newton.support] = self.newton.x
        return Proposal(x, self._image, self._inequality, self.newton.steps)


class Proposed:
    """The method that proposes a point found in lockstep; should it not do, ``after`` goes on from it."""

    card: ClassVar[Card] = WorkingSet.card

    def __init__(self, proposal: Proposal, after: Method) -> None:
        self._proposal, self._after = proposal, after

    def __repr__(self) -> str:
        return f"Lockstep, then {self._after!r}"

    def check(self, problem: Problem) -> None:
        self._after.check(problem)

    def _image(self, problem: Problem) -> Image:
        """Return the proposal under the maps of all members; that of the ball is known."""
        return tuple(
            part
            for member in problem.constraint.members()
            for part in (
                (self._proposal.image,)
                if isinstance(member, ResidualBall)
                else member.image(self._proposal.x)
            )
        )

    def run(self, bench: Workbench, x0: Array) -> Candidates:
        found = self._proposal
        for _ in range(found.steps):
            bench.tick()
        # Shared products count for everyone who took part, and so does the Gram matrix.
        count("matvecs", found.steps)
        count("rmatvecs", found.steps + 1)
        count("factorizations")
        # The residual was computed with the proposal, which is made only where it is short enough.
        yield Candidate(found.x, Multiplier(found.inequality), image=self._image(bench.problem))
        yield from self._after.run(bench, found.x)
