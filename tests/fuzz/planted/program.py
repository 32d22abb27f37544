"""Linear and quadratic programs that are made around their solution and its multipliers, in integers."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from fuzz.judge.points import Known

__all__ = ["Array", "Program"]

Array = np.ndarray[Any, Any]


@dataclass(frozen=True)
class Program:
    """``min z'Pz/2 + q'z`` with ``lower <= A z <= upper``, a box, and a ball ``|D z - e| <= radius``.

    These are plain units. The call has ``x = z / columns``, rows times ``rows``, the ball and the value in
    units of their own; all units are powers of two.
    """

    q: Array
    A: Array
    lower: Array
    upper: Array
    low: Array
    high: Array
    solution: Array
    P: Array | None = None
    D: Array | None = None
    e: Array | None = None
    radius: float = 0.0
    columns: Array | None = None
    rows: Array | None = None
    ball: float = 1.0
    unit: float = 1.0
    #: By construction: no feasible point, or a direction along which the value falls for ever.
    empty: bool = False
    unbounded: bool = False
    way: str = "regular"

    @property
    def dim(self) -> int:
        return len(self.q)

    @property
    def of_columns(self) -> Array:
        return np.ones(self.dim) if self.columns is None else self.columns

    @property
    def of_rows(self) -> Array:
        return np.ones(len(self.A)) if self.rows is None else self.rows

    def data(self) -> dict[str, Array]:
        """Return the arrays of the call, in its units."""
        u, r = self.of_columns, self.of_rows
        found = {"q": self.unit * self.q * u, "A": r[:, None] * self.A * u}
        found |= {"lower": r * self.lower, "upper": r * self.upper}
        found |= {"low": self.low / u, "high": self.high / u}
        if self.P is not None:
            found["P"] = self.unit * u[:, None] * self.P * u
        if self.D is not None and self.e is not None:
            found |= {"D": self.ball * self.D * u, "e": self.ball * self.e}
            found["radius"] = np.array(self.ball * self.radius)
        return found

    def value(self, x: Any) -> float:
        """Return the value of a point of the call."""
        z = x * self.of_columns
        square = 0.0 if self.P is None else 0.5 * float(z @ self.P @ z)
        return self.unit * (float(self.q @ z) + square)

    def size(self, x: Any) -> float:
        """Return the sum of the absolute terms of the value."""
        z = np.abs(x * self.of_columns)
        square = 0.0 if self.P is None else 0.5 * float(z @ np.abs(self.P) @ z)
        return self.unit * (float(np.abs(self.q) @ z) + square)

    def excess(self, x: Any) -> float:
        """Return the largest relative violation; rows of zeros beside rounding count as satisfied."""
        z = x * self.of_columns
        z_size = np.maximum(np.abs(z), 1.0)
        used = self.A.any(axis=1)
        A, lower, upper = self.A[used], self.lower[used], self.upper[used]
        found = [0.0]
        for rows, a, b in ((A, lower, upper), (None, self.low, self.high)):
            image = z if rows is None else rows @ z
            size = z_size if rows is None else np.abs(rows) @ z_size
            for side, sign in ((a, -1.0), (b, 1.0)):
                out = np.where(np.isfinite(side), sign * (image - side), 0.0)
                finite = np.where(np.isfinite(side), np.abs(side), 0.0)
                found.append(float(np.max(out / (size + finite), initial=0.0)))
        if self.D is not None and self.e is not None:
            out_of_ball = float(np.linalg.norm(self.D @ z - self.e)) - self.radius
            found.append(out_of_ball / max(self.radius, 1e-6 * float(np.linalg.norm(self.e))))
        return max(found)

    def known(self) -> Known:
        """Return the known properties of the problem, for the judge."""
        u = self.of_columns
        points = [] if self.empty else [self.solution / u]
        # A point of typical size: sides over coefficients, which are integers.
        sides = np.concatenate([self.lower, self.upper, self.low, self.high])
        reach = float(np.abs(sides[np.isfinite(sides)]).max(initial=1.0))
        typical = max(self.size(reach / u), self.size(self.solution / u))
        return Known(
            self.value,
            self.excess,
            self.size,
            points,
            typical,
            (self.dim,),
            empty=self.empty,
            unbounded=self.unbounded,
        )

    def simpler(self) -> Iterator[Program]:
        """Yield programs in plainer units: the solution is that of all rows, which have to stay."""
        if self.columns is not None:
            yield replace(self, columns=None)
        if self.rows is not None:
            yield replace(self, rows=None)
        yield from [replace(self, unit=1.0)] * (self.unit != 1.0)
        yield from [replace(self, ball=1.0)] * (self.ball != 1.0)
        for units in ("columns", "rows"):
            values = getattr(self, units)
            for j in range(0 if values is None else len(values)):
                if values[j] != 1.0 and (values != 1.0).sum() > 1:
                    plainer = np.where(np.arange(len(values)) == j, 1.0, values)
                    changes: dict[str, Any] = {units: plainer}
                    yield replace(self, **changes)
