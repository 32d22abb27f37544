"""Adapters: the name of a method, the problems it applies to, and its call."""

from __future__ import annotations

import importlib.util
from dataclasses import dataclass, field
from typing import Any

from benchmarks.metric_learning.problems import Instance
from lopro.core.counting import Counts

__all__ = ["Adapter", "Answer", "Settings", "Snapshot"]


@dataclass(frozen=True)
class Settings:
    """The settings that every method gets."""

    time_limit: float
    #: Certified relative gap at which methods that can prove one stop.
    tol: float = 1e-6
    #: Time limit of each trial in which a step is tuned; not timed.
    tuning_iterations: int = 200


@dataclass(frozen=True)
class Snapshot:
    """An iterate of a method, and the bound proved up to it."""

    seconds: float
    iterations: int
    projections: int | None
    objective: float
    lower_bound: float | None


@dataclass
class Answer:
    """The matrix a method returned, its multiplier of the cone if there is one, and its cost."""

    A: Any
    #: An estimate of ``S``, from which the judge makes a bound.
    multiplier: Any = None
    #: A bound that the method has proved itself.
    lower_bound: float | None = None
    status: str = ""
    iterations: int | None = None
    #: None where they cannot be counted; those of certificates are separate.
    counts: Counts | None = None
    certificate_counts: Counts | None = None
    snapshots: list[Snapshot] = field(default_factory=list)


class Adapter:
    """One method. Subclasses define where it does not apply and how it is called."""

    name: str
    #: Import names of the packages required.
    requires: tuple[str, ...] = ()
    #: The largest number of features for which it is run.
    most_features: float = float("inf")

    def missing(self) -> str | None:
        """Return which package is not installed, if any."""
        absent = [name for name in self.requires if importlib.util.find_spec(name) is None]
        return f"{', '.join(absent)} not installed" if absent else None

    def refuses(self, instance: Instance) -> str | None:
        """Return the reason why the method does not apply, if there is one."""
        if instance.dim > self.most_features:
            return f"not tried on more than {self.most_features:.0f} features"
        return None

    def prepare(self, instance: Instance, settings: Settings) -> str:
        """Determine the parameters of the method (not timed); return a description of them."""
        return ""

    def solve(self, instance: Instance, settings: Settings) -> Answer:
        """Run the method once."""
        raise NotImplementedError

    def earlier(self, instance: Instance, settings: Settings) -> list[Snapshot]:
        """Return earlier points of the method where they take separate runs."""
        return []
