"""The answers of a batch: arrays for all problems, and a `lopro.Result` for each one that is looked at."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, overload

import numpy as np

from lopro.batch.solve import Answers
from lopro.certificates import Certificate
from lopro.core.arrays import Array, asarray_like, copy, namespace, to_numpy
from lopro.core.counting import Counts
from lopro.driver.result import History, Result, Status

__all__ = ["METHOD", "Batch", "Results"]

#: What ``result.method`` says.
METHOD = "BatchInteriorPoint()"
_SOURCE = "multipliers of the rows"


@dataclass(frozen=True, eq=False)
class Batch:
    """Problems that were solved together."""

    answers: Answers
    tol: float
    #: Why those ended that are not certified.
    otherwise: Status
    seconds: float
    like: Array
    #: Returns the multipliers of each set, as users count them, from those of all rows and of the box.
    split: Callable[[Array, Array | None], tuple[Array, ...]]

    def __post_init__(self) -> None:
        certificates = {
            f.name: to_numpy(getattr(self.answers.certificates, f.name))
            for f in dataclasses.fields(self.answers.certificates)
        }
        object.__setattr__(self, "_told", certificates)
        object.__setattr__(self, "_steps", to_numpy(self.answers.steps))

    @property
    def told(self) -> dict[str, np.ndarray[Any, Any]]:
        """The certificates, on the host."""
        found: dict[str, np.ndarray[Any, Any]] = self.__dict__["_told"]
        return found

    @property
    def certified(self) -> np.ndarray[Any, Any]:
        """Which problems are proved to the tolerance."""
        return np.asarray(self.told["relative_gap"] <= self.tol)

    def points(self) -> Array:
        """Return all points, in the library and dtype of the data."""
        return namespace(self.like).astype(self.answers.x, self.like.dtype)

    def result(self, k: int) -> Result:
        """Return what `lopro.solve` would return for one problem."""
        told = {name: float(values[k]) for name, values in self.told.items()}
        status = Status.CONVERGED if told["relative_gap"] <= self.tol else self.otherwise
        steps = int(self.__dict__["_steps"][k])
        box, a = self.answers.box, self.answers
        fun = told.pop("fun")
        source, said = _SOURCE, status.value
        if math.isfinite(told["radius"]):
            source = f"{source}, within a distance of {told['radius']:.3g} from x"
            if status is Status.CONVERGED:
                said = f"{said}, among the points within a distance of {told['radius']:.3g}"
        return Result(
            x=asarray_like(copy(a.x[k, :]), self.like), fun=fun, status=status, message=said,
            certificate=Certificate(source=source, **told),
            counts=Counts(factorizations=steps + 1), certificate_counts=Counts(), iterations=steps,
            seconds=self.seconds, method=METHOD, history=History(),
            multipliers=tuple(
                asarray_like(v, self.like)
                for v in self.split(a.rows[k, :], None if box is None else box[k, :])
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
        if isinstance(entry, Result):
            return entry
        found = self._entries[index] = entry[0].result(entry[1])
        return found

    def _certificates(self, name: str) -> np.ndarray[Any, Any]:
        def number(entry: Result | tuple[Batch, int]) -> float:
            if not isinstance(entry, Result):
                return float(entry[0].told[name][entry[1]])
            return entry.fun if name == "fun" else float(getattr(entry.certificate, name))

        return np.array([number(entry) for entry in self._entries])

    @property
    def fun(self) -> np.ndarray[Any, Any]:
        """The values."""
        return self._certificates("fun")

    @property
    def gap(self) -> np.ndarray[Any, Any]:
        """The certified gaps."""
        return self._certificates("gap")

    @property
    def status(self) -> list[Status]:
        """Why each run ended."""
        return [
            entry.status
            if isinstance(entry, Result)
            else Status.CONVERGED
            if entry[0].certified[entry[1]]
            else entry[0].otherwise
            for entry in self._entries
        ]

    @property
    def success(self) -> np.ndarray[Any, Any]:
        """Which points are feasible and certified to the tolerance."""
        return np.array([status is Status.CONVERGED for status in self.status])

    @property
    def x(self) -> Array:
        """All points as one array, for problems of one shape."""
        batches = [e[0] for e in self._entries if not isinstance(e, Result)]
        whole = list(dict.fromkeys(batches))
        places = [(b, k) for b in whole for k in range(b.answers.x.shape[0])]
        if whole and places == self._entries:
            points = [batch.points() for batch in whole]
            return points[0] if len(points) == 1 else namespace(points[0]).concat(points)
        return namespace(self[0].x).stack([self[i].x for i in range(len(self))])

    def __repr__(self) -> str:
        return f"Results({len(self)} problems, {int(self.success.sum())} certified)"
