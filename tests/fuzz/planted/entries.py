"""Planted programs by other entries than `solve`: several together, or a function with its gradient."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from fuzz.judge.claims import Outcome, Raised
from fuzz.judge.points import judge_by_points
from fuzz.judge.verdict import Class, Verdict, worst
from fuzz.machine.script import Script
from fuzz.planted.generate import draw_program, in_units
from fuzz.planted.program import Program

__all__ = ["EntriesCase", "entries_case"]


@dataclass(frozen=True)
class EntriesCase:
    """``lopro.solve_many`` of one or several programs, or ``lopro.minimize`` of the first."""

    programs: tuple[Program, ...]
    entry: str
    tol: float
    kind: str = "entries"

    @property
    def limit(self) -> float | None:
        return 2.0

    @property
    def tags(self) -> dict[str, Any]:
        return {"two_seconds": True, "way": f"{self.entry}, {self.programs[0].way}"}

    def script(self) -> Script:
        script, options = Script(), f"tol={self.tol!r}, time_limit=2.0"
        if self.entry == "solve_many":
            parts = [self._problem(script, p, str(k)) for k, p in enumerate(self.programs)]
            script.setup = [f"problems = [{', '.join(parts)}]"]
            script.call = f"result = list(lopro.solve_many(problems, {options}))"
            return script
        p = self.programs[0]
        square, slope = ("", "") if p.P is None else (" + 0.5 * float(x @ (P @ x))", " + P @ x")
        problem = self._problem(script, p, "")
        script.setup = [
            f"problem = {problem}",
            f"def value(x): return float(q @ x){square}",
            f"def gradient(x): return q{slope}",
        ]
        gradient = ", gradient" if self.entry == "minimize" else ""
        script.call = (
            f"result = lopro.minimize(value, np.zeros({p.dim}){gradient}, "
            f"constraint=problem.constraint, {options})"
        )
        return script

    @staticmethod
    def _problem(script: Script, p: Program, end: str) -> str:
        names = {name: script.array(values, name + end) for name, values in p.data().items()}
        sets = []
        if len(p.A):
            sets.append("lc.Affine({A}, {lower}, {upper})")
        if np.isfinite(p.low).any() or np.isfinite(p.high).any():
            sets.append("lc.Box({low}, {high})")
        if p.D is not None:
            sets.append("lc.ResidualBall({D}, {e}, float({radius}))")
        objective = "lo.Linear({q})" if p.P is None else "lo.Quadratic({P}, {q})"
        both = f"lc.Intersection({', '.join(sets)})" if len(sets) > 1 else "".join(sets)
        return f"lopro.Problem({objective}{', ' if sets else ''}{both})".format(**names)

    def judge(self, outcome: Outcome) -> Verdict:
        if len(outcome.claims) != len(self.programs):
            return Verdict(Class.WRONG, "results missing", repr(outcome.value))
        pairs = zip(self.programs, outcome.claims, strict=True)
        return worst(judge_by_points(p.known(), self.tol, claims) for p, claims in pairs)

    def excuse(self, raised: Raised) -> Verdict | None:
        return None

    def simpler(self) -> Iterator[EntriesCase]:
        for k in range(len(self.programs) if len(self.programs) > 1 else 0):
            yield replace(self, programs=self.programs[:k] + self.programs[k + 1 :])
        for k, program in enumerate(self.programs):
            for plainer in program.simpler():
                others = self.programs[:k], self.programs[k + 1 :]
                yield replace(self, programs=(*others[0], plainer, *others[1]))


def entries_case(seed: int) -> EntriesCase:
    """One program in several units together, or a function of which only values are known, or slopes too."""
    rng = np.random.default_rng([20, seed])
    entry = str(rng.choice(["solve_many", "solve_many", "minimize", "values"]))
    program = draw_program(rng)
    tol = float(rng.choice([1e-3, 1e-6, 1e-6, 1e-8]))
    programs = [program]
    if entry == "solve_many":
        plain = replace(program, columns=None, rows=None, unit=1.0, ball=1.0)
        programs += [in_units(rng, plain) for _ in range(int(rng.integers(0, 5)))]
    return EntriesCase(tuple(programs), entry, tol)
