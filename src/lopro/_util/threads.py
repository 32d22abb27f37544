"""Keeping two thread pools from fighting.

NumPy and SciPy wheels each bring an OpenBLAS with threads of its own. Threads that have just worked for one
go on spinning for a while, and on few cores a call of the other then waits for them: alternating between
products (NumPy) and factorisations (SciPy) can be seven times slower on two threads than on one. Where a loop
must alternate, SciPy's pool is held to one thread. Where every call is short, as with matrices of a few
hundred rows, all pools are: what threads gain there is less than what their spinning takes from the rest.
"""

from __future__ import annotations

import functools
import importlib
from collections.abc import Generator, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeVar

__all__ = ["each_in_one_pool", "one_pool", "one_thread"]

T = TypeVar("T")
S = TypeVar("S")


@functools.cache
def _pools() -> Any:
    from threadpoolctl import ThreadpoolController

    importlib.import_module("scipy.linalg")  # what is not loaded yet cannot be held back
    return ThreadpoolController().select(user_api="blas")


@functools.cache
def _pool_of_scipy() -> Any:
    # The folder tells whose it is: NumPy's own is a libscipy_openblas, too.
    own = [
        lib.filepath
        for lib in _pools().lib_controllers
        if "scipy" in Path(lib.filepath).parent.name.lower()
    ]
    return _pools().select(filepath=own)


@contextmanager
def one_pool() -> Iterator[None]:
    """Run the block with SciPy's linear algebra on one thread; NumPy keeps all of its own."""
    with _held(_pool_of_scipy()):
        yield


@contextmanager
def one_thread() -> Iterator[None]:
    """Run the block with all linear algebra on one thread."""
    with _held(_pools()):
        yield


@contextmanager
def _held(pool: Any) -> Iterator[None]:
    if all(lib.num_threads == 1 for lib in pool.lib_controllers):
        yield  # nothing to hold back, and a limit takes longer than a small factorisation
        return
    with pool.limit(limits=1):
        yield


def each_in_one_pool(items: Generator[T, S, None], short: bool = False) -> Generator[T, S, None]:
    """Make each item with SciPy on one thread; their consumer has all threads in between.

    A limit held across a ``yield`` would bind the consumer's code too, and for good if it never returns.
    Where all calls are ``short``, NumPy is held to one thread as well.
    """
    answer: S | None = None
    while True:
        with one_thread() if short else one_pool():
            try:
                item = next(items) if answer is None else items.send(answer)
            except StopIteration:
                return
        answer = yield item
