"""The applications: problems with methods of their own, which `lopro.Auto` recognises."""

from __future__ import annotations

from typing import Any, Protocol

from lopro.problem import Problem
from lopro.protocol import Method

__all__ = ["Application", "applications", "register", "registered"]


class Application(Protocol):
    """A class of problems with methods of its own; all of its code is in one folder."""

    #: Its name in explanations.
    name: str
    #: The classes of objectives of its problems: `recognise` is not called for other objectives.
    objectives: tuple[type[Any], ...]
    #: Its methods, by their public names.
    methods: dict[str, Any]

    def recognise(self, problem: Problem) -> Method | None:
        """Return the method for a problem of this form; None for other problems."""
        ...


#: The applications, in the order in which `lopro.Auto` tries to recognise a problem.
registered: list[Application] = []


def register(application: Application) -> None:
    """Register an application with `lopro.Auto` and the tables of methods."""
    if all(known.name != application.name for known in registered):
        registered.append(application)


def applications() -> tuple[Application, ...]:
    """Return the registered applications."""
    return tuple(registered)
