"""Progress of the job: a live list of parts on a terminal, plain lines in a pipe."""

from __future__ import annotations

import sys
import time
from types import TracebackType
from typing import Self

from rich.console import Console, RenderableType
from rich.progress import Progress, SpinnerColumn, Task, TaskID, TextColumn, TimeElapsedColumn
from rich.text import Text

__all__ = ["Announcer"]


class _Mark(SpinnerColumn):
    """A spinner for the running part; nothing for waiting parts."""

    def render(self, task: Task) -> RenderableType:
        return super().render(task) if task.started else Text("·")


class Announcer:
    """Shows the running part with its current step, and the times of finished parts.

    Examples
    --------
    >>> from paper.report.progress import Announcer
    >>> with Announcer(["rates"], live=False) as announcer:
    ...     announcer.begin("rates")
    ...     announcer.say("one projection")
    [1/1] rates
          one projection
    """

    def __init__(self, parts: list[str], live: bool | None = None) -> None:
        self._live = sys.stdout.isatty() if live is None else live
        self._parts, self._part, self._began = parts, "", time.perf_counter()
        self._bar: Progress | None = None
        self._tasks: dict[str, TaskID] = {}

    def __enter__(self) -> Self:
        if self._live:
            columns = (
                _Mark(finished_text="[green]✓"),
                TextColumn("{task.fields[part]:<12}"),
                TimeElapsedColumn(),
                TextColumn("{task.description}", markup=False),
            )
            self._bar = Progress(*columns, console=Console(highlight=False))
            for part in self._parts:
                self._tasks[part] = self._bar.add_task("", total=1, start=False, part=part)
            self._bar.__enter__()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        if self._bar is not None:
            self._bar.__exit__(kind, error, traceback)

    def begin(self, part: str) -> None:
        """Show that a part starts."""
        self._part, self._began = part, time.perf_counter()
        if self._bar is not None:
            self._bar.start_task(self._tasks[part])
        else:
            self._line(f"[{self._parts.index(part) + 1}/{len(self._parts)}] {part}")

    def say(self, line: str) -> None:
        """Show the next step of the part."""
        if self._bar is not None:
            self._bar.update(self._tasks[self._part], description=line)
        else:
            self._line(f"      {line}")

    def end(self, part: str, note: str) -> None:
        """Show that a part is finished."""
        if self._bar is not None:
            self._bar.update(self._tasks[part], description=note, completed=1)
        else:
            self._line(f"      {note}")

    def _line(self, text: str) -> None:
        print(text, flush=True)
