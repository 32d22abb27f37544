"""SciPy's thread pool is held to one thread inside the block, and let go after it."""

from __future__ import annotations

from threadpoolctl import threadpool_info

from lopro._threads import one_pool


def scipy_threads() -> list[int]:
    return [i["num_threads"] for i in threadpool_info() if "scipy" in i["filepath"].lower()]


def test_one_pool_limits_scipy_and_restores() -> None:
    with one_pool():
        assert all(n == 1 for n in scipy_threads())  # whatever was loaded late is loaded now
    before = scipy_threads()
    with one_pool():
        assert all(n == 1 for n in scipy_threads())
    assert scipy_threads() == before
