"""Every command that a document shows exists, takes the arguments shown, and runs in a workflow or here."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import numpy as np
import pytest
import scipy.io

from lopro.cli.main import _parser, main

ROOT = Path(__file__).parents[2]
DOCUMENTS = [*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md")]
MAKEFILE = (ROOT / "Makefile").read_text(encoding="utf-8")
WORKFLOWS = "\n".join(
    path.read_text(encoding="utf-8") for path in (ROOT / ".github" / "workflows").glob("*.yml")
)
#: Targets that no workflow calls by name, and what runs instead of them.
BY_OTHER_NAMES = {
    "test": "lint, types and pytest in three jobs",
    "check": "pytest",
    "format": "it rewrites; `lint` checks the same",
    "traces": "it rewrites the record that tests/traces compares with",
}
#: Modules that no workflow runs, and why.
BY_HAND = {
    "benchmarks.scale.device_targets": "it needs a GPU",
    "benchmarks.track": "make track",
    "fuzz": "make fuzz",
    "traces": "it rewrites records; tests/traces calls its functions",
}
#: Programs that are not of this repository.
OTHERS = {"git", "pip", "conda"}


def commands() -> list[str]:
    """Return the commands in blocks of consoles and the ones inside sentences, without their comments."""
    found = set()
    for path in DOCUMENTS:
        text = path.read_text(encoding="utf-8")
        blocks = re.findall(r"^ *\$ (.+)$", text, re.MULTILINE)
        inline = re.findall(r"`((?:make|lopro|python|pytest) [^`]+)`", text)
        found |= {line.split(" #")[0].strip() for line in (*blocks, *inline)}
    return sorted(found)


def words_of(command: str) -> list[str]:
    """Return the words of a command, without variables of the environment in front."""
    words = shlex.split(command)
    while "=" in words[0]:
        words = words[1:]
    return words


ALL = commands()


def test_the_commands_are_found():
    assert {"make test", "make", "pip install .", "python .ci/release.py v0.2.0"} <= set(ALL)
    assert {words_of(c)[0] for c in ALL} == OTHERS - {"conda"} | {
        "make",
        "lopro",
        "python",
        "pytest",
    }


def starting_with(*start: str) -> list[str]:
    return [c for c in ALL if tuple(words_of(c)[: len(start)]) == start]


@pytest.mark.parametrize("command", starting_with("make"))
def test_targets_exist_and_run_in_a_workflow(command):
    targets = [word for word in words_of(command)[1:] if re.fullmatch("[a-z]+", word)]
    variables = [word.partition("=")[0] for word in words_of(command)[1:] if "=" in word]
    for target in targets:
        assert re.search(rf"^{target}:", MAKEFILE, re.MULTILINE)
        run = re.search(rf"run: make\b.*\b{target}\b", WORKFLOWS)
        assert run or target in BY_OTHER_NAMES, f"no workflow runs make {target}"
    assert all(re.search(rf"^{name} \?=", MAKEFILE, re.MULTILINE) for name in variables)


def source_of(module: str) -> str:
    """Return the source of a module, or of all files of a package, that runs as a program."""
    place = module.replace(".", "/")
    for root in (ROOT, ROOT / "tests"):
        if (root / place / "__main__.py").exists():
            return "\n".join(p.read_text(encoding="utf-8") for p in (root / place).rglob("*.py"))
        if (root / f"{place}.py").exists():
            text = (root / f"{place}.py").read_text(encoding="utf-8")
            assert '__name__ == "__main__"' in text, f"{module} is no program"
            return text
    raise AssertionError(f"there is no module {module}")


@pytest.mark.parametrize("command", starting_with("python", "-m"))
def test_modules_are_programs_and_accept_their_options(command):
    _, _, module, *arguments = words_of(command)
    source = source_of(module)
    options = [word for word in arguments if word.startswith("--")]
    assert [option for option in options if f'"{option}"' not in source] == []
    name = module.rstrip(".")
    run = re.search(rf"run: python -m {re.escape(name)}( |$)", WORKFLOWS, re.MULTILINE)
    assert run or name in BY_HAND, f"no workflow runs python -m {name}"


@pytest.mark.parametrize(
    "command", re.findall(r"run: python -m (benchmarks\S* ?.*)$", WORKFLOWS, re.M)
)
def test_options_in_workflows_are_known(command):
    module, *arguments = shlex.split(command)
    options = [word for word in arguments if word.startswith("--")]
    assert [option for option in options if f'"{option}"' not in source_of(module)] == []


@pytest.mark.parametrize("command", [c for c in starting_with("python") if " -m " not in c])
def test_scripts_exist_and_run_in_a_workflow(command):
    script = words_of(command)[1]
    assert (ROOT / script).exists()
    by_make = re.fullmatch(r"benchmarks/(bench|figure)_\w+\.py", script)  # make bench, make figures
    assert by_make or re.search(rf"python {re.escape(script)}( |$)", WORKFLOWS, re.MULTILINE)


@pytest.mark.parametrize("command", starting_with("pytest"))
def test_marks_of_pytest_are_known(command):
    words = words_of(command)
    assert words[1] == "-m"
    assert f'"{words[2]}:' in (ROOT / "pyproject.toml").read_text(encoding="utf-8")


@pytest.fixture
def files(tmp_path, monkeypatch):
    """The files that the page of the command line names, in the current folder."""
    rng = np.random.default_rng(0)
    A, x = rng.standard_normal((20, 50)), np.zeros(50)
    x[[3, 30]] = 1.0, -2.0
    y = A @ x
    monkeypatch.chdir(tmp_path)
    np.save("A.npy", A)
    np.save("y.npy", y)
    np.savetxt("y.csv", y)
    scipy.io.mmwrite("A.mtx", A)
    labels = np.repeat(["setosa", "virginica"], 15)
    rows = [f"{a:.3f},{b:.3f},{c}" for (a, b), c in zip(rng.random((30, 2)), labels, strict=True)]
    Path("data.csv").write_text("length,width,species\n" + "\n".join(rows) + "\n", encoding="utf-8")


@pytest.mark.parametrize("command", starting_with("lopro"))
def test_the_command_line_runs_as_shown(command, files, capsys):
    arguments = words_of(command)[1:]
    if arguments[0] in ("bench", "reproduce"):  # minutes; workflows and tests/report run them
        assert _parser().parse_args(arguments).run
        return
    assert main(arguments) == 0, capsys.readouterr().err
    assert len(capsys.readouterr().out) > 100
