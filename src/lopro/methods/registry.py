"""The applications and the methods that there are: what `Auto` asks, and what tables of methods show."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import fields
from typing import Any, Protocol

from lopro.problem import Problem
from lopro.protocol import Card, Method

__all__ = ["Application", "applications", "methods", "methods_table", "recognised", "register"]


class Application(Protocol):
    """A problem with methods of its own, from top to bottom in one folder."""

    #: What it is called where a choice is explained.
    name: str
    #: Its methods, by their public names.
    methods: dict[str, Any]

    def recognise(self, problem: Problem) -> Method | None:
        """Return the method for a general problem that has this form; None for others."""
        ...


_applications: list[Application] = []


def register(application: Application) -> None:
    """Let `lopro.Auto` and the tables of methods know of an application."""
    if all(known.name != application.name for known in _applications):
        _applications.append(application)


def applications() -> tuple[Application, ...]:
    """Return the applications that are registered."""
    return tuple(_applications)


def recognised(problem: Problem) -> tuple[str, Method] | None:
    """Return the name of the application whose form a problem has, and its method; None for others."""
    for application in _applications:
        method = application.recognise(problem)
        if method is not None:
            return application.name, method
    return None


def methods() -> dict[str, Any]:
    """Return every method for `lopro.solve` by its public name.

    Examples
    --------
    >>> from lopro.methods.registry import methods
    >>> "lopro.LoPGD" in methods()
    True
    """
    from lopro import methods as own
    from lopro.methods import baselines

    found = {name: getattr(own, name) for name in own.__all__}
    for application in _applications:
        found.update(application.methods)
    every = {f"lopro.{name}": found[name] for name in sorted(found)}
    every.update(
        {f"lopro.baselines.{name}": getattr(baselines, name) for name in baselines.__all__}
    )
    return {name: method for name, method in every.items() if hasattr(method, "card")}


def methods_table() -> str:
    """Return the declarations of all methods as a Markdown table.

    Examples
    --------
    >>> from lopro.methods.registry import methods_table
    >>> print(methods_table().splitlines()[0])
    | method | assumptions | oracles | rate | projections | reference |
    """
    return "\n".join(_rows())


def _rows() -> Iterator[str]:
    columns = [field.name for field in fields(Card)]
    yield _row(["method", *columns])
    yield _row(["---"] * (1 + len(columns)))
    for name, method in methods().items():
        yield _row([f"`{name}`", *(getattr(method.card, column) for column in columns)])


def _row(cells: list[str]) -> str:
    # A bar inside a cell would end it.
    return "| " + " | ".join(cell.replace("|", r"\|") for cell in cells) + " |"
