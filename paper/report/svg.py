"""Figures as inline SVG with the colours and the font of the page, and unique names."""

from __future__ import annotations

import io
import re
from html import escape
from typing import TYPE_CHECKING

from paper.report import style

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["inline_svg"]

#: Colours of the figures and their names in the style sheet.
_THEME = {
    style.INK: "currentColor",
    style.GREY: "var(--grey)",
    style.BLUE: "var(--blue)",
    style.VERMILION: "var(--vermilion)",
    style.GREEN: "var(--green)",
    style.PURPLE: "var(--purple)",
    style.ORANGE: "var(--orange)",
}

_COORDINATE = re.compile(r"(\d+\.\d{2})\d+")


def inline_svg(figure: Figure, name: str, alt: str) -> str:
    """Return the figure as an ``<svg>`` element for an HTML page.

    Parameters
    ----------
    figure : matplotlib.figure.Figure
        Drawn in the colours of `paper.report.style`.
    name : str
        Put in front of every id inside, so that two figures of a page do not clash.
    alt : str
        The alternative text.

    Examples
    --------
    >>> from paper.report.style import one_axes
    >>> from paper.report.svg import inline_svg
    >>> figure, ax = one_axes("a title")
    >>> inline_svg(figure, "f", "nothing yet")[:24]
    '<svg class="plot" role="'
    """
    text = _written(figure)
    size = re.search(r'viewBox="([^"]+)"', text)
    inner = re.search(r"<svg[^>]*>(.*)</svg>", text, re.DOTALL)
    assert size is not None and inner is not None  # matplotlib writes both
    body = re.sub(r"<metadata>.*?</metadata>", "", inner[1], flags=re.DOTALL)
    # A rule for `*` would apply to the whole page; page.css has the same rule for figures.
    body = re.sub(r"<style.*?</style>", "", body, flags=re.DOTALL)
    body = re.sub(r"\s*font-family:[^;\"]*;", "", body)
    for colour, variable in _THEME.items():
        body = re.sub(colour, variable, body, flags=re.IGNORECASE)
    body = re.sub(r'\bid="', f'id="{name}-', body)
    body = re.sub(r"url\(#", f"url(#{name}-", body)
    body = re.sub(r'xlink:href="#', f'href="#{name}-', body)
    head = f'<svg class="plot" role="img" aria-label="{escape(alt)}" viewBox="{size[1]}">'
    return f"{head}{_tight(body)}</svg>"


def _written(figure: Figure) -> str:
    import matplotlib

    # Text stays text: it can be searched, and takes the font of the page.
    with matplotlib.rc_context(style.RC | {"svg.fonttype": "none"}):
        buffer = io.StringIO()
        metadata = {"Date": None, "Creator": None}  # the same run gives the same file
        figure.savefig(buffer, format="svg", transparent=True, metadata=metadata)
    return buffer.getvalue()


def _tight(body: str) -> str:
    """Shorten the text: remove line ends in paths and digits below a hundredth of a point."""
    body = re.sub(r"\s*\n\s*", " ", body)
    # In coordinates only, not in labels.
    return re.sub(r'\b(?:d|x|y)="[^"]*"', lambda found: _COORDINATE.sub(r"\1", found[0]), body)
