"""A line on the terminal that shows a run is alive and how far it has come."""

from __future__ import annotations

import time
from types import TracebackType
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from lopro.core.counting import Counts
    from lopro.driver.result import Iterate

__all__ = ["Progress"]


class Progress:
    """Shows epoch, iterations, value and gap, and what was read; refreshed at most ten times a second."""

    def __init__(self) -> None:
        # Few runs show their progress; the others need not wait for the import.
        from rich.console import Console
        from rich.live import Live

        self._live = Live(console=Console(stderr=True), refresh_per_second=10, transient=False)
        self._last = 0.0
        self._summary = "first epoch"
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

    def tick(self, iterations: int, counts: Counts) -> None:
        """Note that the inner algorithm has come this far, and what it has read of matrices."""
        self._read = f"  passes {counts.passes}  read {counts.bytes_read / 1e9:.3g} GB"
        now = time.monotonic()
        if now - self._last > 0.1:
            self._last = now
            self._say(iterations)

    def show(self, iterate: Iterate) -> None:
        """Note the outcome of an epoch."""
        self._summary = (
            f"epoch {iterate.epoch}  f {iterate.fun:.8g}  gap {iterate.relative_gap:.1e}  "
            f"projections {iterate.projections}"
        )
        self._say(iterate.iterations)

    def _say(self, iterations: int) -> None:
        from rich.text import Text

        self._live.update(Text(f"lopro  {self._summary}  iteration {iterations}{self._read}"))
