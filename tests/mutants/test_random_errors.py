"""Random errors: each is one change, leaves a valid program, and is determined by the seed."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

from mutants.listing import ROOT, Mutant
from mutants.random_errors import edits, random_mutants, related_tests

SOURCE = """\
def f(x, y):
    \"\"\"Return 1 + 2.\"\"\"
    z = -(x) * (y + 3)
    if z <= 2.5:
        return g(x, y)
    return max(x, np.minimum(y, 1e-3))
"""


def test_every_kind_of_change() -> None:
    made = {SOURCE[: e.start] + e.after + SOURCE[e.end :] for e in edits(SOURCE)}
    assert len(made) == 10
    for text in made:
        ast.parse(text)
        assert "Return 1 + 2." in text
    for line in (
        "    z = (x) * (y + 3)", "    z = -(x) / (y + 3)", "    z = -(x) * (y - 3)",
        "    z = -(x) * (y + 4)", "    if z < 2.5:", "    if z <= 5.0:", "        return g(y, x)",
        "    return min(x, np.minimum(y, 1e-3))", "    return max(x, np.maximum(y, 1e-3))",
        "    return max(x, np.minimum(y, 0.002))",
    ):  # fmt: skip
        assert any(line in text.splitlines() for text in made), line


def test_the_seed_decides_and_each_change_is_in_its_place(tmp_path: Path) -> None:
    (tmp_path / "src" / "lopro").mkdir(parents=True)
    (tmp_path / "tests").mkdir()
    (tmp_path / "src" / "lopro" / "one.py").write_text(SOURCE, encoding="utf-8")
    (tmp_path / "tests" / "test_one.py").write_text("from lopro.one import f\n", encoding="utf-8")
    first = random_mutants(5, 1, "one", tmp_path, [])
    assert first == random_mutants(5, 1, "one", tmp_path, [])
    assert first != random_mutants(5, 2, "one", tmp_path, [])
    for mutant in first:
        text = mutant.applied_to(SOURCE)
        assert text != SOURCE and mutant.tests == ("tests/test_one.py",)
        ast.parse(text)


def test_tests_of_a_file_are_those_of_the_list_and_those_that_import_it() -> None:
    listed = [Mutant("a", "src/lopro/certificates/units.py", "x", "y", ("tests/test_layers.py",))]
    found = related_tests("src/lopro/certificates/units.py", ROOT, listed)
    assert "tests/test_layers.py" in found and "tests/unit/certificates/test_units.py" in found


@pytest.mark.parametrize(
    ("text", "related"),
    [
        ("from lopro.certificates.units import of_rows", True),
        ("from lopro.certificates import (\n    Bound,\n    ColumnUnits,\n)", True),
        ("from lopro.certificates import Bound", False),
        ("from lopro import certificates as lc\nlc.ColumnUnits", True),
        ("from lopro import maps, certificates\ncertificates.ColumnUnits", True),
        ("import lopro.certificates as lc\nlc.ColumnUnits()", True),
        ("import lopro\nlopro.ColumnUnits()", True),
        ("from lopro import ColumnUnits", True),
        ("from other import ColumnUnits", False),
        ("from lopro.maps import ColumnUnits", False),
    ],
)
def test_a_module_is_used_by_its_own_name_or_by_those_of_its_classes(
    tmp_path: Path, text: str, related: bool
) -> None:
    (tmp_path / "src/lopro/certificates").mkdir(parents=True)
    (tmp_path / "tests").mkdir()
    file = "src/lopro/certificates/units.py"
    (tmp_path / file).write_text('__all__ = ["ColumnUnits", "of_rows"]\n', encoding="utf-8")
    (tmp_path / "tests/test_it.py").write_text(text, encoding="utf-8")
    assert related_tests(file, tmp_path, []) == (("tests/test_it.py",) if related else ())


@pytest.mark.parametrize("file", ["certificates/bound.py", "driver/incumbent.py"])
def test_sources_of_the_library_stay_programs(file: str) -> None:
    text = (ROOT / "src" / "lopro" / file).read_text(encoding="utf-8")
    found = list(edits(text))
    assert len(found) > 10
    for e in found:
        ast.parse(text[: e.start] + e.after + text[e.end :])
