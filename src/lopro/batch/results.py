"""The results of a batch: arrays for all problems, from which a `lopro.Result` is made on access."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, overload

import numpy as np

from lopro.batch.scaled import chosen
from lopro.certificates import Certificate
from lopro.core.arrays import Array, asarray_like, copy, namespace, to_numpy
from lopro.core.counting import Counts
from lopro.driver.result import History, Result, Status

__all__ = ["METHOD", "Batch", "Results"]

#: The text of ``result.method``.
METHOD = "BatchInteriorPoint()"
_CERTIFICATE = (
    "gap", "relative_gap", "lower_bound", "violation", "radius", "absolute_violation", "charge",
)  # fmt: skip


@dataclass(frozen=True, eq=False)
class Batch:
    """Problems that were solved together."""

    #: The arrays that `lopro.batch.solve.solve_batch` returns.
    answers: dict[str, Array]
    tol: float
    #: Status of the problems that are not certified.
    otherwise: Status
    seconds: float
    like: Array
    #: Returns the multipliers of each set of the problem from those of all rows and of the box.
    split: Callable[[Array, Array], tuple[Array, ...]]

    @cached_property
    def on_host(self) -> dict[str, np.ndarray[Any, Any]]:
        """Values, certificates and numbers of steps, on the host."""
        return {name: to_numpy(self.answers[name]) for name in ("fun", "steps", *_CERTIFICATE)}

    @cached_property
    def proved(self) -> np.ndarray[Any, Any]:
        """Which problems are certified to the tolerance."""
        return np.asarray(self.on_host["relative_gap"] <= self.tol)

    def status(self, k: int) -> Status:
        """Return the status of one problem."""
        return Status.CONVERGED if self.proved[k] else self.otherwise

    def points(self) -> Array:
        """Return all points, in the library and dtype of the data."""
        return namespace(self.like).astype(self.answers["x"], self.like.dtype)

    def result(self, k: int) -> Result:
        """Return the result of one problem, as `lopro.solve` would."""
        status, steps = self.status(k), int(self.on_host["steps"][k])
        numbers = {name: float(self.on_host[name][k]) for name in _CERTIFICATE}
        source, message = "multipliers of the rows", status.value
        if math.isfinite(numbers["radius"]):
            within = f"within a distance of {numbers['radius']:.3g}"
            source = f"{source}, {within} from x"
            if status is Status.CONVERGED:
                message = f"{message}, among the points {within}"
        return Result(
            x=asarray_like(copy(self.answers["x"][k, :]), self.like),
            fun=float(self.on_host["fun"][k]), status=status, message=message,
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

    ``results[i]`` is a `lopro.Result`; ``fun``, ``gap``, ``success``, ``status`` and ``x`` hold the values of
    all problems.

    Examples
    --------
    >>> import numpy as np, lopro
    >>> f, box = lopro.objectives.Linear(np.ones(1)), lopro.constraints.Polyhedron.box([0.5], [1.0])
    >>> results = lopro.solve_many([lopro.Problem(f, box)] * 3)
    >>> results.success.all(), results.fun.round(6), results[2].status.name
    (np.True_, array([0.5, 0.5, 0.5]), 'CONVERGED')
    """

    def __init__(self, count: int) -> None:
        self._batches: list[Batch] = []
        #: The index of the batch of each problem, or -1, and the row of the problem in it.
        self._which, self._row = np.full(count, -1), np.zeros(count, dtype=np.int64)
        #: Results of problems that were solved alone or accessed.
        self._known: dict[int, Result] = {}

    def add(self, places: Sequence[int], batch: Batch, ended: bool) -> None:
        """Add the certified problems of a batch, or all of them if the run has ``ended``."""
        kept = np.arange(len(places)) if ended else np.flatnonzero(batch.proved)
        self._which[np.asarray(places)[kept]] = len(self._batches)
        self._row[np.asarray(places)[kept]] = kept
        self._batches.append(batch)

    def put(self, place: int, result: Result) -> None:
        """Add the result of a problem that was solved alone."""
        self._known[place] = result

    def missing(self) -> list[int]:
        """Return the places of the problems that are not solved by a batch."""
        found: list[int] = np.flatnonzero(self._which < 0).tolist()
        return found

    def __len__(self) -> int:
        return len(self._which)

    @overload
    def __getitem__(self, index: int) -> Result: ...

    @overload
    def __getitem__(self, index: slice) -> Results: ...

    def __getitem__(self, index: int | slice) -> Result | Results:
        if isinstance(index, slice):
            places = range(*index.indices(len(self)))
            part = Results(len(places))
            part._batches, at = self._batches, np.asarray(places, dtype=np.int64)
            part._which, part._row = self._which[at], self._row[at]
            part._known = {k: self._known[i] for k, i in enumerate(places) if i in self._known}
            return part
        place = range(len(self))[index]
        if place not in self._known:
            self._known[place] = self._batches[self._which[place]].result(int(self._row[place]))
        return self._known[place]

    def _numbers(self, of_batch: Callable[[Batch], Any], of_result: Any, dtype: Any) -> Any:
        """Return one number for each problem, from the arrays of its batch or from its own result."""
        found = np.zeros(len(self), dtype=dtype)
        for k, batch in enumerate(self._batches):
            members = self._which == k
            found[members] = of_batch(batch)[self._row[members]]
        for place in self.missing():
            found[place] = of_result(self._known[place])
        return found

    @property
    def fun(self) -> np.ndarray[Any, Any]:
        """The objective values."""
        found: np.ndarray[Any, Any] = self._numbers(
            lambda b: b.on_host["fun"], lambda r: r.fun, float
        )
        return found

    @property
    def gap(self) -> np.ndarray[Any, Any]:
        """The certified gaps."""
        found: np.ndarray[Any, Any] = self._numbers(
            lambda b: b.on_host["gap"], lambda r: r.certificate.gap, float
        )
        return found

    @property
    def status(self) -> list[Status]:
        """The status of each problem."""
        return [
            self._known[i].status if k < 0 else self._batches[k].status(row)
            for i, (k, row) in enumerate(zip(self._which, self._row, strict=True))
        ]

    @property
    def success(self) -> np.ndarray[Any, Any]:
        """Which points are feasible and certified to the tolerance."""
        found: np.ndarray[Any, Any] = self._numbers(lambda b: b.proved, lambda r: r.success, bool)
        return found

    @property
    def x(self) -> Array:
        """All points as one array, for problems of one shape."""
        if self._batches and not self.missing():
            points = [batch.points() for batch in self._batches]
            starts = np.cumsum([0, *(points_of.shape[0] for points_of in points)])
            order = starts[self._which] + self._row
            joined = points[0] if len(points) == 1 else namespace(points[0]).concat(points)
            everything = order.size == joined.shape[0] and (order == np.arange(order.size)).all()
            return joined if everything else chosen(joined, order)
        return namespace(self[0].x).stack([self[i].x for i in range(len(self))])

    def __repr__(self) -> str:
        return f"Results({len(self)} problems, {int(self.success.sum())} certified)"
