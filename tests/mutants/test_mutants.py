"""The list of mutants fits the sources, and the tool that runs it reports undetected errors."""

from __future__ import annotations

from pathlib import Path

import pytest

from mutants.__main__ import ALL_WELL, BAD_LIST, SURVIVORS, main
from mutants.listing import Mutant, flaws, load


def test_every_mutant_fits_the_sources():
    mutants = load()
    assert len(mutants) >= 80
    assert flaws(mutants) == []


ENTRY = {
    "name": "sign",
    "file": "src/adding.py",
    "before": "a + b",
    "after": "a - b",
    "tests": ["tests/test_adding.py"],
}


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A checkout of one function with one test."""
    for name, text in {
        "pyproject.toml": '[tool.pytest.ini_options]\npythonpath = ["src"]\n',
        "src/adding.py": "def add(a, b):\n    unused = 1\n    while False:\n        pass\n    return a + b\n",
        "tests/test_adding.py": "from adding import add\n\n\ndef test_add():\n    assert add(1, 2) == 3\n",
    }.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text, encoding="utf-8")
    (tmp_path / "list").mkdir()
    return tmp_path


@pytest.mark.parametrize(
    ("changes", "flaw"),
    [
        ({}, None),
        ({"before": "a * b"}, "occurs 0 times"),
        ({"before": "b"}, "occurs 2 times"),
        ({"file": "src/gone.py"}, "there is no src/gone.py"),
        ({"tests": ["tests/gone.py"]}, "there is no tests/gone.py"),
        ({"tests": []}, "no tests"),
        ({"after": "a + b"}, "the same"),
    ],
)
def test_a_list_that_does_not_fit_is_refused(project, changes, flaw):
    found = flaws([Mutant.of(ENTRY | changes)], project)
    assert [flaw in text for text in found] == ([True] if flaw else [])


def test_names_and_keys_are_checked(project):
    mutant = Mutant.of(ENTRY)
    assert "2 mutants" in flaws([mutant, mutant], project)[0]
    with pytest.raises(ValueError, match=r"unknown keys \['test'\]"):
        Mutant.of(ENTRY | {"test": "tests/test_adding.py"})
    with pytest.raises(ValueError, match=r"missing or unknown keys \['after'\]"):
        Mutant.of({key: value for key, value in ENTRY.items() if key != "after"})


def listed(**changes: str) -> str:
    return "[[mutant]]\n" + "".join(f"{k} = {v!r}\n" for k, v in (ENTRY | changes).items())


UNUSED = {"before": "unused = 1", "after": "unused = 2"}


@pytest.mark.parametrize(
    ("changes", "status", "printed"),
    [
        ({}, ALL_WELL, "tests/test_adding.py::test_add"),
        (UNUSED, SURVIVORS, "SURVIVED: sign"),
        (UNUSED | {"equivalent": "nobody reads it"}, ALL_WELL, "equivalent: sign (nobody"),
        ({"equivalent": "a false claim"}, SURVIVORS, "NOT EQUIVALENT: sign"),
        ({"before": "while False", "after": "while True"}, ALL_WELL, "too slow"),
        ({"before": "def add", "after": "def subtract"}, SURVIVORS, "BROKEN: sign"),
        ({"before": "a * b"}, BAD_LIST, "does not fit"),
    ],
    ids=["noticed", "survived", "equivalent", "not-equivalent", "hangs", "broken", "rotten"],
)
def test_the_outcomes_of_the_tool(project, capsys, changes, status, printed):
    (project / "list" / "all.toml").write_text(listed(**changes), encoding="utf-8")
    source = (project / "src/adding.py").read_text(encoding="utf-8")
    limit = "3" if printed == "too slow" else "300"
    assert main(["--limit", limit], project, project / "list") == status
    assert printed in capsys.readouterr().out
    assert (project / "src/adding.py").read_text(encoding="utf-8") == source


def test_mutants_are_chosen_by_name_and_file(project, capsys):
    (project / "list" / "all.toml").write_text(
        listed() + listed(name="other", **UNUSED), encoding="utf-8"
    )
    for options, chosen in ((["-k", "oth"], 1), (["--file", "src/"], 2), ([], 2)):
        assert main(["--list", *options], project, project / "list") == ALL_WELL
        assert f"{chosen} mutants" in capsys.readouterr().out
    assert main(["-k", "nobody"], project, project / "list") == BAD_LIST
