"""Work in another thread: results, exceptions, deadlines, and which thread does it."""

from __future__ import annotations

import threading

import pytest

from lopro.core.aside import run_aside
from lopro.core.deadline import Deadline


def test_what_is_raised_there_is_raised_here() -> None:
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
