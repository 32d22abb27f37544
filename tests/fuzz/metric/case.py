"""A call of `learn_metric` as data."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from fuzz.general.sets import Array
from fuzz.judge.claims import Outcome, Raised
from fuzz.judge.verdict import Class, Verdict
from fuzz.judge.wide import wide
from fuzz.machine.script import Script
from fuzz.metric.judge import judge_metric
from fuzz.metric.problem import MetricProblem
from fuzz.sparse.shrink import chunks, rounded

__all__ = ["MetricCase"]

_DEFAULT_TOL = 1e-3


@dataclass(frozen=True)
class MetricCase:
    """Samples with labels, or with pairs and targets, or differences with targets."""

    X: Array
    labels: Array | None = None
    pairs: Array | None = None
    targets: Array | None = None
    #: "array", "pandas" (a DataFrame and a Series) or "differences" (X holds them).
    form: str = "array"
    l1: float = 1e-3
    A0: Array | None = None
    method: str | None = None
    tol: float | None = None
    options: dict[str, Any] = field(default_factory=dict)
    kind: str = "metric"

    @property
    def limit(self) -> float | None:
        return self.options.get("time_limit")

    @property
    def tags(self) -> dict[str, Any]:
        return {
            "two_seconds": self.options == {"time_limit": 2.0},
            "form": self.form,
            "method": self.method or "default",
        }

    def script(self) -> Script:
        script = Script()
        script.array(self.X, "X")
        words = ["X"]
        if self.form == "differences":
            words = ["pairs=X"]
        elif self.form == "pandas":
            script.data.append("import pandas")
            script.data.append("frame = pandas.DataFrame(X)")
            words = ["frame"]
        if self.labels is not None:
            name = script.array(self.labels, "labels")
            if self.form == "pandas":
                script.data.append(f"series = pandas.Series({name})")
                name = "series"
            words.append(name)
        if self.pairs is not None:
            words.append(f"pairs={script.array(self.pairs, 'pairs')}")
        if self.targets is not None:
            words.append(f"targets={script.array(self.targets, 'targets')}")
        words.append(f"l1={self.l1!r}")
        words += [f"A0={script.array(self.A0, 'A0')}"] if self.A0 is not None else []
        words += [f"method={self.method}"] if self.method else []
        words += [f"tol={self.tol!r}"] if self.tol is not None else []
        words += [f"{name}={value!r}" for name, value in self.options.items()]
        script.call = f"result = lopro.learn_metric({', '.join(words)})"
        return script

    def problem(self) -> MetricProblem:
        """Return the problem as the judge needs it."""
        X = wide(self.X)
        if self.form == "differences":
            assert self.targets is not None
            return MetricProblem(X, self.targets, self.l1)
        if self.pairs is None:
            first, second = np.triu_indices(len(X), 1)
        else:
            first, second = self.pairs.T
        if self.targets is not None:
            targets = self.targets
        else:
            assert self.labels is not None
            targets = np.where(self.labels[first] == self.labels[second], 0.0, 2.0)
        return MetricProblem(X[first] - X[second], targets, self.l1)

    def judge(self, outcome: Outcome) -> Verdict:
        if len(outcome.claims) != 1:
            return Verdict(Class.WRONG, "results missing", repr(outcome.value))
        tol = _DEFAULT_TOL if self.tol is None else self.tol
        return judge_metric(self.problem(), tol, self.X.dtype, outcome.claims[0])

    def excuse(self, raised: Raised) -> Verdict | None:
        """Data from which nothing can be learned may be refused, if the message says so."""
        if not raised.on_purpose:
            return None
        if raised.kind == "MissingCapabilityError" and self.method is not None:
            return Verdict(Class.REFUSED, raised.message)
        problem = self.problem()
        nothing = not (problem.targets > 0).any() or not (problem.Z != 0).any()
        words = ("class", "differ", "targets", "pair")
        if nothing and any(word in raised.message for word in words):
            return Verdict(Class.REFUSED, raised.message)
        return None

    def simpler(self) -> Iterator[MetricCase]:
        if self.pairs is None:
            for kept in chunks(len(self.X)):
                labels = None if self.labels is None else self.labels[kept]
                targets = self.targets
                if self.form == "differences" and targets is not None:
                    targets = targets[kept]
                yield replace(self, X=self.X[kept], labels=labels, targets=targets)
        else:
            for kept in chunks(len(self.pairs)):
                targets = None if self.targets is None else self.targets[kept]
                yield replace(self, pairs=self.pairs[kept], targets=targets)
        for kept in chunks(self.X.shape[1]):
            A0 = None if self.A0 is None else self.A0[np.ix_(kept, kept)]
            yield replace(self, X=self.X[:, kept], A0=A0)
        if self.form == "pandas":
            yield replace(self, form="array")
        yield from [replace(self, A0=None)] * (self.A0 is not None)
        yield from [replace(self, method=None)] * (self.method is not None)
        yield from [replace(self, tol=None)] * (self.tol is not None)
        for digits in (1, 3):
            yield replace(self, X=rounded(self.X, digits))
