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
import threading
from collections.abc import Generator, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeVar

__all__ = ["each_in_one_pool", "one_pool", "one_thread"]

T = TypeVar("T")
S = TypeVar("S")


class _Pool:
    """Libraries whose threads are held back together, as long as anybody asks for it.

    Limits belong to the process, and several threads may solve at once: who comes first sets the limit, and
    who leaves last restores what was there before.
    """

    def __init__(self, libraries: Any) -> None:
        self._libraries = libraries
        self._lock = threading.Lock()
        self._holders = 0
        self._limits: Any = None

    @contextmanager
    def held(self) -> Iterator[None]:
        """Run the block with one thread."""
        with self._lock:
            # A limit takes longer than a small factorisation, so none is set where there is one thread.
            if self._holders == 0 and any(
                lib.num_threads > 1 for lib in self._libraries.lib_controllers
            ):
                self._limits = self._libraries.limit(limits=1)
            self._holders += 1
        try:
            yield
        finally:
            with self._lock:
                self._holders -= 1
                if self._holders == 0 and self._limits is not None:
                    self._limits.restore_original_limits()
                    self._limits = None


@functools.cache
def _pools() -> tuple[_Pool, _Pool]:
    """Return SciPy's pool and that of all others."""
    from threadpoolctl import ThreadpoolController

    importlib.import_module("scipy.linalg")  # what is not loaded yet cannot be held back
    libraries = ThreadpoolController().select(user_api="blas")
    files = [lib.filepath for lib in libraries.lib_controllers]
    # The folder tells whose it is: NumPy's own is a libscipy_openblas, too.
    own = [file for file in files if "scipy" in Path(file).parent.name.lower()]
    others = [file for file in files if file not in own]
    return _Pool(libraries.select(filepath=own)), _Pool(libraries.select(filepath=others))


@contextmanager
def one_pool() -> Iterator[None]:
    """Run the block with SciPy's linear algebra on one thread; NumPy keeps all of its own."""
    with _pools()[0].held():
        yield


@contextmanager
def one_thread() -> Iterator[None]:
    """Run the block with all linear algebra on one thread."""
    scipys, others = _pools()
    with scipys.held(), others.held():
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
