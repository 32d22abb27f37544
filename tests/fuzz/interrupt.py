"""Any other call, interrupted by SIGINT after some time: it must return at once, with true claims."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from fuzz.judge.claims import Outcome, Raised
from fuzz.judge.verdict import Verdict
from fuzz.machine.case import Case
from fuzz.machine.script import Script

__all__ = ["InterruptCase", "interrupted"]

#: While SIGINT has its default handler the library has not started yet, and the timer is set again.
_ALARM = """import signal
def alarm(number, frame):
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        signal.setitimer(signal.ITIMER_REAL, 0.001)
    else:
        signal.raise_signal(signal.SIGINT)
signal.signal(signal.SIGALRM, alarm)"""


@dataclass(frozen=True)
class InterruptCase:
    """A case, and the seconds after which it is interrupted."""

    case: Case
    after: float
    kind: str = "interrupt"

    @property
    def limit(self) -> float | None:
        return self.after

    @property
    def tags(self) -> dict[str, Any]:
        return {"way": self.case.kind}

    def script(self) -> Script:
        script = self.case.script()
        script.setup += [
            *_ALARM.splitlines(),
            f"signal.setitimer(signal.ITIMER_REAL, {self.after!r})",
        ]
        call = "\n".join(f"    {line}" for line in script.call.splitlines())
        script.call = f"try:\n{call}\nfinally:\n    signal.setitimer(signal.ITIMER_REAL, 0.0)"
        return script

    def judge(self, outcome: Outcome) -> Verdict:
        return self.case.judge(outcome)

    def excuse(self, raised: Raised) -> Verdict | None:
        return self.case.excuse(raised)

    def simpler(self) -> Iterator[InterruptCase]:
        for case in self.case.simpler():
            yield replace(self, case=case)


def interrupted(others: list[Callable[[int], Case]]) -> Callable[[int], InterruptCase]:
    """Return a function that makes a case of one of these kinds, interrupted early, from a seed."""

    def make(seed: int) -> InterruptCase:
        rng = np.random.default_rng([17, seed])
        other = others[int(rng.integers(0, len(others)))]
        return InterruptCase(other(seed), float(10.0 ** rng.uniform(-3.0, -0.5)))

    return make
