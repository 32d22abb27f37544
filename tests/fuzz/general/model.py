"""A problem for the judge, without library code, and points proved to be in its set."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
import scipy.sparse as sp

from fuzz.general.matrix_sets import symmetric_basis
from fuzz.general.objectives import Objective
from fuzz.general.sets import Array, Set
from fuzz.judge.conic import Program, Reference
from fuzz.judge.wide import power_of_two, wide

__all__ = ["Model"]


@dataclass(frozen=True)
class Model:
    """``min f(x)`` over the intersection of sets, with facts known by construction."""

    objective: Objective
    members: tuple[Set, ...]
    shape: tuple[int, ...]
    #: The size of points, a power of two.
    unit: float = 1.0
    #: A point of the set by construction, in its interior where that is not empty.
    inside: Array | None = None
    #: A direction along which the objective falls for ever, within the set.
    ray: Array | None = None
    #: Whether the set is empty by construction.
    empty: bool = False

    @property
    def matrices(self) -> bool:
        """Whether points are matrices."""
        return len(self.shape) == 2

    def holds(self, x: Any) -> bool:
        """Whether ``x`` is in every set."""
        return bool(np.isfinite(x).all()) and all(m.holds(x) for m in self.members)

    def violation(self, x: Any) -> float:
        """Return the largest relative violation."""
        return max(m.violation(x, self.unit) for m in self.members)

    def changed(self, **changes: Any) -> Model:
        """Return the model with other fields."""
        return replace(self, **changes)

    # Points.

    @cached_property
    def _hull(self) -> tuple[Any, Any, Array] | None:
        """The equations of the sets and the pseudo-inverse that points are corrected with."""
        found = [pair for m in self.members if (pair := m.equations()) is not None]
        if not found:
            return None
        E = np.vstack([np.asarray(E, dtype=np.float64) for E, _ in found])
        e = np.concatenate([e for _, e in found])
        size = np.abs(E).max(axis=1)
        size = np.where(size > 0, size, 1.0)
        return (
            wide(E) / wide(size)[:, None],
            wide(e) / wide(size),
            np.linalg.pinv(E / size[:, None]),
        )

    def on_hull(self, x: Any) -> Any:
        """Return ``x`` in long double, symmetric and moved until the equations hold to long double."""
        x = wide(x)
        x = (x + x.T) / 2 if self.matrices else x
        if self._hull is None:
            return x
        E, e, inverse = self._hull
        flat = x.ravel()
        for _ in range(4):
            flat = flat + wide(inverse @ np.asarray(e - E @ flat, dtype=np.float64))
        x = flat.reshape(self.shape)
        return (x + x.T) / 2 if self.matrices else x

    @cached_property
    def safe(self) -> Any:
        """A point that is feasible beyond doubt, in long double; None if none is known."""
        if self.inside is None:
            return None
        for x in (wide(self.inside), self.on_hull(self.inside)):
            if self.holds(x):
                return x
        return None

    def feasible_points(self, starts: Iterable[Any]) -> Iterator[Any]:
        """Yield feasible points: ``starts``, moved towards the safe point as little as it takes."""
        if self.safe is not None:
            yield self.safe
        for x in starts:
            if x is None or not np.isfinite(x).all():
                continue
            x = self.on_hull(np.asarray(x).reshape(self.shape))
            if self.holds(x):
                yield x
            elif self.safe is not None:
                yield self._moved(x)
        if self.ray is not None and self.safe is not None:
            for k in range(0, 13, 3):
                z = self.safe + wide(10.0**k) * wide(self.ray)
                if self.holds(z):
                    yield z

    def _moved(self, x: Any) -> Any:
        """Return the first point on the way from ``x`` to the safe one that is feasible."""
        low, high = -19.0, 0.0  # exponents of the share of the way
        while high - low > 0.2:
            middle = 0.5 * (low + high)
            if self.holds(x + np.longdouble(10.0) ** middle * (self.safe - x)):
                high = middle
            else:
                low = middle
        return x + np.longdouble(10.0) ** high * (self.safe - x) if high < 0.0 else self.safe

    # The outside solver.

    def reference(self) -> tuple[Reference, Array, float]:
        """Return Clarabel's answer in moderate units, its point in ours, and the factor of its values."""
        start = self.inside if self.inside is not None else np.zeros(self.shape)
        size = self.objective.size(start) if np.isfinite(start).all() else 1.0
        factor = power_of_two(size) if size > 0.0 else 1.0
        dim = int(np.prod(self.shape))
        basis = symmetric_basis(self.shape[0]) if self.matrices else sp.eye_array(dim, format="csr")
        program = Program(basis)
        for member in self.members:
            member.stretched(1.0 / self.unit).add_to(program)
        self.objective.stretched(1.0 / self.unit).add_to(program, 1.0 / factor)
        found = program.solve()
        return found, found.point.reshape(self.shape) * self.unit, factor
