"""Calls of `solve`, `minimize` and `project` as data."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from fuzz.general.judge import CallOptions, judge_model
from fuzz.general.model import Model
from fuzz.general.scipy_form import constraint_text, seen_as
from fuzz.general.sets import Array
from fuzz.general.shrink import simpler_models
from fuzz.judge.claims import Outcome, Raised
from fuzz.judge.contract import SLACK, eps_of
from fuzz.judge.verdict import Class, Verdict
from fuzz.judge.wide import norm
from fuzz.machine.script import Script

__all__ = ["MinimizeCase", "SolveCase"]

_DEFAULT_TOL = 1e-6
#: Forward differences: half of the digits.
_DIFFERENCES = 1e-5


@dataclass(frozen=True)
class SolveCase:
    """``lopro.solve(lopro.Problem(objective, constraint), x0, method, ...)``."""

    model: Model
    x0: Array | None = None
    method: str | None = None
    tol: float | None = None
    options: dict[str, Any] = field(default_factory=dict)
    dtype: str = "float64"
    kind: str = "solve"

    @property
    def limit(self) -> float | None:
        return self.options.get("time_limit")

    @property
    def tags(self) -> dict[str, Any]:
        names = "+".join(sorted({type(m).__name__ for m in self.model.members}))
        return {
            "two_seconds": self.options == {"time_limit": 2.0},
            "method": self.method or "default",
            "sets": names,
            "objective": type(self.model.objective).__name__,
        }

    def script(self) -> Script:
        script = Script(dtype=self.dtype)
        members = [m.text(script) for m in self.model.members]
        text = members[0] if len(members) == 1 else f"lc.Intersection({', '.join(members)})"
        script.setup = [
            f"constraint = {text}",
            f"objective = {self.model.objective.text(script)}",
            "problem = lopro.Problem(objective, constraint)",
        ]
        script.call = f"result = lopro.solve({', '.join(['problem', *self._options(script)])})"
        return script

    def _options(self, script: Script) -> list[str]:
        words = [f"x0={script.array(self.x0, 'x0')}"] if self.x0 is not None else []
        words += [f"method={self.method}"] if self.method else []
        words += [f"tol={self.tol!r}"] if self.tol is not None else []
        return words + [f"{name}={value!r}" for name, value in self.options.items()]

    def call_options(self) -> CallOptions:
        """Return the options as the judge needs them."""
        tol = _DEFAULT_TOL if self.tol is None else self.tol
        start = np.zeros(self.model.shape) if self.x0 is None else self.x0
        with np.errstate(over="ignore", invalid="ignore"):
            first = abs(float(self.model.objective.value(start)))
        first = first if math.isfinite(first) else 0.0
        if first == 0.0 and self.model.inside is not None:
            # Then the slope over a typical length counts; a point of the set shows that up to a factor,
            # if it is as long in all directions: the slope may be steepest where this one is short.
            f, inside = self.model.objective, self.model.inside
            with np.errstate(over="ignore", invalid="ignore"):
                # The point may be 0 by chance; then the length follows from the right-hand sides of rows.
                length = max(float(norm(inside)), self.model.unit)
                sizes = [f.size(inside), f.size(np.full(inside.shape, length))]
            first = SLACK * max(size for size in sizes if math.isfinite(size))
        return CallOptions(tol, self._dtype_promised, eps_of(self.dtype), first=first)

    @property
    def _dtype_promised(self) -> str | None:
        """The precision of the result; callables without a start have none."""
        parts: tuple[Any, ...] = (self.model.objective, *self.model.members)
        return None if self.x0 is None and all(p.untyped for p in parts) else self.dtype

    def judge(self, outcome: Outcome) -> Verdict:
        if len(outcome.claims) != 1:
            return Verdict(Class.WRONG, "results missing", repr(outcome.value))
        return judge_model(self.model, self.call_options(), outcome.claims[0])

    def excuse(self, raised: Raised) -> Verdict | None:
        if self.method is not None and raised.kind == "MissingCapabilityError":
            return Verdict(Class.REFUSED, raised.message)
        return None

    def simpler(self) -> Iterator[SolveCase]:
        for model, kept in simpler_models(self.model):
            x0 = self.x0
            if x0 is not None and kept is not None:
                x0 = x0[np.ix_(*[kept] * x0.ndim)]
            yield replace(self, model=model, x0=x0)
        yield from [replace(self, x0=None)] * (self.x0 is not None)
        yield from [replace(self, method=None)] * (self.method is not None)
        yield from [replace(self, tol=None)] * (self.tol is not None)


@dataclass(frozen=True)
class MinimizeCase(SolveCase):
    """``lopro.minimize(fun, x0, jac, constraint=..., ...)`` with callables and SciPy's constraints."""

    kind: str = "minimize"
    #: "callable", "true" (value and slope at once) or "none" (finite differences).
    jac: str = "callable"
    smooth: bool = True
    scipy: bool = True

    def script(self) -> Script:
        script = Script()
        value, slope = self.model.objective.callables(script)
        members = [constraint_text(m, script, self.scipy) for m in self.model.members]
        constraint = members[0] if len(members) == 1 else f"[{', '.join(members)}]"
        script.data.append(f"value, slope = {value}, {slope}")
        script.setup = [f"constraint = {constraint}"]
        assert self.x0 is not None
        words = ["value", script.array(self.x0, "x0")]
        if self.jac == "callable":
            words.append("slope")
        if self.jac == "true":
            words = ["lambda x: (value(x), slope(x))", *words[1:], "True"]
        words.append("constraint=constraint")
        words += [] if self.smooth else ["smooth=False"]
        options = replace(self, x0=None)._options(script)
        script.call = f"result = lopro.minimize({', '.join(words + options)})"
        return script

    def judge(self, outcome: Outcome) -> Verdict:
        members = tuple(seen_as(m, self.scipy) for m in self.model.members)
        seen = replace(self, model=self.model.changed(members=members))
        return super(MinimizeCase, seen).judge(outcome)

    def call_options(self) -> CallOptions:
        call_options = super().call_options()
        return replace(call_options, slopes=_DIFFERENCES) if self.jac == "none" else call_options

    def simpler(self) -> Iterator[MinimizeCase]:
        for case in super().simpler():
            if case.x0 is not None:  # it is needed here
                assert isinstance(case, MinimizeCase)
                yield case
