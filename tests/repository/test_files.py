"""Workflows, release files and packages state the same versions and commands, and are well formed."""

from __future__ import annotations

import ast
import importlib.util
import os
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
WORKFLOWS = sorted((ROOT / ".github" / "workflows").glob("*.yml"))
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]


def load(name: str):
    """Import a script of `.ci`."""
    spec = importlib.util.spec_from_file_location(name, ROOT / ".ci" / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture
def release():
    return load("release")


SCHEMAS = {
    "vendor.github-workflows": WORKFLOWS,
    "vendor.dependabot": [ROOT / ".github" / "dependabot.yml"],
    "vendor.readthedocs": [ROOT / ".readthedocs.yaml"],
    "vendor.citation-file-format": [ROOT / "CITATION.cff"],
}


@pytest.mark.parametrize("schema", SCHEMAS)
def test_files_follow_their_schema(schema):
    pytest.importorskip("check_jsonschema", reason='needs pip install "lopro[dev]"')
    call = [sys.executable, "-m", "check_jsonschema", "--builtin-schema", schema]
    done = subprocess.run([*call, *map(str, SCHEMAS[schema])], capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr


def test_the_schema_check_sees_an_error(tmp_path):
    pytest.importorskip("check_jsonschema")
    broken = tmp_path / "broken.yml"
    broken.write_text(
        WORKFLOWS[0].read_text(encoding="utf-8").replace("runs-on", "run-on"), encoding="utf-8"
    )
    call = [sys.executable, "-m", "check_jsonschema", "--builtin-schema", "vendor.github-workflows"]
    assert subprocess.run([*call, str(broken)], capture_output=True).returncode == 1


def test_make_targets_and_scripts_of_workflows_exist():
    targets = re.findall(
        r"^([a-z]+):", (ROOT / "Makefile").read_text(encoding="utf-8"), re.MULTILINE
    )
    text = "\n".join(path.read_text(encoding="utf-8") for path in WORKFLOWS)
    called = re.findall(r"run: make ([a-z ]+?)(?: [A-Z]|$)", text, re.MULTILINE)
    names = [name for call in called for name in call.split()]
    assert len(names) > 8 and set(names) <= set(targets)
    scripts = re.findall(r"python (\.ci/\w+\.py)", text)
    assert len(scripts) >= 3 and all((ROOT / name).exists() for name in scripts)


def test_the_versions_of_python_are_those_of_the_package():
    named = {c.rsplit(" ", 1)[1] for c in PROJECT["classifiers"] if ":: 3." in c}
    text = (ROOT / ".github" / "workflows" / "tests.yml").read_text(encoding="utf-8")
    (row,) = re.findall(r"python: (\[.+\])", text)
    assert set(re.findall(r'"(3\.\d+)"', row)) == named
    assert PROJECT["requires-python"] == ">=" + min(named, key=lambda v: int(v.split(".")[1]))


def test_every_file_states_one_version(release):
    import lopro

    assert set(release.stated().values()) == {lopro.__version__}
    assert release.notes(lopro.__version__)[1]


def test_a_tag_of_another_version_is_refused(release):
    wrong = release.complaints("v9.9.9")
    assert len(wrong) == len(release.STATED) + 1
    assert all("9.9.9" in line for line in wrong)


def test_a_section_without_a_date_is_refused(release, monkeypatch, tmp_path):
    for name, text in {
        "src/lopro/__init__.py": '__version__ = "1.2.3"',
        "CITATION.cff": "version: 1.2.3",
        "recipe/meta.yaml": '{% set version = "1.2.3" %}',
        "CHANGELOG.md": "# Changelog\n\n## [1.2.3] - unreleased\n\n- News.\n\n## [1.2.2]\n\n- Old.\n",
    }.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text, encoding="utf-8")
    monkeypatch.setattr(release, "ROOT", tmp_path)
    (line,) = release.complaints("v1.2.3")
    assert "has no date" in line
    assert release.notes("1.2.3") == ("unreleased", "- News.")
    changelog = tmp_path / "CHANGELOG.md"
    changelog.write_text(
        changelog.read_text(encoding="utf-8").replace("unreleased", "2026-01-31"), encoding="utf-8"
    )
    assert release.complaints("v1.2.3") == []


def bounds(text: str) -> dict[str, str]:
    """Return ``{name: oldest release}`` of a list of requirements."""
    return dict(re.findall(r"([a-z][a-z-]+) ?>=([0-9.]+)", text))


@pytest.mark.parametrize("name", ["environment.yml", "recipe/meta.yaml"])
def test_conda_requires_the_same_releases_as_pip(name):
    required = bounds("\n".join(PROJECT["dependencies"]))
    found = bounds((ROOT / name).read_text(encoding="utf-8"))
    assert {key: found[key] for key in required if key in found} == {
        key: required[key] for key in required if key in found
    }
    assert set(required) <= set(found)


def test_no_file_names_a_person():
    for name in ("SECURITY.md", "CODE_OF_CONDUCT.md", "RELEASING.md"):
        assert not re.search(r"[\w.]+@[\w.]+|@\w+", (ROOT / name).read_text(encoding="utf-8"))


def test_the_badge_shows_the_share_of_lines_and_branches():
    report = '<c lines-covered="{}" lines-valid="100" branches-covered="80" branches-valid="100"/>'
    badge = load("badge").badge
    assert ">85%<" in badge(report.format(90)) and "#a82" in badge(report.format(90))
    assert ">90%<" in badge(report.format(100)) and "#3a3" in badge(report.format(100))


@pytest.mark.parametrize(
    "script", sorted(ROOT.glob("benchmarks/figure_*.py")), ids=lambda p: p.stem
)
def test_scripts_for_figures_find_what_they_import(script, tmp_path):
    """As ``make figures`` runs them: from a folder that is not on the path, and without its siblings."""
    pytest.importorskip("matplotlib")
    code = (
        f"import runpy, sys; sys.path[0] = {str(script.parent)!r}; runpy.run_path({str(script)!r})"
    )
    environment = {**os.environ, "PYTHONPATH": str(ROOT / "src"), "MPLBACKEND": "Agg"}
    call = [sys.executable, "-c", code]
    done = subprocess.run(call, capture_output=True, text=True, cwd=tmp_path, env=environment)
    assert done.returncode == 0, done.stderr


def without_encoding(source: str) -> list[str]:
    """Return the calls that read or write text in the encoding of the system, which need not be UTF-8."""
    return [
        ast.unparse(node)
        for node in ast.walk(ast.parse(source))
        if isinstance(node, ast.Call)
        and isinstance(node.func, ast.Attribute)
        and node.func.attr in ("read_text", "write_text")
        and "encoding" not in {keyword.arg for keyword in node.keywords}
    ]


def test_text_is_read_and_written_in_utf_8():
    assert without_encoding("p.read_text()\np.write_text(s, encoding='utf-8')") == ["p.read_text()"]
    folders = ("src", "paper", "benchmarks", "tests", ".ci", "docs/_ext", "examples")
    found = {
        path.relative_to(ROOT).as_posix(): calls
        for folder in folders
        for path in sorted((ROOT / folder).rglob("*.py"))
        if (calls := without_encoding(path.read_text(encoding="utf-8")))
    }
    assert found == {}


#: Names and phrases that were replaced by the usual words of optimisation.
RIDDLES = (
    r"\b(Crowd|EasySet|rough_newton|first_piece|lockstep|signed_support|solve_together)\b"
    r"|\bdef _?(look|pose|posed|together|tell|told|wanted|patiently)\("
    r"|\b(wishes|journeys?|crowds?|prizes?|whoever|to life)\b"
    r"|\bin a hurry\b|\bto and fro\b|\bat work\b"
)
#: What people read, and what runs: tests may plant such a name.
READ = ["src/**/*.py", "paper/**/*.py", "benchmarks/**/*.py", "examples/**/*.py", "docs/*.md"]
READ += ["docs/[a-z]*/*.md", "*.md"]


def test_names_and_phrases_that_were_replaced_do_not_come_back():
    for planted in ("class Crowd:", "    def _look(self):", "for each of its three wishes"):
        assert re.search(RIDDLES, planted)
    paths = {path for pattern in READ for path in ROOT.glob(pattern)}
    assert len(paths) > 400
    found = [
        f"{path.relative_to(ROOT)}: {match.group(0)}"
        for path in sorted(paths)
        for match in re.finditer(RIDDLES, path.read_text(encoding="utf-8"))
    ]
    assert found == []
