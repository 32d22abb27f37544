"""The types that users see: mypy and pyright accept a client of the package, and refuse a wrong call."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
CLIENT = Path(__file__).with_name("client.py")
#: An argument that does not exist, and a value of another type.
WRONG = """\
import lopro

lopro.solve(lopro.Problem(lopro.objectives.L1Norm()), tolerance=1e-6)
value: str = lopro.solve(lopro.Problem(lopro.objectives.L1Norm())).fun
"""


def mypy(files: list[str], folder: Path) -> str:
    pytest.importorskip("mypy")
    # Silent: errors inside of an installed package are not shown to its users.
    options = ["--strict", "--follow-imports=silent", f"--config-file={os.devnull}"]
    call = [sys.executable, "-m", "mypy", *options, f"--cache-dir={folder / 'cache'}", *files]
    environment = {**os.environ, "MYPYPATH": str(ROOT / "src")}
    return subprocess.run(call, capture_output=True, text=True, env=environment, cwd=folder).stdout


def pyright(files: list[str], folder: Path) -> str:
    pytest.importorskip("pyright")
    settings = {"include": [Path(file).name for file in files], "extraPaths": [str(ROOT / "src")]}
    (folder / "pyrightconfig.json").write_text(json.dumps(settings), encoding="utf-8")
    call = [sys.executable, "-m", "pyright", "--pythonpath", sys.executable]
    done = subprocess.run(call, capture_output=True, text=True, cwd=folder)
    if not re.search(r"\d errors?, ", done.stdout):
        pytest.skip(f"pyright could not be started: {(done.stderr or done.stdout)[-200:]}")
    return done.stdout


@pytest.mark.slow
@pytest.mark.parametrize("checker", [mypy, pyright], ids=lambda checker: checker.__name__)
def test_a_client_passes_and_a_wrong_call_does_not(checker, tmp_path):
    """The package is typed (py.typed), and not `Any` for its users."""
    client, wrong = tmp_path / "client.py", tmp_path / "wrong.py"
    client.write_text(CLIENT.read_text(encoding="utf-8"), encoding="utf-8")
    wrong.write_text(WRONG, encoding="utf-8")
    shown = checker([str(client), str(wrong)], tmp_path)
    errors = [line for line in shown.splitlines() if re.search(r"\berror: |- error\b", line)]
    assert [line for line in errors if "wrong.py" not in line] == []
    assert {line for line in errors if '"tolerance"' in line}, shown
    assert {line for line in errors if '"str"' in line}, shown


def test_the_client_runs():
    done = subprocess.run([sys.executable, str(CLIENT)], capture_output=True, text=True)
    assert done.stdout == "True ['CONVERGED', 'CONVERGED'] True\n", done.stderr
