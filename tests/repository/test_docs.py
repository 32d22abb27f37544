"""The documentation: its extensions, its formulas, and the files that its pages include.

The build itself, with warnings as errors and the gallery run, is ``make docs``.
"""

from __future__ import annotations

import json
import re
import sys
from inspect import ismodule
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
pytest.importorskip("sphinx", reason='needs Sphinx: pip install "lopro[docs]"')


@pytest.fixture
def departures(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.syspath_prepend(str(DOCS / "_ext"))
    yield __import__("departures")
    del sys.modules["departures"]


def test_departures_go_to_the_end_of_the_notes(departures):
    before = "f.\n\nDepartures\n----------\nOne.\n\nNotes\n-----\nTwo.\n\nExamples\n--------\n>>> 1"
    after = "\n".join(departures.with_departures_in_notes(before.splitlines()))
    assert re.search(r"Notes\n-----\nTwo\.\n+\*\*Departures.*\*\*\nOne\.\n+Examples\n---", after)
    assert after.count("Notes") == 1


def test_departures_make_notes_of_their_own_before_the_references(departures):
    before = "f.\n\nDepartures\n----------\nOne.\n\nReferences\n----------\nA book."
    after = "\n".join(departures.with_departures_in_notes(before.splitlines()))
    assert re.search(r"f\.\n+Notes\n-----\n\*\*Departures.*\*\*\nOne\.\n+References\n---", after)


@pytest.mark.parametrize("text", ["f.", "f.\n\nNotes\n-----\nTwo.", ""])
def test_other_docstrings_are_left_alone(departures, text):
    assert departures.with_departures_in_notes(text.splitlines()) == text.splitlines()


def test_every_module_with_public_names_has_a_page(monkeypatch):
    monkeypatch.syspath_prepend(str(DOCS / "_ext"))
    pages = __import__("generated_pages")
    import lopro

    shown = {public.name for public in pages.public_modules()}
    assert {f"lopro.{name}" for name in lopro.__all__ if ismodule(getattr(lopro, name))} <= shown
    documented = "".join(pages.page(public) for public in pages.public_modules())
    for thing, home in pages.homes().items():
        assert documented.count(f":: {home}.{thing.__name__}\n") == 1
    assert "--sigma" in pages.help_of("bpdn")


def test_the_tables_of_methods_hold_every_declaration(monkeypatch):
    monkeypatch.syspath_prepend(str(DOCS / "_ext"))
    pages = __import__("generated_pages")
    from lopro.methods.registry import methods
    from lopro.protocol import Card

    rows = "".join(
        pages.methods_table(module) for module in ("lopro", "lopro.baselines")
    ).splitlines()
    for name, method in methods().items():
        (row,) = (row for row in rows if f"<{name}>`" in row)
        plain = re.sub(r"\\(.)", r"\1", row)
        assert all(getattr(method.card, field) in plain for field in Card.__annotations__)


def test_the_record_of_array_libraries_has_every_case_and_no_failure(monkeypatch):
    monkeypatch.syspath_prepend(str(DOCS / "_ext"))
    tables = __import__("contract_tables")
    from support.array_answers import CASES
    from support.array_calls import LIBRARIES

    record = json.loads(tables.RECORD.read_text(encoding="utf-8"))
    assert list(record["outcomes"]) == list(CASES)
    assert list(tables.LIBRARIES) == list(LIBRARIES)
    for name, row in record["outcomes"].items():
        assert list(row) == list(LIBRARIES), name
        assert set(row.values()) <= {"answer", "refused"}, name


def test_the_tables_of_array_libraries_name_what_is_refused(monkeypatch):
    monkeypatch.syspath_prepend(str(DOCS / "_ext"))
    tables = __import__("contract_tables")
    yes = dict.fromkeys(tables.LIBRARIES, "answer")
    no = dict.fromkeys(tables.LIBRARIES, "refused") | {"numpy-single": "answer"}
    assert tables._summary(yes) == "yes"
    assert tables._summary(no).startswith("on the host only")
    assert tables._summary(yes | {"jax": "refused"}) == "refused by JAX float64"
    assert tables._grid({"a over s": yes, "b over t": yes}).splitlines()[2:] == [
        "| a | yes |  |",
        "| b |  | yes |",
    ]


@pytest.mark.parametrize(
    "page", sorted(DOCS.glob("guide/*.md")) + sorted(DOCS.glob("extend/*.md")), ids=lambda p: p.stem
)
def test_sources_that_a_page_includes_exist(page):
    named = re.findall(
        r"^```\{(?:literalinclude|include)\} (\S+)", page.read_text(encoding="utf-8"), re.MULTILINE
    )
    made = [name for name in named if "_generated" not in name]
    assert [name for name in made if not (page.parent / name).exists()] == []


@pytest.mark.parametrize("path", sorted(DOCS.glob("**/*.md")), ids=lambda path: path.name)
def test_displayed_formulas_are_paragraphs_of_their_own(path):
    """Inside a paragraph the dollars pair up wrongly, and text and formulas change places."""
    for paragraph in re.split(r"\n\s*\n", path.read_text(encoding="utf-8")):
        if "$$" in paragraph:
            assert re.fullmatch(r"\s*\$\$[^$]+\$\$\s*", paragraph), paragraph
