"""Stopping rules: predicates of an iterate that combine with ``|`` and ``&``.

They use the records of the run and compute nothing. Every entry point accepts one as ``stop=``; a plain
function of an iterate is a rule as well.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from lopro.core.validation import check_callable, check_count, check_number
from lopro.driver.result import Iterate

__all__ = [
    "Gap",
    "Iterations",
    "Products",
    "Projections",
    "RelativeGap",
    "Rule",
    "Seconds",
    "Value",
    "When",
    "as_rule",
]


class Rule:
    """A stopping rule; ``a | b`` stops when either does, ``a & b`` when both do.

    Examples
    --------
    >>> import numpy as np, lopro
    >>> from lopro.driver.stopping import Projections, Value
    >>> f = lopro.objectives.SquaredDistance(np.array([3.0, 0.0]))
    >>> box = lopro.constraints.Polyhedron.box(-np.ones(2), np.ones(2))
    >>> rule = Value(below=2.5) | Projections(10)
    >>> lopro.solve(lopro.Problem(f, box), tol=0, stop=rule).status.name
    'STOPPED'
    """

    def met(self, iterate: Iterate) -> bool:
        """Whether to stop after this iterate."""
        raise NotImplementedError

    def __or__(self, other: Any) -> Rule:
        return _Either(self, as_rule(other))

    def __and__(self, other: Any) -> Rule:
        return _Both(self, as_rule(other))


@dataclass(frozen=True)
class _Either(Rule):
    first: Rule
    second: Rule

    def met(self, iterate: Iterate) -> bool:
        return self.first.met(iterate) or self.second.met(iterate)

    def __repr__(self) -> str:
        return f"{self.first!r} | {self.second!r}"


@dataclass(frozen=True)
class _Both(Rule):
    first: Rule
    second: Rule

    def met(self, iterate: Iterate) -> bool:
        return self.first.met(iterate) and self.second.met(iterate)

    def __repr__(self) -> str:
        return f"{self.first!r} & {self.second!r}"


@dataclass(frozen=True)
class Value(Rule):
    """Stop at a value of at most ``below``."""

    below: float

    def __post_init__(self) -> None:
        check_number("below", self.below)

    def met(self, iterate: Iterate) -> bool:
        return iterate.fun <= self.below


@dataclass(frozen=True)
class Gap(Rule):
    """Stop at a certified gap of at most ``below``, in the units of the objective."""

    below: float

    def __post_init__(self) -> None:
        check_number("below", self.below, minimum=0.0)

    def met(self, iterate: Iterate) -> bool:
        return iterate.gap <= self.below


@dataclass(frozen=True)
class RelativeGap(Rule):
    """Stop at a certified relative gap of at most ``below``."""

    below: float

    def __post_init__(self) -> None:
        check_number("below", self.below, minimum=0.0)

    def met(self, iterate: Iterate) -> bool:
        return iterate.relative_gap <= self.below


@dataclass(frozen=True)
class Seconds(Rule):
    """Stop at the first iterate after ``most`` seconds; ``time_limit`` also interrupts between iterates."""

    most: float

    def __post_init__(self) -> None:
        check_number("most", self.most, minimum=0.0)

    def met(self, iterate: Iterate) -> bool:
        return iterate.seconds >= self.most


@dataclass(frozen=True)
class _Count(Rule):
    most: int

    def __post_init__(self) -> None:
        check_count("most", self.most)


class Iterations(_Count):
    """Stop at the first iterate after ``most`` iterations; ``max_iter`` also interrupts between iterates."""

    def met(self, iterate: Iterate) -> bool:
        return iterate.iterations >= self.most


class Projections(_Count):
    """Stop after ``most`` projections."""

    def met(self, iterate: Iterate) -> bool:
        return iterate.projections >= self.most


class Products(_Count):
    """Stop at the first iterate after ``most`` products with matrices or operators."""

    def met(self, iterate: Iterate) -> bool:
        return iterate.products >= self.most


@dataclass(frozen=True)
class When(Rule):
    """Stop when a function of the iterate returns True."""

    function: Callable[[Iterate], Any]

    def __post_init__(self) -> None:
        check_callable("function", self.function)

    def met(self, iterate: Iterate) -> bool:
        return bool(self.function(iterate))


def as_rule(rule: Any) -> Rule:
    """Return a rule; a plain function becomes one."""
    if isinstance(rule, Rule):
        return rule
    if isinstance(rule, type) or not callable(rule):
        raise TypeError(f"stop must be a rule of lopro.stopping or a function, got {rule!r}")
    return When(rule)
