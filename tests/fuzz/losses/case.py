"""Calls of `solve` and of `certify` on losses, as data, with their judge."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from fuzz.judge.claims import Outcome, Raised
from fuzz.judge.points import Known, judge_by_points
from fuzz.judge.verdict import Class, Verdict
from fuzz.losses.data import KINDS, Array, Sample
from fuzz.machine.script import Script

__all__ = ["CertifyCase", "LossCase", "certify_case", "loss_case"]

#: Values are compared up to this share of the loss at zero and of the value: sums of some hundred terms.
_ROUNDING = 1e-11


@dataclass(frozen=True)
class LossCase:
    """``lopro.solve(lopro.Problem(loss, row), tol=..., time_limit=2)``."""

    sample: Sample
    tol: float
    kind: str = "losses"

    @property
    def limit(self) -> float | None:
        return 2.0

    @property
    def tags(self) -> dict[str, Any]:
        return {"two_seconds": True, "loss": self.sample.loss}

    def script(self) -> Script:
        script, s = Script(), self.sample
        script.array(s.X * s.units, "X")
        for name, values in (("y", s.y), ("b", s.b), ("k", s.k)):
            script.array(values, name)
        script.setup = [f"objective = {KINDS[s.loss]}", "problem = lopro.Problem(objective)"]
        if s.row is not None:
            script.array((s.row * s.units)[None, :], "row")
            side = f"lc.Polyhedron(row, [{s.side!r}])"
            script.setup[1] = f"problem = lopro.Problem(objective, {side})"
        script.call = f"result = lopro.solve(problem, tol={self.tol!r}, time_limit=2.0)"
        return script

    def judge(self, outcome: Outcome) -> Verdict:
        if len(outcome.claims) != 1:
            return Verdict(Class.WRONG, "results missing", repr(outcome.value))
        return judge_by_points(self.known(), self.tol, outcome.claims[0])

    def known(self) -> Known:
        """Return the known properties of the problem, for the judge."""

        def size(x: Array) -> float:
            return max(abs(self.sample.value(x)), self._terms(x))

        s = self.sample
        points, shape = s.good_points(), s.units.shape
        return Known(s.value, s.excess, size, points, self.size(), shape, _ROUNDING)

    def best(self) -> tuple[float, Array]:
        """Return the least value of a point that satisfies the row, and the point."""
        values = [(self.sample.value(x), x) for x in self.sample.good_points()]
        return min(values, key=lambda pair: pair[0])

    def size(self) -> float:
        """Return a typical value: at zero, or at a point of size one in plain units where that is larger."""
        u = self.sample.units
        return max(abs(self.sample.value(np.zeros_like(u))), abs(self.sample.value(1.0 / u)))

    def _terms(self, x: Array) -> float:
        """Return the sum of absolute terms: those of Poisson's loss have both signs."""
        if self.sample.loss != "poisson":
            return 0.0
        z = (self.sample.X * self.sample.units) @ x
        return float((np.exp(z) + np.abs(self.sample.k * z)).sum()) / len(z)

    def excuse(self, raised: Raised) -> Verdict | None:
        return None

    def simpler(self) -> Iterator[LossCase]:
        s = self.sample
        if s.row is not None:
            yield replace(self, sample=replace(s, row=None))
        if (s.units != 1.0).any():
            yield replace(self, sample=replace(s, units=np.ones_like(s.units)))
        m, n = s.X.shape
        if m > 4:
            half = slice(m // 2)
            yield replace(
                self, sample=replace(s, X=s.X[half], y=s.y[half], b=s.b[half], k=s.k[half])
            )
        for j in range(n if n > 1 else 0):
            kept = np.arange(n) != j
            row = None if s.row is None else s.row[kept]
            yield replace(self, sample=replace(s, X=s.X[:, kept], units=s.units[kept], row=row))


@dataclass(frozen=True)
class CertifyCase(LossCase):
    """``lopro.certify(problem, x, multipliers)`` of points and multipliers that are right, or wrong."""

    x: Array | None = None
    multiplier: float | None = None
    kind: str = "certify"

    @property
    def limit(self) -> float | None:
        return None

    def script(self) -> Script:
        script = super().script()
        x = script.array(self.x, "x")
        given = self.multiplier is not None and self.sample.row is not None
        words = f", [np.array([{self.multiplier!r}])]" if given else ""
        script.call = f"result = lopro.certify(problem, {x}{words})"
        return script

    def judge(self, outcome: Outcome) -> Verdict:
        c = outcome.value
        assert self.x is not None
        fun, outside = self.sample.value(self.x), self.sample.excess(self.x)
        if outside > 2e-9 and math.isfinite(c.gap):
            return Verdict(Class.WRONG, "gap of a point outside", f"violation {outside:.3g}")
        for z in self.sample.good_points():
            value = self.sample.value(z)
            slack = _ROUNDING * (abs(value) + abs(fun) + self.size())
            near = float(np.linalg.norm(z - self.x)) <= c.radius
            if near and c.lower_bound > value + slack:
                detail = f"{c.lower_bound!r}, a point has {value!r}"
                return Verdict(Class.WRONG, "bound above optimum", detail)
            if (
                c.relative_gap <= 1e-6
                and fun - value > 1e-5 * max(abs(fun), self._terms(self.x)) + slack
            ):
                return Verdict(Class.WRONG, "not within tol", f"{fun!r}, a point has {value!r}")
        return Verdict(Class.CERTIFIED if c.relative_gap <= 1e-6 else Class.HONEST, "certify")

    def simpler(self) -> Iterator[CertifyCase]:
        return iter(())


def _sample(rng: np.random.Generator) -> Sample:
    n = int(rng.integers(1, 6))
    m = int(rng.integers(2 * n + 4, 60))
    X, w = rng.standard_normal((m, n)), rng.standard_normal(n)
    y = np.where(X @ w + 1.5 * rng.standard_normal(m) > 0.0, 1.0, -1.0)
    b = X @ w * float(rng.choice([0.0, 1.0, 1.0])) + rng.standard_normal(m) * float(
        rng.choice([0.0, 0.3, 1.0, 1.0])
    )
    k = rng.poisson(np.exp(0.3 * X @ w)).astype(float)
    loss = str(rng.choice(list(KINDS)))
    units = np.where(rng.random(n) < 0.4, 2.0 ** rng.integers(-40, 41, n), 1.0)
    if loss == "ridge":
        units = np.ones(n)  # its norm is of x in the units of the call
    row = rng.standard_normal(n) * (rng.random(n) < 0.7) if rng.random() < 0.5 else None
    row = None if row is None or not row.any() else row
    side = float(rng.choice([0.0, 1.0, 0.1])) if row is not None else 0.0
    return Sample(loss, X, y, b, k, units, row, side)


def loss_case(seed: int) -> LossCase:
    """A loss, its columns in units over 24 decades, with or without a row."""
    rng = np.random.default_rng([9, seed])
    return LossCase(_sample(rng), float(rng.choice([1e-3, 1e-6, 1e-6, 1e-8])))


def certify_case(seed: int) -> CertifyCase:
    """A point near a good one, or anywhere, and a multiplier of any size and sign."""
    rng = np.random.default_rng([10, seed])
    case = LossCase(_sample(rng), 1e-6)
    away = float(rng.choice([0.0, 1e-9, 1e-3, 1.0, 1e3]))
    plain = np.linalg.lstsq(case.sample.X, case.sample.b, rcond=None)[0]  # right for squares
    x = (plain + away * rng.standard_normal(len(plain))) / case.sample.units
    multiplier = float(rng.choice([0.0, 1.0, -1.0])) * 10.0 ** float(rng.uniform(-8.0, 4.0))
    given = multiplier if rng.random() < 0.7 else None
    return CertifyCase(case.sample, 1e-6, x=x, multiplier=given)
