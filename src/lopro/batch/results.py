"""The answers of a batch: arrays for all problems, and a `lopro.Result` for each one that is looked at."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, overload

import numpy as np

from lopro.certificates import Certificate
from lopro.core.arrays import Array, asarray_like, copy, namespace, to_numpy
from lopro.core.counting import Counts
from lopro.driver.result import History, Result, Status

__all__ = ["METHOD", "Batch", "Results"]

#: What ``result.method`` says.
METHOD = "BatchInteriorPoint()"
_CERTIFICATE = (
    "gap", "relative_gap", "lower_bound", "violation", "radius", "absolute_violation", "charge",
)  # fmt: skip


@dataclass(frozen=True, eq=False)
class Batch:
    """Problems that were solved together."""

    #: What `lopro.batch.solve.solve_batch` returns.
    answers: dict[str, Array]
    tol: float
    #: Why those ended that are not certified.
    otherwise: Status
    seconds: float
    like: Array
    #: Returns the multipliers of each set, as users count them, from those of all rows and of the box.
    split: Callable[[Array, Array], tuple[Array, ...]]

    @cached_property
    def told(self) -> dict[str, np.ndarray[Any, Any]]:
        """Values, certificates and steps, on the host."""
        return {name: to_numpy(self.answers[name]) for name in ("fun", "steps", *_CERTIFICATE)}

    @cached_property
    def status(self) -> list[Status]:
        """Why each run ended."""
        proved = self.told["relative_gap"] <= self.tol
        return [Status.CONVERGED if each else self.otherwise for each in proved]

    def points(self) -> Array:
        """Return all points, in the library and dtype of the data."""
        return namespace(self.like).astype(self.answers["x"], self.like.dtype)

    def result(self, k: int) -> Result:
        """Return what `lopro.solve` would return for one problem."""
        status, steps = self.status[k], int(self.told["steps"][k])
        numbers = {name: float(self.told[name][k]) for name in _CERTIFICATE}
        source, message = "multipliers of the rows", status.value
        if math.isfinite(numbers["radius"]):
            within = f"within a distance of {numbers['radius']:.3g}"
            source = f"{source}, {within} from x"
            if status is Status.CONVERGED:
                message = f"{message}, among the points {within}"
        return Result(
            x=asarray_like(copy(self.answers["x"][k, :]), self.like),
            fun=float(self.told["fun"][k]), status=status, message=message,
            certificate=Certificate(source=source, **numbers),
            counts=Counts(factorizations=steps + 1), certificate_counts=Counts(), iterations=steps,
            seconds=self.seconds, method=METHOD, history=History(),
            multipliers=tuple(
                asarray_like(v, self.like)
                for v in self.split(self.answers["rows"][k, :], self.answers["box"][k, :])
            ),
        )  # fmt: skip


class Results(Sequence[Result]):
    """The results of `lopro.solve_many`, in the order of the problems.

    ``results[i]`` is a `lopro.Result`; ``fun``, ``gap``, ``success`` and ``status`` are of all problems.

    Examples
    --------
    >>> import numpy as np, lopro
    >>> f, box = lopro.objectives.Linear(np.ones(1)), lopro.constraints.Polyhedron.box([0.5], [1.0])
    >>> results = lopro.solve_many([lopro.Problem(f, box)] * 3)
    >>> results.success.all(), results.fun.round(6), results[2].status.name
    (np.True_, array([0.5, 0.5, 0.5]), 'CONVERGED')
    """

    def __init__(self, entries: Sequence[Result | tuple[Batch, int]]) -> None:
        self._entries = list(entries)

    def __len__(self) -> int:
        return len(self._entries)

    @overload
    def __getitem__(self, index: int) -> Result: ...

    @overload
    def __getitem__(self, index: slice) -> Results: ...

    def __getitem__(self, index: int | slice) -> Result | Results:
        if isinstance(index, slice):
            return Results(self._entries[index])
        entry = self._entries[index]
        if not isinstance(entry, Result):
            entry = self._entries[index] = entry[0].result(entry[1])
        return entry

    @property
    def fun(self) -> np.ndarray[Any, Any]:
        """The values."""
        entries = self._entries
        return np.array(
            [e.fun if isinstance(e, Result) else e[0].told["fun"][e[1]] for e in entries]
        )

    @property
    def gap(self) -> np.ndarray[Any, Any]:
        """The certified gaps."""
        return np.array(
            [
                e.certificate.gap if isinstance(e, Result) else e[0].told["gap"][e[1]]
                for e in self._entries
            ]
        )

    @property
    def status(self) -> list[Status]:
        """Why each run ended."""
        return [e.status if isinstance(e, Result) else e[0].status[e[1]] for e in self._entries]

    @property
    def success(self) -> np.ndarray[Any, Any]:
        """Which points are feasible and certified to the tolerance."""
        return np.array([status is Status.CONVERGED for status in self.status])

    @property
    def x(self) -> Array:
        """All points as one array, for problems of one shape."""
        batches = dict.fromkeys(e[0] for e in self._entries if not isinstance(e, Result))
        if self._entries == [(b, k) for b in batches for k in range(len(b.status))] != []:
            points = [batch.points() for batch in batches]
            return points[0] if len(points) == 1 else namespace(points[0]).concat(points)
        return namespace(self[0].x).stack([self[i].x for i in range(len(self))])

    def __repr__(self) -> str:
        return f"Results({len(self)} problems, {int(self.success.sum())} certified)"
