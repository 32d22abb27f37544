"""Results as text, in one line and as a table."""

from __future__ import annotations

import html
import math
from typing import Any

import numpy as np

from lopro.certificates import Certificate
from lopro.core.counting import Counts
from lopro.driver.candidate import Claim

__all__ = ["Printed", "in_html", "in_one_line", "lines_of", "table_of"]


class Printed:
    """A result with the attributes that are printed, as text and in notebooks."""

    x: Any
    fun: float
    status: Any
    message: str
    certificate: Certificate
    counts: Counts
    iterations: int
    seconds: float
    method: str
    history: Any
    warnings: tuple[str, ...]
    claim: Claim | None

    def __str__(self) -> str:
        head, *rows = lines_of(self)
        return "\n".join([": ".join(head), *(f"  {name:<11}  {text}" for name, text in rows)])

    def __repr__(self) -> str:
        return in_one_line(self)

    def _repr_html_(self) -> str:
        """Return a small table for notebooks."""
        return table_of(self)


#: Points with at most this many entries are printed in full in one line.
SHORT = 6


def lines_of(result: Printed) -> list[tuple[str, str]]:
    """Return the rows of a printed result, names and texts; the status comes first."""
    rows = [(result.status.name, result.message)]
    if math.isfinite(result.fun):
        rows += _proof(result)
    rows += [("method", result.method), ("work", _work(result))]
    return rows + [("warning", warning) for warning in result.warnings]


def _proof(result: Printed) -> list[tuple[str, str]]:
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


def _work(result: Printed) -> str:
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


def _bound(result: Printed) -> str:
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


def in_one_line(result: Printed) -> str:
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


def table_of(result: Printed) -> str:
    """Return the lines as a table in HTML."""
    return in_html([["th", "td"]], [list(line) for line in lines_of(result)])


def in_html(tags: list[list[str]], rows: list[list[str]]) -> str:
    """Return rows of texts as a table in HTML; the last list of tags is that of all further rows.

    Examples
    --------
    >>> from lopro.driver.printing import in_html
    >>> in_html([["th"], ["td"]], [["gap"], ["< 1e-6"]]).count("&lt; 1e-6</td>")
    1
    """
    lines = []
    for k, row in enumerate(rows):
        of_row = tags[min(k, len(tags) - 1)]
        cells = "".join(
            f"<{tag} style='text-align:left'>{html.escape(text)}</{tag}>"
            for tag, text in zip(of_row, row, strict=True)
        )
        lines.append(f"<tr>{cells}</tr>")
    return f"<table>{''.join(lines)}</table>"
