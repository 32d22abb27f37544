"""A call that has to be refused, as data."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from fuzz.invalid.table import TABLE, Bad
from fuzz.judge.claims import Outcome, Raised
from fuzz.judge.verdict import Class, Verdict
from fuzz.machine.script import Script

__all__ = ["InvalidCase", "invalid_case"]


@dataclass(frozen=True)
class InvalidCase:
    """One row of the table on random data."""

    bad: Bad
    seed: int
    kind: str = "invalid"

    @property
    def limit(self) -> float | None:
        return None

    @property
    def tags(self) -> dict[str, Any]:
        return {"call": self.bad.call}

    def script(self) -> Script:
        rng = np.random.default_rng([8, self.seed])
        m, d = rng.integers(2, 6, 2)
        script = Script()
        script.array(rng.standard_normal((m, d)), "A")
        script.array(rng.standard_normal(m), "y")
        script.array(rng.standard_normal((m, 2)), "Y")
        script.array(rng.standard_normal((8, 3)), "X")
        script.array(np.arange(8) % 2, "labels")
        script.setup = [
            "f = lo.L1Norm(shape=(A.shape[1],))",
            "box = lc.Polyhedron.box(-np.ones(A.shape[1]), np.ones(A.shape[1]))",
            "problem = lopro.Problem(f, box)",
        ]
        script.call = f"result = {self.bad.call}"
        return script

    def judge(self, outcome: Outcome) -> Verdict:
        return Verdict(Class.WRONG, "invalid input accepted", self.bad.call)

    def excuse(self, raised: Raised) -> Verdict | None:
        named = any(re.search(rf"\b{word}\b", raised.message) for word in self.bad.words)
        return Verdict(Class.REFUSED, raised.kind) if raised.on_purpose and named else None

    def simpler(self) -> Iterator[InvalidCase]:
        return iter(())


def invalid_case(seed: int) -> InvalidCase:
    """Go through the table, row by row."""
    return InvalidCase(TABLE[seed % len(TABLE)], seed)
