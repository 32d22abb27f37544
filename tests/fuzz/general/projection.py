"""Projections: a call of ``constraint.project`` and its judge."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from fuzz.general.model import Model
from fuzz.general.objectives import SquaredDistance
from fuzz.general.sets import Array
from fuzz.general.shrink import simpler_models
from fuzz.judge.claims import Outcome, Raised
from fuzz.judge.contract import SLACK, eps_of, feasible_up_to
from fuzz.judge.verdict import Class, Finding, Verdict
from fuzz.judge.wide import norm, wide
from fuzz.machine.script import Script

__all__ = ["ProjectCase"]

#: A point that is further away than the nearest one by more than this share is not the nearest.
_NEAREST = 1e-6
#: The accuracy of the reference's nearest point.
_REFERENCE = 1e-4


@dataclass(frozen=True)
class ProjectCase:
    """``constraint.project(x)``."""

    model: Model
    x: Array
    dtype: str = "float64"
    kind: str = "project"

    @property
    def limit(self) -> float | None:
        return None

    @property
    def tags(self) -> dict[str, Any]:
        return {"sets": "+".join(sorted({type(m).__name__ for m in self.model.members}))}

    def script(self) -> Script:
        script = Script(dtype=self.dtype)
        members = [m.text(script) for m in self.model.members]
        text = members[0] if len(members) == 1 else f"lc.Intersection({', '.join(members)})"
        script.setup = [f"constraint = {text}"]
        script.call = f"result = constraint.project({script.array(self.x, 'x')})"
        return script

    def excuse(self, raised: Raised) -> Verdict | None:
        if raised.kind == "ProjectionError":
            return Verdict(Class.HONEST, "ProjectionError", raised.message)
        if raised.kind != "InfeasibleError":
            return None
        if self.model.safe is not None:
            return Verdict(Class.WRONG, "false INFEASIBLE", "a point of the set is known")
        if self.model.empty:
            return Verdict(Class.CERTIFIED, "empty")
        return Verdict(Class.UNKNOWN, "perhaps empty", raised.message)

    def judge(self, outcome: Outcome) -> Verdict:
        try:
            return self._checked(outcome.value)
        except Finding as found:
            return Verdict(Class.WRONG, found.label, found.detail)

    def _checked(self, z: Any) -> Verdict:
        if not isinstance(z, np.ndarray) or z.shape != self.x.shape or z.dtype != self.dtype:
            raise Finding("dtype changed", f"a point came back as {type(z).__name__}")
        if not np.isfinite(z).all():
            raise Finding("infeasible projection", "the point is not finite")
        left = self.model.violation(z)
        if left > SLACK * feasible_up_to(eps_of(z.dtype)):
            raise Finding("infeasible projection", f"relative violation {left:.3g}")
        return self._nearest(z)

    def _nearest(self, z: Array) -> Verdict:
        x = wide(self.x)
        scale = max(norm(x), norm(z), np.longdouble(self.model.unit))
        away = norm(wide(z) - x)
        eps = eps_of(self.dtype)
        if self.model.holds(x) and away > feasible_up_to(eps) * scale:
            raise Finding("moved a feasible point", f"by {float(away / scale):.3g}, relative")
        found, point, _ = self._reference()
        near = [norm(p - x) for p in self.model.feasible_points([point, z])]
        best = min(near, default=None)
        allowed = max(_NEAREST, 64.0 * eps)
        if best is not None and away > best * (1 + allowed) + feasible_up_to(eps) * scale:
            raise Finding(
                "not the nearest point", f"{float(away)!r} away, {float(best)!r} is possible"
            )
        if self.model.holds(x):
            return Verdict(Class.CERTIFIED)
        # No nearer point was found, and the reference solver ended at this one as well.
        if found.solved and norm(wide(z) - wide(point)) <= _REFERENCE * scale:
            return Verdict(Class.CERTIFIED)
        return Verdict(Class.UNKNOWN, "nearest point not known well enough")

    def _size(self) -> float:
        """Return a power of two that makes distances about one."""
        size = float(max(norm(self.x), np.longdouble(self.model.unit)))
        return float(2.0 ** np.round(np.log2(size))) if size > 0.0 else 1.0

    def _reference(self) -> Any:
        # The objective of a projection is its own unit: half a squared distance, scaled to order one.
        s = self._size()
        plain = self.model.changed(
            objective=SquaredDistance(self.x, 1.0 / s / s), unit=s, inside=None
        )
        return plain.reference()

    def simpler(self) -> Iterator[ProjectCase]:
        for model, kept in simpler_models(self.model):
            x = self.x if kept is None else self.x[np.ix_(*[kept] * self.x.ndim)]
            yield replace(self, model=model, x=x)
