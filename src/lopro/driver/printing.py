"""Printed results, and the progress line on the terminal."""

from __future__ import annotations

import html
import math
import time
from types import TracebackType
from typing import TYPE_CHECKING

import numpy as np

__all__ = ["Progress", "in_one_line", "lines_of", "table_of"]

if TYPE_CHECKING:
    from lopro.core.counting import Counts
    from lopro.driver.result import Iterate, Result


#: Points with at most this many entries are printed in full in one line.
SHORT = 6


def lines_of(result: Result) -> list[tuple[str, str]]:
    """Return the rows of a printed result, names and texts; the status comes first."""
    rows = [(result.status.name, result.message)]
    if math.isfinite(result.fun):
        rows += _proof(result)
    rows += [("method", result.method), ("work", _work(result))]
    return rows + [("warning", warning) for warning in result.warnings]


def _proof(result: Result) -> list[tuple[str, str]]:
    """Return the value and its certificate; only for results with a point."""
    c = result.certificate
    rows = [
        ("fun", f"{result.fun:.10g}"),
        ("lower bound", _bound(result)),
        ("gap", f"{_shown(c.gap)} (relative {_shown(c.relative_gap)})"),
        ("proof", c.source),
        ("violation", f"{c.violation:.2e} (relative)"),
    ]
    if result.claim is not None:
        claimed = f"a gap of {result.claim.gap:.3g}, not proved ({result.claim.source})"
        rows.insert(4, ("claimed", claimed))
    return rows


def _work(result: Result) -> str:
    """Return the operation counts of the run, without those that are zero."""
    counts = result.counts
    done = [
        _counted(result.iterations, "iteration"),
        _counted(counts.projections, "projection"),
        _counted(counts.gradients, "gradient") + " of f" if counts.gradients else "",
        _counted(counts.constraint_gradients, "gradient") + " of c"
        if counts.constraint_gradients
        else "",
        _counted(counts.matvecs + counts.rmatvecs, "product"),
        f"{result.seconds:.3g} s",
    ]
    return ", ".join(item for item in done if item)


def _counted(number: int, thing: str) -> str:
    return f"{number} {thing}{'' if number == 1 else 's'}"


def _bound(result: Result) -> str:
    """Return the lower bound with the digits of the value: rounded alike, it is not shown above the value."""
    c = result.certificate
    if not math.isfinite(c.lower_bound):
        return "unknown"
    above = c.lower_bound - result.fun
    said = f"{c.lower_bound:.10g}"
    if not above > 0.0:
        return said
    cause = "which the violation allows" if c.gap >= above else "by rounding"
    return f"{said} (above the value by {above:.2g}, {cause})"


def _shown(number: float) -> str:
    return f"{number:.6g}" if math.isfinite(number) else "unknown"


def in_one_line(result: Result) -> str:
    """Return the status, the value, the gap, the method and the point, or its shape where it is long.

    Examples
    --------
    >>> import numpy as np, lopro
    >>> lopro.nearest_correlation(np.eye(30))  # doctest: +NORMALIZE_WHITESPACE
    Result(CONVERGED, fun=0, relative_gap=0, x=<array of shape (30, 30)>,
    method="Newton's method on the dual of the nearest correlation matrix")
    """
    short = isinstance(result.x, np.ndarray) and result.x.size <= SHORT
    x = " ".join(repr(result.x).split()) if short else f"<array of shape {tuple(result.x.shape)}>"
    gap = _shown(result.certificate.relative_gap)
    parts = f"fun={result.fun:.10g}, relative_gap={gap}, x={x}, method={result.method!r}"
    return f"{type(result).__name__}({result.status.name}, {parts})"


def table_of(result: Result) -> str:
    """Return the lines as a table in HTML."""
    cells = [
        f"<tr><th style='text-align:left'>{html.escape(name)}</th>"
        f"<td style='text-align:left'>{html.escape(text)}</td></tr>"
        for name, text in lines_of(result)
    ]
    return f"<table>{''.join(cells)}</table>"


class Progress:
    """Shows epoch, iterations, value, gap and bytes read; refreshed at most ten times a second."""

    def __init__(self) -> None:
        # Imported here: runs without progress do not pay for the import.
        from rich.console import Console
        from rich.live import Live

        self._console = Console(stderr=True)
        if not self._console.is_terminal:
            self._console.width = 200  # columns; in a file the line must not be wrapped
        self._live = Live(console=self._console, refresh_per_second=10, transient=False)
        self._last = 0.0
        self._summary = "first epoch"
        self._read = ""

    def __enter__(self) -> Progress:
        self._live.__enter__()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._live.__exit__(kind, error, traceback)
        if not self._console.is_terminal:
            self._console.line()  # on a terminal the display ends its line by itself

    def tick(self, iterations: int, counts: Counts) -> None:
        """Report the iterations so far, and what was read from matrices."""
        if counts.bytes_read:
            self._read = f"  passes {counts.passes}  read {_in_bytes(counts.bytes_read)}"
        now = time.monotonic()
        if now - self._last > 0.1:
            self._last = now
            self._say(iterations)

    def show(self, iterate: Iterate) -> None:
        """Report the outcome of an epoch."""
        self._summary = (
            f"epoch {iterate.epoch}  f {iterate.fun:.8g}  gap {iterate.relative_gap:.1e}  "
            f"projections {iterate.projections}"
        )
        self._say(iterate.iterations)

    def _say(self, iterations: int) -> None:
        from rich.text import Text

        said = f"lopro  {self._summary}  iteration {iterations}{self._read}"
        self._live.update(Text(said, no_wrap=True, overflow="ellipsis"))


def _in_bytes(number: int) -> str:
    """Return a number of bytes with three digits and a unit."""
    for unit, size in (("GB", 1e9), ("MB", 1e6), ("kB", 1e3)):
        if number >= size:
            return f"{number / size:.3g} {unit}"
    return f"{number} bytes"
