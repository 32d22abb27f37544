"""The options that all entry points share."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

from lopro.core.validation import (
    check_callable,
    check_count,
    check_number,
)
from lopro.driver.result import Iterate
from lopro.driver.stopping import Rule, as_rule

__all__ = ["Callback", "Options"]

Callback = Callable[[Iterate], Any]


@dataclass(frozen=True)
class Options:
    """The options that all entry points share; `lopro.solve` documents them."""

    tol: float = 1e-6
    max_iter: int | None = None
    max_projections: int | None = None
    time_limit: float | None = None
    stop: Rule | Callable[[Iterate], bool] | None = None
    callback: Callback | None = None
    progress: bool = False
    seed: Any = None
    multipliers0: Any = None

    def __post_init__(self) -> None:
        check_number("tol", self.tol, minimum=0.0)
        if self.max_iter is not None:
            check_count("max_iter", self.max_iter)
        if self.max_projections is not None:
            check_count("max_projections", self.max_projections)
        if self.time_limit is not None:
            check_number("time_limit", self.time_limit, minimum=0.0, exclusive=True)
        if self.callback is not None:
            check_callable("callback", self.callback)
        if self.stop is not None:
            object.__setattr__(self, "stop", as_rule(self.stop))

    @property
    def rule(self) -> Rule | None:
        """The stopping rule, if there is one."""
        assert self.stop is None or isinstance(self.stop, Rule)
        return self.stop

    @property
    def limited(self) -> bool:
        """Whether a budget may end the run."""
        limits = (self.max_iter, self.max_projections, self.time_limit, self.stop)
        return any(limit is not None for limit in limits)

    def within_call(self) -> Options:
        """Return the options of a subproblem, whose deadline is that of the enclosing call."""
        return self if self.time_limit is None else replace(self, time_limit=None)
