"""Problems with one dense matrix, solved by Newton's method for all right-hand sides at once."""

from __future__ import annotations

import math
import time
from contextlib import suppress
from typing import Any

import numpy as np

from lopro.basis_pursuit.application import ProblemData
from lopro.basis_pursuit.batches.newton import SETTINGS, Proposal, Searches
from lopro.basis_pursuit.batches.padded_rows import HostColumns, WholeGram
from lopro.basis_pursuit.problem import NORMS, SparseProblem
from lopro.basis_pursuit.results import BPDNResult
from lopro.certificates import Certificate
from lopro.core.arrays import Array, asarray_like, is_complex, is_single, isfinite
from lopro.core.counting import Counts
from lopro.core.deadline import OutOfTime, current_deadline
from lopro.core.threads import one_pool
from lopro.driver.minorants import FENCHEL
from lopro.driver.result import History, Iterate, Status
from lopro.driver.workbench import Options
from lopro.maps import ArrayMap, LinearMap, NumPyMap
from lopro.problem import Problem
from lopro.protocol import Target

__all__ = ["BatchNewton", "solve_dense"]


class BatchNewton:
    """Searches for many right-hand sides that share one dense matrix in double precision.

    Parameters
    ----------
    A : LinearMap
        The matrix. Its Gram matrix is formed.
    tol : float
        The relative gap that proposals prove.

    Examples
    --------
    >>> import numpy as np
    >>> from lopro.basis_pursuit.batches.dense import BatchNewton
    >>> from lopro.basis_pursuit.application import bpdn_problem
    >>> from lopro.basis_pursuit.problem import SparseProblem
    >>> from lopro.maps import linear_map
    >>> A = linear_map(np.random.default_rng(0).standard_normal((60, 90)))
    >>> Y = A.columns([3, 70])
    >>> form = SparseProblem.of(bpdn_problem(A, Y[:, 0], 0.1), np.zeros(90))
    >>> found = BatchNewton(A, 1e-8).search(form, Y, np.full(2, 0.1))
    >>> [np.flatnonzero(p.x).tolist() for p in found]
    [[3], [70]]
    """

    def __init__(self, A: LinearMap, tol: float) -> None:
        self.tol = tol
        self._matrix = A.matrix
        rows, columns = A.shape
        on_host = isinstance(self._matrix, np.ndarray)
        current_deadline().need(rows * columns * (1.0 if on_host else columns))
        with _beyond_the_range():
            self._columns = HostColumns(self._matrix) if on_host else WholeGram(self._matrix)

    @staticmethod
    def pays(A: LinearMap, count: int) -> bool:
        """Whether sharing is possible, cheaper than ``count`` calls, and fits in memory.

        On the host the columns are copied, which takes as long as a product; a call takes several products.
        """
        if isinstance(A, NumPyMap):
            return count > 1 and not is_single(A.like)
        if not isinstance(A, ArrayMap) or is_single(A.like) or is_complex(A.like):
            return False
        rows, columns = A.shape
        return columns <= SETTINGS.columns_each * count and columns <= 2.0 * SETTINGS.memory * rows

    def search(self, form: SparseProblem, Y: Array, radii: Any) -> list[Proposal | None]:
        """Return a proposal for each right-hand side; None where a search does not end.

        Parameters
        ----------
        form : SparseProblem
            The problem of one of them; all have its weights and signs.
        Y : array of shape (m, k)
            The right-hand sides.
        radii : array of k numbers
            The radii, on the host.
        """
        found: list[Proposal | None] = []
        on_host = isinstance(self._matrix, np.ndarray)
        step = SETTINGS.products if on_host else SETTINGS.device_products
        for start in range(0, Y.shape[1], step):
            at = slice(start, min(start + step, Y.shape[1]))
            with one_pool(), _beyond_the_range():
                searches = Searches(
                    self._matrix, self._columns, form, Y[:, at].T, radii[at], self.tol
                )
                found += searches.proposals()
        return found


def _beyond_the_range() -> np.errstate:
    """Ignore overflow: searches that exceed the range of single precision are abandoned."""
    return np.errstate(over="ignore", invalid="ignore", divide="ignore")


def solve_dense(
    data: ProblemData, Y: Array, radii: Any, options: Options
) -> list[BPDNResult | None]:
    """Solve problems with one dense matrix in double precision; None for those that remain."""
    nothing: list[BPDNResult | None] = [None] * len(radii)
    if data.groups is not None or not BatchNewton.pays(data.A, len(radii)):
        return nothing
    started = time.perf_counter()
    first = data.problem(Y[:, 0], float(radii[0]))
    alike = first.constraint.like.dtype == data.A.like.dtype and isfinite(Y)  # type: ignore[union-attr]
    if not alike or not isinstance(first.objective, NORMS):
        return nothing
    form = SparseProblem.of(first, first.start(None))
    there = asarray_like(Y, data.A.like)
    with suppress(OutOfTime):
        proposals = BatchNewton(data.A, options.tol).search(form, there, radii)
        seconds = (time.perf_counter() - started) / len(radii)
        target = Target(options.tol, first.gap_scale or 0.0)
        return [
            None if p is None else _from_batch(p, first, form, target, seconds) for p in proposals
        ]
    return nothing


def _from_batch(
    found: Proposal, first: Problem, form: SparseProblem, target: Target, seconds: float
) -> BPDNResult:
    """Return a proved point as a result; its computed residual is no longer than the radius."""
    proof, status = found.inequality, Status.CONVERGED
    assert proof.dual is not None
    certificate = Certificate.of(found.fun, -proof.support, 0.0, FENCHEL, target, absolute=0.0)
    # The first correlations are those of y; each result counts the Gram matrix.
    counts = Counts(matvecs=found.steps, rmatvecs=found.steps + 1, factorizations=1)
    history = History()
    history.append(
        Iterate(
            x=found.x, epoch=1, iterations=found.steps, projections=0,
            products=counts.matvecs + counts.rmatvecs, fun=found.fun, violation=0.0,
            lower_bound=certificate.lower_bound, gap=certificate.gap,
            relative_gap=certificate.relative_gap, penalty_weight=math.nan, exact=None,
            regularity=math.nan, seconds=seconds,
        )
    )  # fmt: skip
    return BPDNResult(
        x=found.x, fun=found.fun, status=status, message=status.value, certificate=certificate,
        counts=counts, certificate_counts=Counts(), iterations=found.steps, seconds=seconds,
        method="BatchNewton", history=history, multiplier=proof,
        multipliers=proof.dual,
        dual=-proof.dual[0 if form.ball_first else 1],
    )  # fmt: skip
