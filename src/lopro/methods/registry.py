"""All methods, by name and as a table."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import fields
from typing import Any

import lopro.methods as own
from lopro.methods.applications import Application, applications, register
from lopro.protocol import Card

__all__ = ["Application", "applications", "methods", "methods_table", "register"]


def methods() -> dict[str, Any]:
    """Return every method for `lopro.solve` by its public name.

    Examples
    --------
    >>> from lopro.methods.registry import methods
    >>> "lopro.LoPGD" in methods()
    True
    """
    from lopro.methods import baselines

    found = {name: getattr(own, name) for name in own.__all__}
    for application in applications():
        found.update(application.methods)
    every = {f"lopro.{name}": found[name] for name in sorted(found)}
    every.update(
        {f"lopro.baselines.{name}": getattr(baselines, name) for name in baselines.__all__}
    )
    return {name: method for name, method in every.items() if hasattr(method, "card")}


def methods_table() -> str:
    """Return the cards of all methods as a Markdown table.

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
    # A vertical bar would end the cell.
    return "| " + " | ".join(cell.replace("|", r"\|") for cell in cells) + " |"
