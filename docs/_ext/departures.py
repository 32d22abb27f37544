"""Keeps the section "Departures" of a docstring, which numpydoc does not know and would leave out.

It says where the code departs from the printed paper; in the reference it becomes a part of the notes.
"""

from __future__ import annotations

import itertools
import re
from typing import Any

from numpydoc.docscrape import NumpyDocString
from sphinx.application import Sphinx

AFTER_NOTES = ("References", "Examples")
UNDERLINE = re.compile(r"-{3,}")


def setup(app: Sphinx) -> dict[str, bool]:
    """Process docstrings before numpydoc does."""
    NumpyDocString.sections["Departures"] = ""  # or it complains about each of them
    app.setup_extension("sphinx.ext.autodoc")
    app.connect("autodoc-process-docstring", process, priority=400)
    return {"parallel_read_safe": True, "parallel_write_safe": True}


def process(app: Sphinx, what: str, name: str, obj: Any, options: Any, lines: list[str]) -> None:
    """Change the lines of a docstring in place, as Sphinx asks for."""
    lines[:] = with_departures_in_notes(lines)


def with_departures_in_notes(lines: list[str]) -> list[str]:
    """Return the docstring with its departures at the end of its notes.

    Examples
    --------
    >>> text = ["f.", "", "Departures", "----------", "None.", "", "Examples", "--------", ">>> 1"]
    >>> with_departures_in_notes(text)[2:5]
    ['Notes', '-----', '**Departures from the paper.**']
    """
    head, sections = split(lines)
    found = [section for section in sections if section[0].strip() == "Departures"]
    if not found:
        return lines
    words = ["**Departures from the paper.**", *found[0][2:]]
    rest = [section for section in sections if section is not found[0]]
    notes = [section for section in rest if section[0].strip() == "Notes"]
    if notes:
        notes[0].extend(["", *words])
    else:
        place = sum(section[0].strip() not in AFTER_NOTES for section in rest)
        rest.insert(place, ["Notes", "-----", *words])
    return head + [line for section in rest for line in (*section, "")]


def split(lines: list[str]) -> tuple[list[str], list[list[str]]]:
    """Return the text before the first section, and the sections with their titles."""
    starts = [
        i
        for i, (title, line) in enumerate(itertools.pairwise(lines))
        if title.strip() and UNDERLINE.fullmatch(line.strip())
    ]
    if not starts:
        return lines, []
    ends = [*starts[1:], len(lines)]
    return lines[: starts[0]], [lines[i:j] for i, j in zip(starts, ends, strict=True)]
