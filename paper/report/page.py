"""The page: one HTML file with everything inside, for light and dark, narrow and wide windows."""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from html import escape
from importlib.resources import files
from pathlib import Path

from paper.report.blocks import Block, Paragraph, Picture, Pictures, Points, Table
from paper.report.store import Finished

__all__ = ["Entry", "page"]


@dataclass(frozen=True)
class Entry:
    """A part of the page: its name, which is its anchor, and its outcome if it has been run."""

    name: str
    title: str
    finished: Finished | None


def page(entries: Sequence[Entry], about: Table, timings: Table, lead: str, footer: str) -> str:
    """Return the page as HTML.

    Parameters
    ----------
    entries : sequence of Entry
        The parts in the order of the page.
    about, timings : Table
        The machine with its versions, and the times of the parts.
    lead, footer : str
        Plain text at the top and at the bottom.

    Examples
    --------
    >>> from paper.report.blocks import Table
    >>> from paper.report.page import page
    >>> empty = Table("nothing", ("a",), ())
    >>> page([], empty, empty, "nothing was run", "").startswith("<!doctype html>")
    True
    """
    css = files("paper.report").joinpath("page.css").read_text(encoding="utf-8")
    body = "".join(_section(entry) for entry in entries)
    links = [(entry.name, entry.title) for entry in entries] + [("machine", "Machine and timings")]
    items = "".join(f'<li><a href="#{name}">{escape(title)}</a></li>' for name, title in links)
    # An icon of no bytes: browsers would otherwise request one from a server.
    return f"""<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>lopro: the paper's experiments, measured again</title>
<link rel="icon" href="data:,">
<style>
{css}</style>
</head>
<body>
<header>
<h1>The paper's experiments, measured again</h1>
<p class="lead">{escape(lead)}</p>
<nav aria-label="Parts of the report"><ol>{items}</ol></nav>
</header>
<main>
{body}<section id="machine">
{_heading("machine", "Machine and timings")}
{_table(timings)}{_table(about)}</section>
</main>
<footer><p>{escape(footer)}</p></footer>
</body>
</html>
"""


def _heading(name: str, title: str) -> str:
    return f'<h2><a href="#{name}">{escape(title)}</a></h2>'


def _section(entry: Entry) -> str:
    if entry.finished is None:
        inside = '<p class="pending">Not run yet.</p>\n'
        return f'<section id="{entry.name}">\n{_heading(entry.name, entry.title)}\n{inside}</section>\n'
    section, folder = entry.finished.section, entry.finished.folder
    facts = section.facts | {"took": f"{entry.finished.seconds:.1f} s"}
    parts = [
        _heading(entry.name, section.title),
        _facts(facts),
        *(
            f'<p class="failure"><strong>Not reached:</strong> {escape(f)}</p>'
            for f in section.failures
        ),
        *(_block(block, folder) for block in section.blocks),
    ]
    return f'<section id="{entry.name}">\n' + "\n".join(parts) + "\n</section>\n"


def _facts(facts: dict[str, str]) -> str:
    cells = "".join(
        f"<div><dt>{escape(name)}</dt><dd>{escape(value)}</dd></div>"
        for name, value in facts.items()
    )
    return f'<dl class="facts">{cells}</dl>'


def _block(block: Block, folder: Path) -> str:
    match block:
        case Paragraph(text):
            return f"<p>{escape(text)}</p>"
        case Points(items):
            return "<ul>" + "".join(f"<li>{escape(item)}</li>" for item in items) + "</ul>"
        case Pictures(items, most):
            shown = "".join(_figure(item, folder) for item in items)
            return f'<div class="figures {("one", "two", "three")[most - 1]}">{shown}</div>'
        case Table():
            return _table(block)


def _figure(picture: Picture, folder: Path) -> str:
    content = (folder / picture.file).read_bytes()
    if picture.file.endswith(".svg"):
        inside = content.decode("utf-8")
    else:
        data = b64encode(content).decode("ascii")
        inside = f'<img src="data:image/png;base64,{data}" alt="{escape(picture.alt)}">'
    return f"<figure>{inside}<figcaption>{escape(picture.caption)}</figcaption></figure>"


def _table(table: Table) -> str:
    body = "".join(_row(table, row) for row in table.rows)
    note = f'<p class="note">{escape(table.note)}</p>' if table.note else ""
    shape = "table narrow" if len(table.columns) <= 3 else "table"
    # The box can be scrolled, so it must be reachable by keyboard and needs a name.
    name = escape(table.caption)
    return (
        f'<div class="{shape}"><p class="title">{name}</p>'
        f'<div class="box" role="region" aria-label="{name}" tabindex="0"><table>'
        f"<thead>{_head(table)}</thead><tbody>{body}</tbody></table></div>{note}</div>\n"
    )


def _head(table: Table) -> str:
    if not any(table.columns):
        return ""
    groups = ""
    if table.groups:
        cells = "".join(
            f'<th class="group" scope="colgroup" colspan="{n}">{escape(name)}</th>'
            if name
            else f'<td colspan="{n}"></td>'
            for name, n in table.groups
        )
        groups = f"<tr>{cells}</tr>"
    edges = _edges(table)
    columns = "".join(
        f'<th scope="col" class="{_classes(table, j, edges)}">{escape(name)}</th>'
        for j, name in enumerate(table.columns)
    )
    return f"{groups}<tr>{columns}</tr>"


def _row(table: Table, row: tuple[str, ...]) -> str:
    edges = _edges(table)
    cells = [f'<th scope="row" class="words">{escape(row[0])}</th>'] + [
        f'<td class="{_classes(table, j, edges)}">{escape(cell)}</td>'
        for j, cell in enumerate(row)
        if j > 0
    ]
    # A rule above every new name; rows without a name belong to the name above.
    return f"<tr{' class=new' if row[0] else ''}>{''.join(cells)}</tr>"


def _edges(table: Table) -> set[int]:
    """Return the columns with which a group begins."""
    return set(_begins(table.groups))


def _begins(groups: tuple[tuple[str, int], ...]) -> Iterator[int]:
    column = 0
    for name, n in groups:
        if name:
            yield column
        column += n


def _classes(table: Table, column: int, edges: set[int]) -> str:
    words = "words" if column < table.words else ""
    return f"{words} {'edge' if column in edges else ''}".strip()
