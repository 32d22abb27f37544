"""Workers, the watchdog, shrinking, reproducers, the summary, the command."""

from __future__ import annotations

import json
import signal
import subprocess
import sys

import numpy as np
import pytest

from fuzz.command import main
from fuzz.judge.claims import Outcome, Raised
from fuzz.judge.verdict import Class, Verdict, worst
from fuzz.kinds import make
from fuzz.machine import pool
from fuzz.machine.attempt import attempt
from fuzz.machine.case import decide
from fuzz.machine.record import Record
from fuzz.machine.script import Script
from fuzz.machine.shrink import shrunk
from fuzz.machine.summary import Summary
from fuzz.pool_stubs import burn, misbehave, report_handler
from fuzz.sparse.case import SparseCase


def test_hanging_calls_are_killed_and_lost_processes_replaced(monkeypatch):
    monkeypatch.setattr(pool, "serve", misbehave)
    monkeypatch.setattr(pool, "patience", lambda limit: 1.0)
    monkeypatch.setattr(pool, "JUDGING", 20.0)
    with pool.Pool(2) as workers:
        tasks = [("bpdn", seed) for seed in (0, 1, 2, 4, 5, 6)]
        answers = {task[1]: record for task, record in workers.run(tasks)}
    assert [answers[k].verdict for k in (0, 4, 5, 6)] == ["certified"] * 4
    assert (answers[1].verdict, answers[1].label) == ("overrun", "hang")
    assert (answers[2].verdict, answers[2].label) == ("crash", "process died")
    assert "exit code 7" in answers[2].detail


def test_processor_time_is_watched_as_well(monkeypatch):
    monkeypatch.setattr(pool, "serve", burn)
    with pool.Pool(1, cpu_clock=True) as workers:
        ((_, record),) = workers.run([("bpdn", 0)])
    assert (record.verdict, record.label) == ("overrun", "hang")


def test_workers_receive_ctrl_c_where_the_shell_ignores_it(monkeypatch):
    """A shell starts background jobs with SIGINT ignored, and the library keeps it ignored where it is."""
    monkeypatch.setattr(pool, "serve", report_handler)
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        with pool.Pool(1) as workers:
            ((_, record),) = workers.run([("bpdn", 0)])
    finally:
        signal.signal(signal.SIGINT, before)
    assert record.label == "default_int_handler"


def test_a_judge_that_does_not_end_is_no_defect_of_the_library(monkeypatch):
    monkeypatch.setattr(pool, "serve", misbehave)
    monkeypatch.setattr(pool, "JUDGING", 8.0)
    with pool.Pool(1) as workers:
        ((_, record),) = workers.run([("bpdn", 3)])
    assert record.verdict == "unknown"


def outcome_of(call, **arrays):
    script = Script(call=call)
    for name, values in arrays.items():
        script.array(values, name)
    return attempt(script)


def test_changed_inputs_and_shared_memory_are_detected():
    assert outcome_of("a[0] = 5.0; result = None", a=np.zeros(2)).changed == ("a",)
    assert outcome_of("result = a[1:]", a=np.zeros(2)).shared == ("a",)
    fair = outcome_of("result = a + 1.0", a=np.zeros(2))
    assert not fair.changed and not fair.shared


def test_sparse_inputs_and_lists_are_watched_too():
    script = Script(data=["M = scipy.sparse.csr_array(np.eye(2))", "words = [1.0]"])
    script.call = "M.data[0] = 3.0; words.append(2.0); result = None"
    assert set(attempt(script).changed) == {"M", "words"}


def test_exceptions_state_where_they_were_raised():
    raised = outcome_of("result = lopro.bpdn(a, a, 1.0)", a=np.zeros(2)).raised
    assert raised is not None
    assert raised.on_purpose and raised.kind == "ValueError" and ".py:" in raised.place
    accident = outcome_of("result = {}['no']").raised
    assert accident is not None and not accident.on_purpose


CASE = SparseCase("bpdn", np.eye(2), np.ones(2), 0.1, options={"time_limit": 1.0})


def test_a_late_call_is_an_overrun_unless_it_is_worse():
    late = decide(CASE, Outcome(raised=None, claims=(), seconds=99.0))
    assert late.kind is Class.WRONG  # results are missing, which is worse
    refused = Raised("MissingCapabilityError", "no", "", ("TypeError",))
    other = CASE.with_changes(method="lopro.LoPGD()")
    assert decide(other, Outcome(raised=refused, seconds=1.0)).kind is Class.REFUSED
    assert decide(other, Outcome(raised=refused, seconds=1.69)).kind is Class.REFUSED
    assert decide(other, Outcome(raised=refused, seconds=1.71)).kind is Class.OVERRUN
    assert decide(CASE, Outcome(raised=refused, seconds=1.0)).kind is Class.CRASH


def test_the_worst_verdict_counts():
    verdicts = [Verdict(kind) for kind in (Class.HONEST, Class.CERTIFIED, Class.UNKNOWN)]
    assert worst(verdicts).kind is Class.UNKNOWN
    assert worst([*verdicts, Verdict(Class.CRASH)]).fails


def test_shrinking_keeps_the_failure(monkeypatch):
    """A failure that needs three columns, one of them zero, shrinks to that."""
    rng = np.random.default_rng(0)
    A = rng.standard_normal((8, 12))
    A[:, 5] = 0.0
    case = CASE.with_changes(A=A, y=rng.standard_normal(8), weights=np.ones(12), form="csr")

    def judged(case, outcome):
        fails = case.A.shape[1] >= 3 and (case.A == 0).all(axis=0).any() and len(case.A) >= 2
        return Verdict(Class.WRONG, "planted") if fails else Verdict(Class.CERTIFIED)

    monkeypatch.setattr("fuzz.machine.shrink.decide", judged)
    monkeypatch.setattr("fuzz.machine.shrink.attempt", lambda script: Outcome())
    small, verdict = shrunk(case, Verdict(Class.WRONG, "planted"))
    assert small.A.shape == (2, 3) and small.form == "dense" and small.weights is None
    assert verdict.label == "planted"


@pytest.mark.parametrize("kind", ["bpdn", "many", "path", "solve", "minimize", "metric", "project"])
def test_simpler_cases_are_valid_programs(kind):
    """The parts of a simpler case fit together, so that its call introduces no error of its own."""
    for seed in range(6):
        for simpler in list(make(kind, seed).simpler())[:12]:
            text = simpler.script().text()
            compile(text, "case", "exec")


def test_a_reproducer_runs_by_itself(tmp_path):
    from fuzz.machine.worker import written

    for kind, seed in (("bpdn", 3), ("solve", 1), ("metric", 1), ("project", 4)):
        written(make(kind, seed), Verdict(Class.WRONG, "for show"), kind, seed, tmp_path)
        program = tmp_path / f"{kind}-{seed}.py"
        done = subprocess.run(
            [sys.executable, program.name], cwd=tmp_path, capture_output=True, text=True, check=False,
            env=environment(),
        )  # fmt: skip
        assert done.returncode == 0, done.stderr
        assert "for show" in program.read_text(encoding="utf-8")


def environment():
    import os

    return os.environ | {"PYTHONPATH": os.pathsep.join(p for p in sys.path if p)}


def test_the_summary_counts_and_computes_the_quotas():
    def record(seed, kind, verdict, **tags):
        return Record("bpdn", seed, verdict.value, label=kind, tags=tags)

    summary = Summary(
        [
            record(1, "", Class.CERTIFIED, sane=True, two_seconds=True),
            record(2, "STALLED", Class.HONEST, sane=True, two_seconds=True),
            record(3, "STALLED", Class.HONEST, sane=False, two_seconds=True),
            record(4, "STALLED", Class.HONEST, sane=False, two_seconds=False),
            record(5, "bound", Class.WRONG, sane=True, two_seconds=True),
            Record("solve", 6, "overrun", "deadline"),
        ]
    )
    sane, everything = summary.quotas()
    assert (sane.honest, sane.calls, everything.honest, everything.calls) == (1, 3, 2, 4)
    assert sane.share == pytest.approx(1 / 3)
    assert summary.counts() == {
        "calls": 6, "certified": 1, "refused": 0, "honest": 3, "wrong": 1, "crash": 0,
        "overrun": 1, "unknown": 0,
    }  # fmt: skip
    assert [r.name for r in summary.failures] == ["bpdn:5", "solve:6"]
    assert "| all " in summary.table() and "bound" in summary.text()


def test_the_command_runs_a_case_again_and_reports_it(tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    report = tmp_path / "report.json"
    assert main(["--case", "invalid:0", "--json", str(report)]) == 0
    assert "invalid:0  refused" in capsys.readouterr().out
    found = json.loads(report.read_text(encoding="utf-8"))
    assert found["all"]["refused"] == found["kinds"]["invalid"]["calls"] == 1
    with pytest.raises(SystemExit, match="KIND:SEED"):
        main(["--case", "nothing:0"])
