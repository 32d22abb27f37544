"""Cases: data made from a kind and a seed, with a script, a judge, and simpler cases."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Protocol

from fuzz.judge.claims import Outcome, Raised
from fuzz.judge.contract import deadline
from fuzz.judge.verdict import Class, Verdict
from fuzz.machine.script import Script

__all__ = ["Case", "decide"]


class Case(Protocol):
    """One call and everything that is needed to judge it."""

    @property
    def kind(self) -> str:
        """The kind that made it."""
        ...

    @property
    def limit(self) -> float | None:
        """The seconds that the call was given, None for no limit."""
        ...

    @property
    def tags(self) -> dict[str, Any]:
        """The groups of the summary: ``sane``, ``two_seconds`` and more."""
        ...

    def script(self) -> Script:
        """Return the call as a program."""
        ...

    def judge(self, outcome: Outcome) -> Verdict:
        """Return the verdict on an outcome."""
        ...

    def excuse(self, raised: Raised) -> Verdict | None:
        """Return the verdict on an exception that is acceptable for this input; None if it is not."""
        ...

    def simpler(self) -> Iterator[Case]:
        """Yield smaller cases, the largest reductions first."""
        ...


def decide(case: Case, outcome: Outcome) -> Verdict:
    """Return the verdict on a call: by the checks common to all kinds, then by its judge."""
    if outcome.changed:
        return Verdict(Class.WRONG, "input changed", ", ".join(outcome.changed))
    if outcome.shared:
        return Verdict(Class.WRONG, "result shares memory", ", ".join(outcome.shared))
    if outcome.raised is not None:
        raised = outcome.raised
        detail = f"{raised.kind}: {raised.message}"
        accident = Verdict(Class.CRASH, f"{raised.kind} at {raised.place}", detail)
        verdict = case.excuse(raised) or accident
    else:
        verdict = case.judge(outcome)
    late = case.limit is not None and outcome.seconds > deadline(case.limit)
    if late and not verdict.fails:
        words = f"{outcome.seconds:.2f} s, limit {case.limit:g} s"
        return Verdict(Class.OVERRUN, "deadline", words)
    return verdict
