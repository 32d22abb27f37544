"""Counters of oracle calls, products and projections.

Algorithms do not count. Linear maps and eigen-solvers count each product and eigenpair, the wrappers of
`lopro.driver.counted` each call of an oracle, on the `Counts` that are active at the time. Certificates and
the history have counts of their own, so observing a run does not change its counts.
"""

from __future__ import annotations

import dataclasses
import operator
from contextlib import AbstractContextManager
from contextvars import ContextVar
from dataclasses import dataclass

__all__ = ["Counts", "count", "count_product", "counting"]


@dataclass(slots=True)
class Counts:
    """Numbers of oracle calls, products and decompositions.

    ``matvecs`` and ``rmatvecs`` are products with all of a matrix or operator and with its adjoint;
    ``columns`` counts single columns, ``rows`` single rows or members of a constraint that were
    evaluated. A product with k vectors at once counts k times; ``passes`` counts reads of all entries of a
    matrix (a product with k vectors at once is one pass), and ``bytes_read`` the bytes, those of single
    columns and rows included. The bytes of an operator are not known and count as 0.
    ``linear_minimizations`` are those that Frank-Wolfe methods make over the feasible set.
    ``transfers`` are copies of matrices from a device for a solver on the host, with their bytes.
    ``eigenpairs`` come from partial eigen-solvers, ``eigendecompositions`` are full ones.

    Examples
    --------
    >>> from lopro.core.counting import Counts, count, counting
    >>> with counting(Counts()) as counts:
    ...     count("matvecs")
    >>> counts.matvecs
    1
    """

    projections: int = 0
    linear_minimizations: int = 0
    gradients: int = 0
    values: int = 0
    proxes: int = 0
    constraint_gradients: int = 0
    constraint_values: int = 0
    matvecs: int = 0
    rmatvecs: int = 0
    columns: int = 0
    rows: int = 0
    passes: int = 0
    bytes_read: int = 0
    eigenpairs: int = 0
    eigendecompositions: int = 0
    factorizations: int = 0
    transfers: int = 0
    bytes_transferred: int = 0

    def copy(self) -> Counts:
        """Return an independent copy."""
        return Counts(*_ALL(self))

    def to_dict(self) -> dict[str, int]:
        """Return the counters as a plain dictionary."""
        return dataclasses.asdict(self)


_ALL = operator.attrgetter(*Counts.__slots__)
_active: ContextVar[Counts | None] = ContextVar("lopro_counts", default=None)


class _Counting:
    """A block with active counters; a class is faster to enter than a generator."""

    def __init__(self, counts: Counts) -> None:
        self._counts = counts

    def __enter__(self) -> Counts:
        self._token = _active.set(self._counts)
        return self._counts

    def __exit__(self, *exception: object) -> None:
        _active.reset(self._token)


def counting(counts: Counts) -> AbstractContextManager[Counts]:
    """Make ``counts`` the active counters of the block."""
    return _Counting(counts)


def count(counter: str, times: int = 1) -> None:
    """Add to a counter of the active counts, if there are any."""
    counts = _active.get()
    if counts is not None:
        setattr(counts, counter, getattr(counts, counter) + times)


def count_product(counter: str, vectors: int, passes: int, bytes_read: int) -> None:
    """Count a product with one or more vectors, with one look-up of the active counts."""
    counts = _active.get()
    if counts is not None:
        setattr(counts, counter, getattr(counts, counter) + vectors)
        counts.passes += passes
        counts.bytes_read += bytes_read
