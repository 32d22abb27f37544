"""The exit statuses of ``lopro``, for scripts."""

from __future__ import annotations

from collections.abc import Sequence
from enum import IntEnum

from lopro.driver.result import Result, Status

__all__ = ["EXPLANATION", "BadInput", "ExitCode", "code_of"]


class ExitCode(IntEnum):
    """Exit status of a command.

    Examples
    --------
    >>> from lopro.cli.exit_codes import ExitCode
    >>> int(ExitCode.NOT_CONVERGED)
    1
    """

    CONVERGED = 0
    NOT_CONVERGED = 1
    BAD_INPUT = 2
    INTERNAL = 3
    INTERRUPTED = 130  # 128 + SIGINT, the convention of shells


EXPLANATION = (
    "exit status: 0 certified (or nothing to certify), 1 not certified to the tolerance, "
    "2 bad input, 3 a defect of lopro, 130 interrupted"
)


class BadInput(ValueError):
    """An error in the input; only its message is shown."""


def code_of(results: Sequence[Result]) -> ExitCode:
    """Return the exit status for these results: that of the worst one."""
    if any(result.status is Status.INTERRUPTED for result in results):
        return ExitCode.INTERRUPTED
    if all(result.success for result in results):
        return ExitCode.CONVERGED
    return ExitCode.NOT_CONVERGED
