"""The progress line on the terminal."""

from __future__ import annotations

import time
from types import TracebackType

from lopro.core.counting import Counts
from lopro.driver.result import Iterate

__all__ = ["Progress"]


class Progress:
    """The line with epoch, iterations, value and gap; updated at most ten times a second.

    Parameters
    ----------
    streamed : bool
        Whether a matrix is read from a file or a cluster: passes and bytes are shown as well.
    """

    def __init__(self, streamed: bool = False) -> None:
        # Imported here: runs without progress do not pay for the import.
        from rich.console import Console
        from rich.live import Live

        self._console = Console(stderr=True)
        if not self._console.is_terminal:
            self._console.width = 200  # columns; in a file the line must not be wrapped
        self._live = Live(console=self._console, refresh_per_second=10, transient=False)
        self._last = 0.0
        self._streamed, self._summary = streamed, "first epoch"
        self._read = ""

    def __enter__(self) -> Progress:
        self._live.__enter__()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._live.__exit__(kind, error, traceback)
        if not self._console.is_terminal:
            self._console.line()  # on a terminal the display ends its line by itself

    def tick(self, iterations: int, counts: Counts) -> None:
        """Report the iterations so far, and the bytes read from files and clusters."""
        if self._streamed:
            self._read = f"  passes {counts.passes}  read {_in_bytes(counts.bytes_read)}"
        now = time.monotonic()
        if now - self._last > 0.1:
            self._last = now
            self._update(iterations)

    def show(self, iterate: Iterate) -> None:
        """Report the outcome of an epoch."""
        self._summary = (
            f"epoch {iterate.epoch}  f {iterate.fun:.8g}  gap {iterate.relative_gap:.1e}  "
            f"projections {iterate.projections}"
        )
        self._update(iterate.iterations)

    def _update(self, iterations: int) -> None:
        from rich.text import Text

        line = f"lopro  {self._summary}  iteration {iterations}{self._read}"
        self._live.update(Text(line, no_wrap=True, overflow="ellipsis"))


def _in_bytes(number: int) -> str:
    """Return a number of bytes with three digits and a unit."""
    for unit, size in (("GB", 1e9), ("MB", 1e6), ("kB", 1e3)):
        if number >= size:
            return f"{number / size:.3g} {unit}"
    return f"{number} bytes"
