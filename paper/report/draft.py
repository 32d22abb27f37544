"""A section under construction: its blocks in order, and the files of its figures."""

from __future__ import annotations

import io
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from paper.report.blocks import Block, Paragraph, Picture, Pictures, Points, Section, Table
from paper.report.svg import inline_svg

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["Draft", "Drawing"]


@dataclass(frozen=True)
class Drawing:
    """A figure, or an image of grey values in [0, 1], with its name, alternative text and caption."""

    name: str
    figure: Figure | Any
    alt: str
    caption: str


@dataclass
class Draft:
    """Collects blocks and files.

    Examples
    --------
    >>> from paper.report.draft import Draft
    >>> draft = Draft("Rates")
    >>> draft.paragraph("All bounds hold.")
    >>> draft.section().blocks
    (Paragraph(text='All bounds hold.'),)
    """

    title: str
    facts: dict[str, str] = field(default_factory=dict)
    failures: list[str] = field(default_factory=list)
    #: Contents of the files by name.
    files: dict[str, bytes] = field(default_factory=dict)
    _blocks: list[Block] = field(default_factory=list)

    def paragraph(self, text: str) -> None:
        """Add a paragraph."""
        self._blocks.append(Paragraph(text))

    def points(self, items: Sequence[str]) -> None:
        """Add a list of sentences."""
        self._blocks.append(Points(tuple(items)))

    def table(self, table: Table) -> None:
        """Add a table."""
        self._blocks.append(table)

    def pictures(self, drawings: Sequence[Drawing], most: int = 2) -> None:
        """Add figures side by side."""
        self._blocks.append(Pictures(tuple(map(self._picture, drawings)), most))

    def section(self) -> Section:
        """Return the section as written so far."""
        return Section(self.title, tuple(self._blocks), self.facts, tuple(self.failures))

    def _picture(self, drawing: Drawing) -> Picture:
        if hasattr(drawing.figure, "savefig"):
            file = f"{drawing.name}.svg"
            self.files[file] = inline_svg(drawing.figure, drawing.name, drawing.alt).encode()
        else:
            file = f"{drawing.name}.png"
            self.files[file] = _png(drawing.figure)
        return Picture(file, drawing.alt, drawing.caption)


def _png(image: Any) -> bytes:
    """Return an image of grey values in [0, 1] pixel by pixel."""
    from matplotlib.image import imsave

    buffer = io.BytesIO()
    metadata: Any = {"Software": None}  # the same image gives the same file
    imsave(buffer, image, cmap="gray", vmin=0.0, vmax=1.0, format="png", metadata=metadata)
    return buffer.getvalue()
