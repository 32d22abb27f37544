"""Work in another thread: results, exceptions, deadlines, and work unfinished at the end of the process."""

from __future__ import annotations

import subprocess
import sys
import threading

import pytest

from lopro.core.aside import run_aside
from lopro.core.deadline import Deadline


def test_exceptions_of_the_thread_are_raised_in_the_caller() -> None:
    def failing() -> None:
        raise KeyError("there")

    with pytest.raises(KeyError, match="there"):
        run_aside(failing)
    assert run_aside(lambda: 3) == 3


def test_one_thread_does_one_task_after_the_other() -> None:
    first = run_aside(threading.current_thread)
    assert first is not None and first is not threading.current_thread()
    assert run_aside(threading.current_thread) is first


def test_a_late_thread_is_used_again_when_it_has_ended() -> None:
    late, ended = threading.Event(), threading.Event()
    threads: list[threading.Thread] = []

    def waiting() -> None:
        threads.append(threading.current_thread())
        late.wait()
        ended.set()

    with Deadline(0.01).active():
        assert run_aside(waiting) is None
    assert run_aside(threading.current_thread) not in (None, *threads)
    late.set()
    assert ended.wait(10.0)


def test_late_work_is_stopped_repeatedly_until_it_ends() -> None:
    stopped, threads, enough = [], [], threading.Event()

    def waiting() -> str:
        threads.append(threading.get_ident())
        enough.wait(60.0)
        return "ended"

    def stop(thread: int) -> None:
        stopped.append(thread)
        if len(stopped) == 3:
            enough.set()

    with Deadline(0.01).active():
        assert run_aside(waiting, stop) == "ended"
    assert stopped == 3 * threads


def child(program: str) -> str:
    """Run a program in another process and return what it prints."""
    command = [sys.executable, "-c", program]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120)
    assert (done.returncode, done.stderr) == (0, "")
    return done.stdout


def test_the_process_ends_after_abandoned_work() -> None:
    found = child("""
import time
from lopro.core import aside
from lopro.core.deadline import Deadline

def late():
    time.sleep(1.0)
    print("ended")

def failing(thread):
    print(end=".")

with Deadline(0.01).active():
    print(aside.run_aside(late, failing))
""")
    assert found.strip(".").splitlines()[0] == "None" and found.endswith(".ended\n")


def test_the_process_waits_for_a_limited_time() -> None:
    found = child("""
import time
from lopro.core import aside
from lopro.core.deadline import Deadline

aside._WAIT_AT_EXIT = 0.1
with Deadline(0.01).active():
    print(aside.run_aside(lambda: time.sleep(60.0)))
""")
    assert found == "None\n"


def test_highs_is_stopped_by_ctrl_c_and_the_process_ends_well() -> None:
    """The process aborted where HiGHS ended after the interpreter: here HiGHS takes two seconds to end."""
    found = child("""
import signal, sys, threading, time, types
import numpy as np, scipy.optimize, scipy.sparse
from lopro.core import aside
from lopro.core.deadline import Deadline
from lopro.engines import QuadraticProgram, solve_by_highs

class Slow:
    def __del__(self, sleep=time.sleep):
        sleep(2.0)

sys.modules["held"] = types.ModuleType("held")
sys.modules["held"].slow = Slow()

n = 400  # an assignment problem, which takes HiGHS more than a second
eye, ones = scipy.sparse.eye_array(n), np.ones((1, n))
A = scipy.sparse.vstack([scipy.sparse.kron(eye, ones), scipy.sparse.kron(ones, eye)], format="csr")
cost = np.random.default_rng(0).random(n * n)
p = QuadraticProgram.of(None, cost, A, np.ones(2 * n), np.ones(2 * n), least=0.0)

def press():
    while not any(f.f_code.co_name == "_highs_wrapper" for f in frames()):
        time.sleep(0.01)
    time.sleep(0.1)
    signal.raise_signal(signal.SIGINT)

def frames():
    for frame in sys._current_frames().values():
        while frame is not None:
            yield frame
            frame = frame.f_back

threading.Thread(target=press).start()
solved = scipy.optimize.linprog
results = []
scipy.optimize.linprog = lambda *a, **k: results.append(solved(*a, **k)) or results[-1]
with Deadline().active():
    print(solve_by_highs(p, scaled=False).status.name)
aside._await_abandoned()
print(results[0].message)
""")
    status, message = found.splitlines()
    assert status == "TIME" and "ime limit reached" in message
