"""Output of the two tables of the paper on a terminal, with rows in groups."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

__all__ = ["add_grouped", "announcer", "publish", "terminal"]


def add_grouped(out: Table, rows: Iterable[Any], cells: Callable[[Any], list[str]]) -> None:
    """Add the rows; a method is named in its first row, and a rule separates it from the next.

    Examples
    --------
    >>> from collections import namedtuple
    >>> from rich.table import Table
    >>> from paper.experiments.tables import add_grouped
    >>> Row, out = namedtuple("Row", "method value"), Table("method", "value")
    >>> add_grouped(out, [Row("a", 1), Row("a", 2), Row("b", 3)], lambda row: [str(row.value)])
    >>> list(out.columns[0].cells)
    ['a', '', 'b']
    """
    previous = None
    for row in rows:
        if previous is not None and previous != row.method:
            out.add_section()
        out.add_row("" if previous == row.method else row.method, *cells(row))
        previous = row.method


def terminal() -> Console:
    """Return the console to print on: as wide as the terminal, and wide enough for a table in a pipe."""
    return Console(width=None if sys.stdout.isatty() else 140)


def announcer(console: Console) -> Callable[[str], None]:
    """Return a function that prints what is being run."""
    return lambda line: console.print(f"running: {line}", markup=False, highlight=False)


def publish(
    console: Console,
    tables: Sequence[Table],
    verdict: Iterable[str],
    contents: dict[str, Any],
    path: Path | None,
) -> None:
    """Print the tables and their results; write the contents as JSON if a path is given."""
    for table in tables:
        console.print(table)
    for line in verdict:
        console.print(f"- {line}", markup=False, highlight=False)
    if path is not None:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps(contents, indent=2) + "\n", encoding="utf-8")
