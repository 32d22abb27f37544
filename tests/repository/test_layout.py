"""Tests lie where the map in CONTRIBUTING.md says, and share code through ``tests/support`` only."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

TESTS = Path(__file__).parents[1]
PACKAGES = TESTS.parent / "src" / "lopro"
FOLDERS = {path.name for path in TESTS.iterdir() if path.is_dir() and any(path.rglob("*.py"))}
#: Programs with tests of their own; others may call them.
PROGRAMS = {"fuzz", "mutants", "traces"}


def imported(source: str) -> Iterator[str]:
    """Yield the dotted names of the modules that a file imports anywhere."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            yield from (name.name for name in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            yield from (f"{node.module}.{name.name}" for name in node.names)


def foreign(source: str, folder: str) -> list[str]:
    """Return the imports of a file in a folder of tests that are from other tests."""
    names = [name.split(".") for name in imported(source)]
    allowed = {"support", folder} | PROGRAMS
    return [
        ".".join(parts)
        for parts in names
        if parts[0] == "tests"
        or (parts[0] in FOLDERS - allowed)
        or (parts[0] in FOLDERS and any(part.startswith("test_") for part in parts[1:]))
    ]


def test_an_import_from_another_test_is_seen():
    source = "import numpy\nfrom theory.known import Known\nfrom support.claims import x\n"
    assert foreign(source, "unit") == ["theory.known.Known"]
    assert foreign("from fuzz import test_machine, kinds\n", "traces") == ["fuzz.test_machine"]
    assert foreign(source, "theory") == []


@pytest.mark.parametrize("folder", sorted(FOLDERS))
def test_tests_import_no_tests(folder):
    found = {
        path.relative_to(TESTS).as_posix(): names
        for path in (TESTS / folder).rglob("*.py")
        if (names := foreign(path.read_text(encoding="utf-8"), folder))
    }
    # `benchmarks` is also the folder of the programs that are measured.
    assert {
        p: [n for n in names if not n.startswith("benchmarks.")] for p, names in found.items()
    } == {path: [] for path in found}


def test_unit_tests_are_named_after_packages():
    units = {
        path.name for path in (TESTS / "unit").iterdir() if path.is_dir() and any(path.glob("*.py"))
    }
    packages = {path.stem for path in PACKAGES.iterdir() if path.suffix == ".py" or path.is_dir()}
    assert units - packages == set()


def test_the_map_names_every_folder():
    text = (TESTS.parent / "CONTRIBUTING.md").read_text(encoding="utf-8")
    named = set(re.findall(r"`tests/([a-z]+)[`/]", text))
    assert FOLDERS - named == set()
    assert named - FOLDERS == set()
