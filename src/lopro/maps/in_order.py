"""`in_order`: results of threads in the order of their items."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Generator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from itertools import islice
from typing import TypeVar

__all__ = ["in_order"]

Item = TypeVar("Item")
Outcome = TypeVar("Outcome")


def in_order(
    function: Callable[[Item], Outcome], items: Sequence[Item], workers: int
) -> Generator[Outcome, None, None]:
    """Yield the results of a function in the order of the items, while threads work on the next items.

    At most ``workers`` items are in progress, which bounds the memory.

    Examples
    --------
    >>> from lopro.maps.in_order import in_order
    >>> list(in_order(lambda n: n * n, range(4), workers=2))
    [0, 1, 4, 9]
    """
    if workers == 1 or len(items) <= 1:
        yield from map(function, items)
        return
    remaining = iter(items)
    with ThreadPoolExecutor(workers) as pool:
        running: deque[Future[Outcome]] = deque()
        try:
            running.extend(pool.submit(function, item) for item in islice(remaining, workers))
            while running:
                outcome = running.popleft().result()
                running.extend(pool.submit(function, item) for item in islice(remaining, 1))
                yield outcome
        finally:
            for future in running:
                future.cancel()
