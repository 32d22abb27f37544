"""The result of a run: the point, its status, its certificate, the counts and the history."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from lopro.certificates import Certificate
from lopro.certificates.certificate import Status
from lopro.constraints.base import ValidInequality
from lopro.core.arrays import Array
from lopro.core.counting import Counts
from lopro.core.optional import needing
from lopro.driver.candidate import Claim
from lopro.driver.plotting import plot_result
from lopro.driver.printing import Printed

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["History", "Iterate", "Result", "Status"]


@dataclass(frozen=True)
class Iterate:
    """The state of a run after an epoch, as callbacks and `lopro.iterate` receive it.

    ``x`` is the candidate; the other fields become a row of the history. ``products`` are those with a matrix
    or operator and its adjoint so far, certificates included. ``exact`` says whether R2
    holds, where a penalised objective was minimised, and ``regularity`` is the pointwise ratio
    ``c(x_hat) / |x_hat - x|`` of a projection, an estimate of rho from above (NaN where no projection moved
    the point). ``claimed_bound`` is the lower bound that theorems give for the constants supplied; it is no
    part of ``lower_bound``, ``gap`` and ``relative_gap``.
    """

    x: Array
    epoch: int
    iterations: int
    projections: int
    products: int
    fun: float
    violation: float
    lower_bound: float
    gap: float
    relative_gap: float
    penalty_weight: float
    exact: bool | None
    regularity: float
    seconds: float
    claimed_bound: float = -math.inf

    def row(self) -> dict[str, Any]:
        """Return all fields but the point."""
        row = dict(vars(self))
        del row["x"]
        return row


class History:
    """One row per epoch, as columns: ``history["gap"]``, ``to_dict()``, ``to_pandas()``.

    Examples
    --------
    >>> from lopro.driver.result import History
    >>> History().columns[:3]
    ('epoch', 'iterations', 'projections')
    """

    columns: tuple[str, ...] = tuple(f.name for f in dataclasses.fields(Iterate) if f.name != "x")

    def __init__(self) -> None:
        self._rows: list[dict[str, Any]] = []

    def append(self, iterate: Iterate) -> None:
        """Add a row."""
        self._rows.append(iterate.row())

    def snapshot(self) -> History:
        """Return a copy that does not grow with the run."""
        copy = History()
        copy._rows = list(self._rows)
        return copy

    def __len__(self) -> int:
        return len(self._rows)

    def __iter__(self) -> Iterator[dict[str, Any]]:
        return iter(self._rows)

    def __getitem__(self, column: str) -> list[Any]:
        if column not in self.columns:
            raise KeyError(f"no column {column!r}; the columns are {', '.join(self.columns)}")
        return [row[column] for row in self._rows]

    def to_dict(self) -> dict[str, list[Any]]:
        """Return the columns as lists."""
        return {column: self[column] for column in self.columns}

    def to_pandas(self) -> Any:
        """Return a DataFrame; needs pandas."""
        with needing("to_pandas", "pandas", "pandas"):
            import pandas as pd

        return pd.DataFrame(self.to_dict())


@dataclass(frozen=True, repr=False)
class Result(Printed):
    """The answer of `lopro.solve`.

    ``success`` is True exactly when ``status`` is CONVERGED: a feasible point whose certified gap is
    below the tolerance. See ``status``, ``message`` and ``warnings`` for other outcomes.

    Examples
    --------
    >>> import numpy as np, lopro
    >>> f = lopro.objectives.SquaredDistance(np.array([3.0, 0.0]))
    >>> box = lopro.constraints.Polyhedron.box(-np.ones(2), np.ones(2))
    >>> result = lopro.solve(lopro.Problem(f, box))
    >>> result.success, round(result.fun, 6)
    (True, 2.0)
    """

    x: Array = field(repr=False)
    fun: float
    status: Status
    message: str
    certificate: Certificate
    counts: Counts
    certificate_counts: Counts
    iterations: int
    seconds: float
    method: str
    history: History = field(repr=False)
    warnings: tuple[str, ...] = ()
    #: The valid inequality of the set that the lower bound follows from; None if it has another source.
    multiplier: ValidInequality | None = field(default=None, repr=False)
    #: The same by constraints: one array for each set of rows ``l <= Mx <= u`` (or ``Mx in Q``), in order,
    #: with ``grad f(x) + sum of M'v = 0``: positive at upper bounds and negative at lower ones, as in SciPy's
    #: ``trust-constr`` and, for ``Mx <= u`` and ``Mx == u``, as CVXPY's dual values. None if not known.
    multipliers: tuple[Array, ...] | None = field(default=None, repr=False)
    #: The proof that there is no solution: multipliers of rows that contradict each other (INFEASIBLE), or
    #: a direction along which the objective decreases without bound (UNBOUNDED).
    ray: Any = field(default=None, repr=False)
    #: The gap of ``x`` that a theorem gives if the constants supplied are correct. It is no part of the
    #: certificate and does not affect ``success``.
    claim: Claim | None = None

    @property
    def success(self) -> bool:
        """Whether the point is feasible and certified to the tolerance."""
        return self.status is Status.CONVERGED

    def plot(self, ax: Axes | None = None) -> Axes:
        """Draw the gap against the iterations, or the point of a run with one candidate; needs matplotlib."""
        return plot_result(self, ax)
