"""Every Python block of the documents runs and prints the text below it."""

from __future__ import annotations

import contextlib
import io
import re
from dataclasses import dataclass
from pathlib import Path

import pytest

from lopro.methods import applications

ROOT = Path(__file__).parents[2]
BLOCK = re.compile(r"^```python\n(.*?)^```\n(?:\s*^```text\n(.*?)^```)?", re.MULTILINE | re.DOTALL)


@dataclass(frozen=True)
class Snippet:
    place: str
    code: str
    shown: str | None


def snippets(name: str) -> list[Snippet]:
    text = (ROOT / name).read_text(encoding="utf-8")
    return [
        Snippet(f"{name}:{text.count(chr(10), 0, found.start()) + 2}", found[1], found[2])
        for found in BLOCK.finditer(text)
    ]


def printed(snippet: Snippet) -> str:
    """Run the code alone and return its output; line numbers are those of the document."""
    line = int(snippet.place.rpartition(":")[2])
    code = compile("\n" * (line - 1) + snippet.code, snippet.place, "exec")
    known = list(applications.registered)  # a snippet may add to it
    try:
        with contextlib.redirect_stdout(io.StringIO()) as output:
            exec(code, {"__name__": "__main__"})
    finally:
        applications.registered[:] = known
    return output.getvalue()


#: Every document with Python code.
DOCUMENTS = sorted(
    path.relative_to(ROOT).as_posix()
    for path in [*ROOT.glob("*.md"), *ROOT.glob("docs/*.md"), *ROOT.glob("docs/[eg]*/*.md")]
    if "```python" in path.read_text(encoding="utf-8")
)
ALL = [snippet for document in DOCUMENTS for snippet in snippets(document)]


@pytest.mark.parametrize("snippet", ALL, ids=lambda snippet: snippet.place)
def test_a_snippet_prints_what_the_document_shows(snippet: Snippet) -> None:
    output = printed(snippet)
    assert snippet.shown is not None, f"{snippet.place} shows no output, but prints {output!r}"
    assert output == snippet.shown


@pytest.mark.parametrize("document", DOCUMENTS)
def test_every_python_block_is_found(document: str) -> None:
    text = (ROOT / document).read_text(encoding="utf-8")
    assert len(snippets(document)) == text.count("```python") > 0


@pytest.mark.parametrize("document", sorted(path.name for path in ROOT.glob("*.md")))
def test_links_to_files_lead_somewhere(document: str) -> None:
    text = (ROOT / document).read_text(encoding="utf-8")
    # What begins with ../../ is a page of the hosting service: the badge that a workflow draws.
    links = [link for link in re.findall(r"\]\(([^)#]+)", text) if "://" not in link]
    links = [link for link in links if not link.startswith("../../")]
    assert links or document not in ("README.md", "CONTRIBUTING.md")
    assert [link for link in links if not (ROOT / document).parent.joinpath(link).exists()] == []
