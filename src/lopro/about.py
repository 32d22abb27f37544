"""What every method says of itself, and the list of all methods made from it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, fields
from typing import Any

__all__ = ["About", "methods", "methods_table"]

PAPER = "Yang, Lin, Zhang (ICML 2017)"


@dataclass(frozen=True)
class About:
    """A method's own declaration: a line for each question one asks before choosing it.

    A scheme has it as the class attribute ``about``; the table of methods in the documentation and on
    the command line is made from these declarations.

    Parameters
    ----------
    assumptions : str
        What must be true of the problem.
    oracles : str
        What it asks of the objective and of the constraint.
    rate : str
        Iterations for an ``eps``-optimal point, or the error after ``T`` of them.
    projections : str
        How often it projects.
    reference : str
        Where it comes from.

    Examples
    --------
    >>> import lopro
    >>> lopro.LoPGD.about.projections
    'O(log 1/eps): one per epoch'
    """

    assumptions: str
    oracles: str
    rate: str
    projections: str
    reference: str = PAPER


def methods() -> dict[str, Any]:
    """Return every method for `lopro.solve` by its public name.

    Examples
    --------
    >>> from lopro.about import methods
    >>> "lopro.LoPGD" in methods()
    True
    """
    from lopro import baselines, schemes

    rooms = ("lopro", schemes), ("lopro.baselines", baselines)
    return {
        f"{prefix}.{name}": method
        for prefix, room in rooms
        for name in room.__all__
        if hasattr(method := getattr(room, name), "about")
    }


def methods_table() -> str:
    """Return the declarations of all methods as a Markdown table.

    Examples
    --------
    >>> from lopro.about import methods_table
    >>> print(methods_table().splitlines()[0])
    | method | assumptions | oracles | rate | projections | reference |
    """
    return "\n".join(_rows())


def _rows() -> Iterator[str]:
    columns = [field.name for field in fields(About)]
    yield _row(["method", *columns])
    yield _row(["---"] * (1 + len(columns)))
    for name, method in methods().items():
        yield _row([f"`{name}`", *(getattr(method.about, column) for column in columns)])


def _row(cells: list[str]) -> str:
    # A bar inside a cell would end it.
    return "| " + " | ".join(cell.replace("|", r"\|") for cell in cells) + " |"
