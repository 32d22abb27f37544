"""Draw the measured coverage as a badge: ``python .ci/badge.py coverage.xml coverage.svg``."""

from __future__ import annotations

import sys
from pathlib import Path
from xml.etree import ElementTree

#: The share of lines and branches from which on the badge is green, or yellow.
GREEN, YELLOW = 0.9, 0.75

BADGE = """\
<svg xmlns="http://www.w3.org/2000/svg" width="110" height="20" role="img" aria-label="coverage {text}">
<rect width="66" height="20" fill="#555"/><rect x="66" width="44" height="20" fill="{colour}"/>
<g fill="#fff" text-anchor="middle" font-family="Verdana,sans-serif" font-size="11">
<text x="33" y="14">coverage</text><text x="88" y="14">{text}</text></g></svg>
"""


def badge(report: str) -> str:
    """Return the drawing of a report in Cobertura's format: covered lines and branches, rounded down.

    Examples
    --------
    >>> "99%" in badge(
    ...     '<c lines-covered="999" lines-valid="1000" branches-covered="0" branches-valid="0"/>'
    ... )
    True
    """
    root = ElementTree.fromstring(report)
    covered, valid = (
        sum(int(root.get(f"{kind}-{which}", "0")) for kind in ("lines", "branches"))
        for which in ("covered", "valid")
    )
    share = covered / max(valid, 1)
    colour = "#3a3" if share >= GREEN else "#a82" if share >= YELLOW else "#c33"
    return BADGE.format(text=f"{int(100 * share)}%", colour=colour)


if __name__ == "__main__":
    source, target = map(Path, sys.argv[1:])
    target.write_text(badge(source.read_text(encoding="utf-8")), encoding="utf-8")
