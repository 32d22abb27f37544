"""The blocks of a section of the report, as data that a file can hold and a page can show."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field, replace
from typing import Any

__all__ = ["Block", "Paragraph", "Picture", "Pictures", "Points", "Section", "Table"]


@dataclass(frozen=True)
class Paragraph:
    """A paragraph of plain text."""

    text: str


@dataclass(frozen=True)
class Points:
    """A list of sentences."""

    items: tuple[str, ...]


@dataclass(frozen=True)
class Table:
    """A table: the first ``words`` columns hold words, the others numbers.

    ``groups`` are headings over columns, each with the number of columns it spans. An empty first cell
    stands for the one above it.
    """

    caption: str
    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    words: int = 1
    groups: tuple[tuple[str, int], ...] = ()
    note: str = ""

    def __post_init__(self) -> None:
        widths = {len(row) for row in self.rows} - {len(self.columns)}
        if widths or (self.groups and sum(n for _, n in self.groups) != len(self.columns)):
            raise ValueError(f"the table {self.caption!r} has rows or groups of another width")

    def without_empty_end(self) -> Table:
        """Return the table without its last group where that has no entry at all.

        Examples
        --------
        >>> from paper.report.blocks import Table
        >>> table = Table("t", ("a", "b"), (("1", ""),), groups=(("ours", 1), ("theirs", 1)))
        >>> table.without_empty_end().columns
        ('a',)
        """
        kept = len(self.columns) - self.groups[-1][1]
        if any(cell for row in self.rows for cell in row[kept:]):
            return self
        rows = tuple(row[:kept] for row in self.rows)
        return replace(self, columns=self.columns[:kept], rows=rows, groups=self.groups[:-1])


@dataclass(frozen=True)
class Picture:
    """A figure in a file of the part's folder, ``.svg`` to be put into the page or ``.png``."""

    file: str
    alt: str
    caption: str


@dataclass(frozen=True)
class Pictures:
    """Figures side by side where there is room, at most ``most`` in a row."""

    items: tuple[Picture, ...]
    most: int = 2


Block = Paragraph | Points | Table | Pictures
_KINDS: dict[str, Any] = {kind.__name__: kind for kind in (Paragraph, Points, Table)}


@dataclass(frozen=True)
class Section:
    """One part of the report.

    Examples
    --------
    >>> from paper.report.blocks import Paragraph, Section
    >>> section = Section("Rates", (Paragraph("All bounds hold."),), {"seed": "4"})
    >>> Section.from_dict(section.to_dict()) == section
    True
    """

    title: str
    blocks: tuple[Block, ...]
    #: The data needed to repeat it: sizes, seeds, tolerances.
    facts: dict[str, str] = field(default_factory=dict)
    #: Required results that were not reached.
    failures: tuple[str, ...] = ()

    def to_dict(self) -> dict[str, Any]:
        """Return it as plain data."""
        blocks = [{"kind": type(block).__name__} | asdict(block) for block in self.blocks]
        return asdict(self) | {"blocks": blocks}

    @classmethod
    def from_dict(cls, data: dict[str, Any]) -> Section:
        """Return the section that `to_dict` has described."""
        blocks = tuple(_block(dict(entry)) for entry in data["blocks"])
        return cls(data["title"], blocks, dict(data["facts"]), tuple(data["failures"]))


def _block(data: dict[str, Any]) -> Block:
    kind = data.pop("kind")
    if kind == "Pictures":
        return Pictures(tuple(Picture(**item) for item in data["items"]), data["most"])
    block: Block = _KINDS[kind](**{name: _frozen(value) for name, value in data.items()})
    return block


def _frozen(value: Any) -> Any:
    return tuple(_frozen(entry) for entry in value) if isinstance(value, (list, tuple)) else value
