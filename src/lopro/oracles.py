"""Counting what an algorithm asks for: the ledger, and the proxies that fill it.

Algorithms never count. Linear maps and eigen-solvers note each product and eigenpair on the ledger
that is open at the time; the proxies made by `counted` note every call of an oracle. Certificates
and records run under a ledger of their own, so looking at a run does not change its numbers.
"""

from __future__ import annotations

import copy
import dataclasses
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any

__all__ = [
    "CONSTRAINT_ORACLES",
    "OBJECTIVE_ORACLES",
    "Counts",
    "counted",
    "ledger",
    "tally",
    "tally_product",
    "watched",
]


@dataclass(slots=True)
class Counts:
    """How often each oracle was called.

    ``matvecs`` and ``rmatvecs`` are products with all of a matrix or operator and with its adjoint;
    ``columns`` counts single columns, ``rows`` single rows or members of a constraint that were looked
    at instead. A product with k vectors at once counts k times; ``passes`` counts how often all entries of a
    matrix were read for any reason (products with k vectors at once are one pass), and ``bytes_read`` the
    bytes, those of single columns and rows included. Of an operator the bytes are not known and count as 0.
    ``linear_minimizations`` are those that Frank-Wolfe methods make over the feasible set.
    ``eigenpairs`` come from partial eigen-solvers, ``eigendecompositions`` are full ones.

    Examples
    --------
    >>> from lopro.oracles import Counts, ledger, tally
    >>> with ledger(Counts()) as counts:
    ...     tally("matvecs")
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

    def to_dict(self) -> dict[str, int]:
        """Return the counters as a plain dictionary."""
        return dataclasses.asdict(self)


_open_ledger: ContextVar[Counts | None] = ContextVar("lopro_ledger", default=None)


@contextmanager
def ledger(counts: Counts) -> Iterator[Counts]:
    """Note everything that happens inside the block on ``counts``."""
    token = _open_ledger.set(counts)
    try:
        yield counts
    finally:
        _open_ledger.reset(token)


def tally(counter: str, times: int = 1) -> None:
    """Add to a counter of the open ledger; without one, do nothing."""
    counts = _open_ledger.get()
    if counts is not None:
        setattr(counts, counter, getattr(counts, counter) + times)


def tally_product(counter: str, vectors: int, passes: int, bytes_read: int) -> None:
    """Note a product with one or more vectors: one look at the ledger, since products may be small."""
    counts = _open_ledger.get()
    if counts is not None:
        setattr(counts, counter, getattr(counts, counter) + vectors)
        counts.passes += passes
        counts.bytes_read += bytes_read


OBJECTIVE_ORACLES = {
    "value": "values",
    "subgradient": "gradients",
    "stochastic_subgradient": "gradients",
    "linearize_at": "values gradients",
    "prox": "proxes",
}
CONSTRAINT_ORACLES = {
    "value": "constraint_values",
    "subgradient": "constraint_gradients",
    "linearize_at": "constraint_values constraint_gradients",
    "project_image": "constraint_values",
    "pullback": "constraint_gradients",
    "project": "projections",
    "linear_minimizer": "linear_minimizations",
    "support_normal": "linear_minimizations",
}


class _Counted:
    """A stand-in: forwards everything to ``target``, notes the calls named in ``oracles``."""

    def __init__(self, target: Any, oracles: dict[str, str]) -> None:
        self._target = target
        self._oracles = oracles

    def __getattr__(self, name: str) -> Any:
        # Copying and pickling look for special methods before there is a target to ask.
        if name.startswith("__") or name in ("_target", "_oracles"):
            raise AttributeError(name)
        attribute = getattr(self._target, name)
        counter = self._oracles.get(name)
        if counter is not None:
            attribute = _noted(attribute, counter)
        elif name in ("split", "members"):
            attribute = self._parts(attribute)
        # Kept on the proxy: the next access does not come through here, and costs nothing.
        if callable(attribute):
            self.__dict__[name] = attribute
        return attribute

    def _parts(self, method: Callable[[], tuple[Any, ...]]) -> Callable[[], tuple[Any, ...]]:
        def parts() -> tuple[Any, ...]:
            return tuple(None if p is None else counted(p, self._oracles) for p in method())

        return parts

    # An honest stand-in also answers isinstance for what it stands for.
    @property
    def __class__(self) -> Any:
        return type(self._target)

    @__class__.setter
    def __class__(self, value: Any) -> None:
        raise TypeError("a counting proxy keeps its class")

    def __reduce__(self) -> tuple[Any, ...]:
        return counted, (self._target, self._oracles)

    def __repr__(self) -> str:
        return repr(self._target)


def _noted(method: Callable[..., Any], counter: str) -> Callable[..., Any]:
    if " " in counter:
        return _noted_linearization(method, *counter.split())

    def noted(*args: Any, **named: Any) -> Any:
        tally(counter)
        return method(*args, **named)

    return noted


def _noted_linearization(
    method: Callable[..., Any], value_counter: str, gradient_counter: str
) -> Callable[..., Any]:
    """Count the value when it is computed and the gradient when it is asked for."""

    def noted(image: Any) -> Any:
        tally(value_counter)
        value, gradient = method(image)

        def noted_gradient() -> Any:
            tally(gradient_counter)
            return gradient()

        return value, noted_gradient

    return noted


def counted(target: Any, oracles: dict[str, str]) -> Any:
    """Return a proxy of ``target`` whose oracle calls are noted on the open ledger."""
    return _Counted(target, oracles)


def watched(problem: Any) -> Any:
    """Return the same problem with its oracle calls noted on whichever ledger is open."""
    twin = copy.copy(problem)
    object.__setattr__(twin, "objective", counted(problem.objective, OBJECTIVE_ORACLES))
    object.__setattr__(twin, "constraint", counted(problem.constraint, CONSTRAINT_ORACLES))
    return twin
