"""Calls of `lasso`, `lasso_path`, `bpdn` and `bpdn_path` on planted samples, with their judge."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from fuzz.judge.claims import Outcome, Raised
from fuzz.judge.points import judge_by_points
from fuzz.judge.verdict import Class, Verdict, worst
from fuzz.machine.script import Script
from fuzz.regression.sample import Sample, draw

__all__ = ["RegressionCase", "regression_case"]


@dataclass(frozen=True)
class RegressionCase:
    """One call; a path has several numbers, of which one is that of the sample."""

    sample: Sample
    tol: float
    numbers: tuple[float, ...] = ()
    kind: str = "regression"

    @property
    def limit(self) -> float | None:
        return 2.0

    @property
    def tags(self) -> dict[str, Any]:
        return {"two_seconds": True, "way": self.sample.entry}

    def script(self) -> Script:
        script, s = Script(), self.sample
        for name, values in (("A", s.A), ("y", s.y), ("weights", s.weights)):
            script.array(values, name)
        words = ["A", "y", "weights=weights", f"tol={self.tol!r}", "time_limit=2.0"]
        if len(s.weights) < s.A.shape[1]:
            script.array(s.groups, "groups")
            words.append("groups=groups")
        words += ["nonneg=True"] * s.nonneg + ["joint=True"] * (s.entry == "joint")
        words += [f"ridge={s.ridge!r}"] * (s.entry == "ridge")
        words += ["square_root=True"] * (s.entry == "root")
        key = {"tau": "tau", "path": "lams", "bpdn_path": "sigmas"}.get(s.entry, "lam")
        key = "sigma" if s.entry in ("bpdn", "joint") else key
        number = list(self.numbers) if self.numbers else s.number
        words.insert(2, f"{key}={number!r}")
        entry = {"path": "lasso_path", "bpdn_path": "bpdn_path"}.get(s.entry, "lasso")
        entry = "bpdn" if s.entry in ("bpdn", "joint") else entry
        script.call = f"result = list(lopro.{entry}({', '.join(words)}))"
        if not self.numbers:
            script.call = f"result = lopro.{entry}({', '.join(words)})"
        return script

    def judge(self, outcome: Outcome) -> Verdict:
        numbers = self.numbers or (self.sample.number,)
        if len(outcome.claims) != len(numbers):
            return Verdict(Class.WRONG, "results missing", repr(outcome.value))
        points = [c.x for c in outcome.claims if c.x.shape == self.sample.solution.shape]
        return worst(
            judge_by_points(self.sample.known(points, number), self.tol, claims)
            for number, claims in zip(numbers, outcome.claims, strict=True)
        )

    def excuse(self, raised: Raised) -> Verdict | None:
        # Coefficients that cost nothing are documented for a single radius without signs.
        alone = self.sample.entry == "bpdn" and not self.sample.nonneg
        free = not (self.sample.weights > 0.0).all() and not alone
        return Verdict(Class.REFUSED, raised.message) if free and raised.on_purpose else None

    def simpler(self) -> Iterator[RegressionCase]:
        s = self.sample
        for j in range(s.A.shape[1] if len(s.weights) == s.A.shape[1] > 1 else 0):
            if not s.solution[j].any():
                kept = np.arange(s.A.shape[1]) != j
                cut = replace(s, A=s.A[:, kept], weights=s.weights[kept], solution=s.solution[kept])
                yield replace(self, sample=replace(cut, groups=np.arange(int(kept.sum()))))


def regression_case(seed: int) -> RegressionCase:
    """A sparse regression whose solution is known."""
    rng = np.random.default_rng([14, seed])
    sample = draw(rng)
    tol = float(rng.choice([1e-3, 1e-6, 1e-6, 1e-8]))
    numbers: tuple[float, ...] = ()
    if sample.entry in ("path", "bpdn_path"):
        factors = 2.0 ** rng.integers(-4, 5, int(rng.integers(0, 4)))
        numbers = (sample.number, *(sample.number * factors).tolist())
    return RegressionCase(sample, tol, numbers)
