"""Limit BLAS to one thread pool at a time.

NumPy and SciPy wheels each contain an OpenBLAS with its own threads, which keep spinning for a while after a
call. On few cores a call of the other library waits for them: alternating between products (NumPy) and
factorisations (SciPy) can be seven times slower on two threads than on one. A loop that alternates limits
SciPy's pool to one thread. If every call is short, as for matrices of a few hundred rows, all pools are
limited: the gain from threads is then smaller than the loss from spinning.
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
    """Libraries that are limited to one thread while at least one block requests it.

    Limits apply to the process, and several threads may solve at once: the first block sets the limit, and
    the last one restores the previous numbers of threads.
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
            # Setting a limit takes longer than a small factorisation; with one thread it is not needed.
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

    importlib.import_module("scipy.linalg")  # a library that is not loaded cannot be limited
    libraries = ThreadpoolController().select(user_api="blas")
    files = [lib.filepath for lib in libraries.lib_controllers]
    # The folder identifies the owner: NumPy's library is named libscipy_openblas as well.
    own = [file for file in files if "scipy" in Path(file).parent.name.lower()]
    others = [file for file in files if file not in own]
    return _Pool(libraries.select(filepath=own)), _Pool(libraries.select(filepath=others))


@contextmanager
def one_pool() -> Iterator[None]:
    """Run the block with SciPy's linear algebra on one thread; NumPy keeps its threads."""
    with _pools()[0].held():
        yield


@contextmanager
def one_thread() -> Iterator[None]:
    """Run the block with all linear algebra on one thread."""
    scipys, others = _pools()
    with scipys.held(), others.held():
        yield


def each_in_one_pool(items: Generator[T, S, None], short: bool = False) -> Generator[T, S, None]:
    """Compute each item with SciPy on one thread; the consumer has all threads in between.

    A limit held across a ``yield`` would also apply to the consumer's code, and for good if it never resumes.
    With ``short`` calls NumPy is limited to one thread as well.
    """
    answer: S | None = None
    while True:
        with one_thread() if short else one_pool():
            try:
                item = next(items) if answer is None else items.send(answer)
            except StopIteration:
                return
        answer = yield item
