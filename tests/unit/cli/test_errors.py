"""Bad input ends with status 2 and one line that names the error; defects of lopro are reported as such."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from lopro.cli import bpdn as command
from lopro.cli import main


@pytest.fixture(autouse=True)
def files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    np.save("A.npy", np.eye(3))
    np.save("y.npy", np.ones(3))
    np.save("short.npy", np.ones(2))
    np.save("nan.npy", np.array([1.0, np.nan, 0.0]))
    np.save("objects.npy", np.array([{}, {}]), allow_pickle=True)
    np.savez("two.npz", A=np.eye(3), B=np.eye(3))
    Path("words.csv").write_text("a,b\n1,two\n", encoding="utf-8")
    Path("empty.csv").write_text("", encoding="utf-8")
    Path("names.csv").write_text("1,2,a\n", encoding="utf-8")
    Path("broken.npy").write_bytes(b"not an array")
    Path("A.xlsx").write_bytes(b"")
    Path("folder.npy").mkdir()


BAD = {
    "no file": (["no.npy", "y.npy", "--sigma", "1"], "no file no.npy"),
    "a folder": (["folder.npy", "y.npy", "--sigma", "1"], "is a folder"),
    "unknown suffix": (["A.xlsx", "y.npy", "--sigma", "1"], "known are .npy"),
    "broken file": (
        ["broken.npy", "y.npy", "--sigma", "1"],
        "broken.npy could not be read: it is not in the format of numpy.save",
    ),
    "pickled objects": (["objects.npy", "y.npy", "--sigma", "1"], "objects.npy could not be read"),
    "words": (["words.csv", "y.npy", "--sigma", "1"], "words.csv could not be read"),
    "empty text": (["empty.csv", "y.npy", "--sigma", "1"], "empty.csv is empty"),
    "a line of names": (["names.csv", "y.npy", "--sigma", "1"], "no row of numbers"),
    "which array": (["two.npz", "y.npy", "--sigma", "1"], "two.npz:A"),
    "no such array": (["two.npz:C", "y.npy", "--sigma", "1"], "it has no array 'C'"),
    "shapes": (["A.npy", "short.npy", "--sigma", "1"], "shape"),
    "not finite": (["A.npy", "nan.npy", "--sigma", "1"], "y must be finite"),
    "negative radius": (["A.npy", "y.npy", "--sigma", "-1"], "sigma"),
    "method": (["A.npy", "y.npy", "--sigma", "1", "--method", "magic"], "WorkingSet"),
    "method with arguments": (
        ["A.npy", "y.npy", "--sigma", "1", "--method", "OneProjection"],
        "requires arguments",
    ),
    "output suffix": (["A.npy", "y.npy", "--sigma", "1", "-o", "x.doc"], "must end in"),
    "output folder": (["A.npy", "y.npy", "--sigma", "1", "-o", "folder.npy"], "is a folder"),
    "budget": (["A.npy", "y.npy", "--sigma", "1", "--max-iter", "0"], "max_iter"),
}


@pytest.mark.parametrize(("arguments", "words"), BAD.values(), ids=BAD)
def test_bad_input_is_one_line_and_status_2(arguments, words, capsys):
    assert main(["bpdn", *arguments]) == 2
    shown = capsys.readouterr()
    assert shown.out == ""
    assert shown.err.startswith("lopro: ") and words in shown.err
    assert shown.err.count("\n") == 1


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["metric", "A.npy", "--label", "1"], "--labels FILE"),
        (["reproduce", "demo", "--short", "--out", "y.npy"], "y.npy is a file"),
    ],
)
def test_other_commands_name_the_valid_input(arguments, words, capsys):
    assert main(arguments) == 2
    shown = capsys.readouterr()
    assert shown.out == "" and words in shown.err and shown.err.count("\n") == 1


@pytest.mark.parametrize("arguments", [[], ["bpdn", "A.npy", "y.npy"], ["nonsense"]])
def test_wrong_usage_has_status_2(arguments, capsys):
    with pytest.raises(SystemExit) as ended:
        main(arguments)
    assert ended.value.code == 2
    assert "usage: lopro" in capsys.readouterr().err


def test_a_defect_has_status_3_and_is_reported(monkeypatch, capsys):
    def defect(*args, **options):
        raise ZeroDivisionError("division by zero")

    monkeypatch.setattr(command, "bpdn", defect)
    assert main(["bpdn", "A.npy", "y.npy", "--sigma", "1"]) == 3
    shown = capsys.readouterr().err
    assert "ZeroDivisionError" in shown and "defect" in shown and "Traceback" not in shown
    main(["--traceback", "bpdn", "A.npy", "y.npy", "--sigma", "1"])
    assert "Traceback" in capsys.readouterr().err


def test_an_interrupt_outside_of_a_run_has_status_130(monkeypatch, capsys):
    def interrupt(*args, **options):
        raise KeyboardInterrupt

    monkeypatch.setattr(command, "read_array", interrupt)
    assert main(["bpdn", "A.npy", "y.npy", "--sigma", "1"]) == 130
    assert capsys.readouterr().err == "lopro: interrupted\n"


def test_the_module_is_the_command():
    run = [sys.executable, "-W", "error", "-m", "lopro", "bpdn", "no.npy", "y.npy", "--sigma", "1"]
    ended = subprocess.run(run, capture_output=True, text=True)
    assert (ended.returncode, ended.stdout, ended.stderr) == (
        2,
        "",
        "lopro: there is no file no.npy\n",
    )


def test_a_pipe_that_is_closed_early_is_no_error():
    script = f"{sys.executable} -m lopro methods | head -n 1; echo ${{PIPESTATUS[0]}}"
    ended = subprocess.run(["bash", "-c", script], capture_output=True, text=True)
    assert ended.stderr == "" and ended.stdout.endswith("\n0\n")
