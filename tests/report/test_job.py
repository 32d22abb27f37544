"""The job: finished parts are kept, changed ones run again, and the page is always complete."""

from __future__ import annotations

import json
import signal
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from scipy.optimize import Bounds

import lopro
from lopro.cli import main
from paper.report import job
from paper.report.blocks import Table
from paper.report.draft import Draft
from paper.report.order import Order, Scale
from paper.report.parts import TITLES, part
from paper.report.store import Store

pytest.importorskip("matplotlib", reason='needs matplotlib: pip install "lopro[plot]"')
pytest.importorskip("pywt", reason='needs PyWavelets: pip install "lopro[examples]"')


class Recorder:
    """Replaces all parts: records which of them run, and can stop or fail at a given one."""

    def __init__(self) -> None:
        self.ran: list[str] = []
        self.interrupt_at = ""
        self.failing = ""
        self.seed = 0

    def part(self, name: str) -> Any:
        def run(order: Order) -> Draft:
            if name == self.interrupt_at:
                raise KeyboardInterrupt
            self.ran.append(name)
            order.say(f"running {name}")
            draft = Draft(f"Title of {name}", {"seed": str(self.seed)})
            draft.table(Table(f"numbers <of> {name}", ("a", "b"), (("x", "1"),)))
            if name == self.failing:
                draft.failures.append("gap too large")
            return draft

        def parameters(order: Order) -> dict[str, Any]:
            return {"seed": self.seed, "scale": order.scale.name}

        return SimpleNamespace(run=run, parameters=parameters)


@pytest.fixture
def recorder(monkeypatch: pytest.MonkeyPatch) -> Recorder:
    made = Recorder()
    monkeypatch.setattr(job, "part", made.part)
    return made


def test_finished_parts_are_not_run_again(recorder, tmp_path: Path, capsys):
    job.reproduce(out=tmp_path)
    assert recorder.ran == list(TITLES)
    first = (tmp_path / "index.html").read_text(encoding="utf-8")
    capsys.readouterr()
    job.reproduce(out=tmp_path)
    assert recorder.ran == list(TITLES)
    assert (tmp_path / "index.html").read_text(encoding="utf-8") == first
    assert capsys.readouterr().out.count("finished before") == len(TITLES)


def test_an_interrupted_job_goes_on_where_it_stopped(recorder, tmp_path: Path):
    recorder.interrupt_at = "table2"
    with pytest.raises(KeyboardInterrupt):
        job.reproduce(out=tmp_path)
    page = (tmp_path / "index.html").read_text(encoding="utf-8")
    assert "Title of table1" in page and page.count("Not run yet.") == len(TITLES) - 2
    assert [p for p in (tmp_path / "parts").iterdir() if p.name.startswith(".")] == []
    recorder.interrupt_at = ""
    job.reproduce(out=tmp_path)
    assert recorder.ran == list(TITLES)
    assert "Not run yet." not in (tmp_path / "index.html").read_text(encoding="utf-8")


def test_ctrl_c_within_a_solver_ends_the_job_and_keeps_no_half_of_a_part(
    recorder, tmp_path: Path, monkeypatch
):
    """`solve` ends with the best point so far, which must not become the outcome of a part."""
    reached = []

    def run(order: Order) -> Draft:
        calls = []

        def slope(x):
            calls.append(x)
            if len(calls) == 10:  # the first ones are before the run
                signal.raise_signal(signal.SIGINT)
            return 4 * (x - 3.0) ** 3

        box = Bounds([-1, -1], [1, 1])
        value = lambda x: float(np.sum((x - 3.0) ** 4))  # noqa: E731
        lopro.minimize(value, -np.ones(2), jac=slope, constraint=box)
        assert len(calls) >= 10
        reached.append("after the solver")
        return Draft("half")

    fake = SimpleNamespace(run=run, parameters=lambda order: {})
    monkeypatch.setattr(job, "part", lambda name: fake)
    # Tests in the background of a shell ignore it.
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        with pytest.raises(KeyboardInterrupt):
            job.reproduce(["rates"], out=tmp_path)
        assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
    finally:
        signal.signal(signal.SIGINT, before)
    assert reached == [] and not (tmp_path / "parts").exists()


@pytest.mark.parametrize("change", ["seed", "scale", "source", "machine", "fresh", "damage"])
def test_whatever_changes_the_outcome_makes_a_part_run_again(
    recorder, tmp_path: Path, monkeypatch, change
):
    order, fresh = Order(Scale.USUAL), False
    job.reproduce(["rates"], order, tmp_path)
    if change == "seed":
        recorder.seed = 1
    elif change == "scale":
        order = Order(Scale.SHORT)
    elif change == "source":
        monkeypatch.setattr(job, "source_digest", lambda: "another")
    elif change == "machine":
        facts = job.facts()
        monkeypatch.setattr(job, "facts", lambda: facts | {"processor": "another"})
    elif change == "fresh":
        fresh = True
    else:
        (record,) = (tmp_path / "parts").glob("*/part.json")
        record.write_text(record.read_text(encoding="utf-8")[:-20], encoding="utf-8")
    job.reproduce(["rates"], order, tmp_path, fresh=fresh)
    assert recorder.ran == ["rates", "rates"]
    job.reproduce(["rates"], order, tmp_path)
    assert recorder.ran == ["rates", "rates"]


def test_parts_of_earlier_calls_stay_on_the_page(recorder, tmp_path: Path):
    job.reproduce(["rates"], out=tmp_path)
    job.reproduce(["ecg"], out=tmp_path)
    page = (tmp_path / "index.html").read_text(encoding="utf-8")
    assert "Title of rates" in page and "Title of ecg" in page and "Title of table1" not in page
    assert "numbers &lt;of&gt; ecg" in page


def test_half_a_part_is_never_kept(tmp_path: Path):
    draft = Draft("a title")
    draft.files["no/such/folder.svg"] = b""
    store = Store(tmp_path)
    with pytest.raises(FileNotFoundError):
        store.save("rates", {"seed": 0}, draft, 1.0)
    assert list(tmp_path.iterdir()) == [] and store.load("rates", {"seed": 0}) is None


def test_what_a_killed_process_left_behind_is_removed(recorder, tmp_path: Path):
    half = tmp_path / "parts" / ".rates-abc"
    half.mkdir(parents=True)
    (half / "0.svg").write_bytes(b"half")
    job.reproduce(out=tmp_path)
    assert not half.exists() and recorder.ran == list(TITLES)


def test_every_part_says_what_it_depends_on_in_plain_data():
    keys = {
        (name, scale): json.dumps(part(name).parameters(Order(scale)))
        for name in TITLES
        for scale in Scale
    }
    for name in set(TITLES) - {"demo", "ecg", "image", "rates"}:
        assert len({keys[name, scale] for scale in Scale}) == 3
    for name in ("ecg", "image", "rates"):
        assert keys[name, Scale.SHORT] != keys[name, Scale.USUAL]


def test_the_command_writes_the_page_and_prints_its_path(recorder, tmp_path: Path, capsys):
    out = tmp_path / "new" / "report"
    assert main(["reproduce", "table1", "--short", "--out", str(out)]) == 0
    shown = capsys.readouterr().out
    assert "[1/1] table1\n      running table1\n      done in" in shown
    assert f"the report: {out / 'index.html'}" in shown
    assert recorder.ran == ["table1"] and "Scale short" in (out / "index.html").read_text(
        encoding="utf-8"
    )


def test_the_status_reports_results_that_were_not_reached(recorder, tmp_path: Path, capsys):
    recorder.failing = "ecg"
    arguments = ["reproduce", "--out", str(tmp_path)]
    assert main(arguments) == 1
    assert "NOT REACHED: ecg: gap too large" in capsys.readouterr().out
    assert "gap too large" in (tmp_path / "index.html").read_text(encoding="utf-8")
    assert main(arguments) == 1  # a finished part does not forget it


def test_the_command_says_that_an_interrupted_job_resumes(recorder, tmp_path: Path, capsys):
    recorder.interrupt_at = "table1"
    assert main(["reproduce", "--out", str(tmp_path)]) == 130
    assert "finished parts are kept" in capsys.readouterr().out


def test_bad_input_is_one_line(tmp_path: Path, capsys, monkeypatch):
    assert main(["reproduce", "--colon", str(tmp_path / "absent"), "--out", str(tmp_path)]) == 2
    assert "there is no file" in capsys.readouterr().err
    monkeypatch.setattr(job, "find_spec", lambda name: None if name == "matplotlib" else object())
    assert main(["reproduce", "--out", str(tmp_path)]) == 2
    printed = capsys.readouterr().err
    assert "needs matplotlib" in printed and "pip install 'lopro[plot]'" in printed
    assert list(tmp_path.iterdir()) == []
