"""Records of a comparison: one JSON file for each problem, from which figures and tables are made."""

from __future__ import annotations

import dataclasses
import json
import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from _report import environment, finite

import lopro
from benchmarks.compare.problems import Instance
from benchmarks.compare.run import Curve, Limits, Point, Reference

__all__ = ["Record"]


@dataclass(frozen=True)
class Record:
    """The runs on one problem, with the reference value, the budget and the machine."""

    name: str
    title: str
    sampled: float | None
    chosen: str  # the method that Auto picks
    reference: Reference
    limits: Limits
    curves: list[Curve]
    environment: dict[str, Any]

    @classmethod
    def of(
        cls, instance: Instance, reference: Reference, limits: Limits, curves: list[Curve]
    ) -> Record:
        """Collect everything, with the best value and bound that any run has found."""
        chosen = type(lopro.Auto().choose(instance.problem)).__name__
        best = reference.improved_by(curves)
        facts = instance.name, instance.title, instance.sampled, chosen
        return cls(*facts, best, limits, curves, environment())

    def ranked(self, *, once: bool = False) -> list[Curve]:
        """Return the runs that have points, best first; with ``once``, without the method that Auto picks."""
        ran = [curve for curve in self.curves if curve.points]
        if once and any(curve.method == "Auto" for curve in ran):
            ran = [curve for curve in ran if curve.method != self.chosen]
        return sorted(ran, key=self._rank)

    def _rank(self, curve: Curve) -> tuple[float, float]:
        """Return the key of the ranking: the gap, and the time among gaps below the tolerance."""
        best = curve.best
        return max(self.reference.gap(best.fun), self.limits.tol), best.seconds

    def label(self, curve: Curve) -> str:
        """Return the method's name; for Auto with the method picked."""
        return f"Auto: {self.chosen}" if curve.method == "Auto" else curve.method

    def write(self, folder: Path) -> Path:
        """Write the file of this problem."""
        folder.mkdir(parents=True, exist_ok=True)
        path = folder / f"compare_{self.name}.json"
        path.write_text(
            json.dumps(finite(dataclasses.asdict(self)), allow_nan=False) + "\n", encoding="utf-8"
        )
        return path

    @classmethod
    def read(cls, path: Path) -> Record:
        """Read a file of `write`; nulls become infinities."""
        data = json.loads(path.read_text(encoding="utf-8"))
        data["reference"] = Reference(**data["reference"])
        data["limits"] = Limits(**data["limits"])
        data["curves"] = [_curve(**curve) for curve in data["curves"]]
        return cls(**data)


def _curve(points: Sequence[dict[str, Any]], **rest: Any) -> Curve:
    for point in points:
        if point["certified"] is None:
            point["certified"] = math.inf
    if rest["lower_bound"] is None:
        rest["lower_bound"] = -math.inf
    return Curve(points=[Point(**point) for point in points], **rest)
