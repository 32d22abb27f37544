"""The incumbent of a semidefinite program: the best point and the best bound, in its original units."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace

import numpy as np

from lopro.certificates import BEYOND, FARTHER, FEASIBLE, Bound
from lopro.certificates.certificate import Outcome, Status
from lopro.linalg.dense import Array, norm
from lopro.newton.sdp.faces import reduced
from lopro.newton.sdp.judge import DualBound, Judge, PrimalValue
from lopro.newton.sdp.onto_rows import nearest_blocks, onto_rows
from lopro.newton.sdp.program import ScaledProgram, SemidefiniteBlock, SemidefiniteProgram
from lopro.newton.spectral import Spectrum

__all__ = ["SemidefiniteSearch"]

#: Required margins, relative to the one that costs a third of the allowed gap. The larger one gives
#: multipliers in the interior of the dual, for convex combinations with others. A tenth and ten times of
#: either, or more values in between, take 3 % more or less in ``python -m benchmarks.constants newton.sdp``.
_MARGINS = 1.0, 1000.0
_TINY = float(np.finfo(np.float64).tiny)
#: Sum of the cubes of the block sizes up to which a point that violates rows is projected onto them. A tenth
#: and ten times as much change nothing in ``python -m benchmarks.constants newton.sdp``.
_CUBES = 1e5


class SemidefiniteSearch:
    """The program in the units of an engine, and the evaluation of answers in the original units.

    Attributes
    ----------
    normalised, units : ScaledProgram
        The program on its face, in normalised units and in those of the engine.
    margin : float
        The required least eigenvalue of the slack, in units of the engine: 0 if traces are bounded.
    """

    def __init__(
        self,
        original: SemidefiniteProgram,
        tol: float,
        scale: float,
        stopped: Callable[[], bool],
        terms: bool = False,
    ) -> None:
        self.original, self.tol, self.scale, self.stopped = original, tol, scale, stopped
        self.terms = terms
        self.judge = Judge(original)
        self.face = reduced(original)
        self.normalised = self.units = ScaledProgram.of(self.face.program)
        self.margin = 0.0
        self.point: PrimalValue | None = None
        self.bound: DualBound | None = None
        self.sharp: DualBound | None = None
        self.interior: tuple[Array, float] | None = None
        self.ended: Outcome | None = None
        #: No X with a smaller trace is feasible, as proved by multipliers.
        self.empty_within = 0.0
        self.engine = ""

    @property
    def program(self) -> SemidefiniteProgram:
        """The program to solve, with ``C`` lowered by the margin so that the slack exceeds it."""
        if self.margin == 0.0:
            return self.units.program
        blocks = tuple(
            SemidefiniteBlock(p.size, p.diagonal, p.C - self.margin * p.identity, p.A)
            for p in self.units.program.blocks
        )
        return SemidefiniteProgram(self.units.program.b, blocks)

    def allowed(self, fun: float, X: tuple[Array, ...]) -> float:
        """Return the gap at which a point with this value has converged, in original units."""
        size = self.original.size_of_terms(X) if self.terms else abs(fun)
        return self.tol * max(size, self.scale)

    def promising(self, X: tuple[Array, ...], y: Array, dual_residual: float) -> bool:
        """Return whether a proof may succeed: the gap plus the charge for the dual residual is small."""
        p = self.units.program
        unit = self.units.cost * self.units.x
        fun = p.value(X)
        trace = sum(float(x.sum() if x.ndim == 1 else x.trace()) for x in X)
        gap = abs(fun - float(p.b @ y)) + max(0.0, dual_residual - self.margin) * trace
        size = p.size_of_terms(X) if self.terms else abs(fun)
        return gap * unit <= self.tol * max(size * unit, self.scale)

    def evaluate(self, X: tuple[Array, ...], y: Array) -> bool:
        """Evaluate a point and multipliers in units of the engine; return whether the search is over."""
        X = self.face.matrices(self.units.matrices(X))
        fun = self.original.value(X)
        if not math.isfinite(fun):
            return False
        trace = sum(float(x.sum() if x.ndim == 1 else x.trace()) for x in X)
        loss = 0.2 * self.allowed(fun, X) / max(trace, np.finfo(float).tiny)
        y = self.face.multipliers(self.original, self.units.multipliers(y), loss)
        return self.consider(X, y)

    def consider(self, X: tuple[Array, ...], y: Array) -> bool:
        """Evaluate a point and multipliers of the original program; return whether the search is over."""
        point = self._corrected(X)
        if self.point is None or self._rank(point) < self._rank(self.point):
            self.point = point
        bound, reach = self.judge.dual(y), self._reach()
        for found in (bound, self._mixed(bound)):
            if self.bound is None or (found is not None and found.at(reach) > self.bound.at(reach)):
                self.bound = found
        return self.converged

    def _mixed(self, bound: DualBound) -> DualBound | None:
        """Return a convex combination of the best bound and an interior one that has the slope 0.

        Slacks are affine in the multipliers: with the weight ``s / (s + l)`` of multipliers whose slack is at
        least l, the combination with a slack of at least -s has a nonnegative one.
        """
        if math.isfinite(self.judge.trace_bound) or self.point is None:
            return None
        trace = max(self.point.trace, 0.0)
        if self.sharp is None or bound.at(trace) > self.sharp.at(trace):
            self.sharp = bound
        if bound.slope == 0.0:
            least = min(_least(slack) for slack in self.original.slack(bound.y))
            if self.interior is None or least > self.interior[1]:
                self.interior = bound.y, least
        if self.sharp.slope == 0.0 or self.interior is None:
            return None
        inner, least = self.interior
        share = 1.1 * self.sharp.slope / (self.sharp.slope + max(least, _TINY))
        return (
            None if share >= 1.0 else self.judge.dual((1.0 - share) * self.sharp.y + share * inner)
        )

    def _rank(self, point: PrimalValue) -> tuple[bool, float]:
        """Return the key that orders points: feasible first, then the value."""
        feasible = point.violation <= FEASIBLE
        return not feasible, point.fun if feasible else point.violation

    def _corrected(self, X: tuple[Array, ...]) -> PrimalValue:
        """Return X moved into the cone and onto the rows if that reduces the violation, else unchanged."""
        plain = self.judge.primal(X)
        if plain.violation <= 1e-2 * FEASIBLE or self.stopped():
            return plain
        inside = tuple(
            np.maximum(x, 0.0) if x.ndim == 1 else Spectrum(x).positive_part() for x in X
        )
        moved = self.judge.primal(onto_rows(self.original, inside, self.stopped))
        best = moved if moved.violation < plain.violation else plain
        if best.violation <= FEASIBLE or self.stopped() or not self._small:
            return best
        projected = self.judge.primal(nearest_blocks(self.original, inside, self.stopped))
        return projected if projected.violation < best.violation else best

    @property
    def _small(self) -> bool:
        """Whether a projection is cheap and has multipliers, as X is not restricted to a face."""
        cubes = sum(float(p.size) ** 3 for p in self.original.blocks if not p.diagonal)
        return cubes <= _CUBES and all(Q is None for Q in self.face.bases)

    def _reach(self) -> float:
        """Return the trace up to which bounds must hold."""
        if math.isfinite(self.judge.trace_bound) or self.point is None:
            return self.judge.trace_bound
        return FARTHER * self.point.trace

    @property
    def converged(self) -> bool:
        """Whether point and bound prove the required gap."""
        found = self.outcome(Status.CONVERGED)
        return found.violation <= FEASIBLE and found.gap <= self.allowed(found.fun, found.x)

    def widen(self) -> bool:
        """Require a margin, or a larger one, if traces are unbounded; return whether it was increased."""
        if self.point is None or math.isfinite(self.judge.trace_bound):
            return False
        unit = self.units.cost * self.units.x
        trace = max(self.point.trace / self.units.x, np.finfo(float).tiny)
        full = 0.3 * self.allowed(self.point.fun, self.point.X) / unit / trace
        wider = [share * full for share in _MARGINS if share * full > 1.5 * self.margin]
        self.margin = wider[0] if wider else self.margin
        return bool(wider)

    def check_rays(self, X: tuple[Array, ...], y: Array) -> bool:
        """Return whether the direction of y or X proves that there is no solution."""
        y = self.face.multipliers(self.original, self.units.multipliers(y), 0.0)
        if norm(y) > 0.0:
            contradiction, found = self.judge.contradiction(y / norm(y))
            if found.proved:
                return self._end(Outcome(Status.INFEASIBLE, X, contradiction))
            self.empty_within = max(self.empty_within, found.radius)
        X = self.face.matrices(self.units.matrices(X))
        size = math.sqrt(sum(norm(x) ** 2 for x in X))
        if size > 0.0:
            flat = SemidefiniteProgram(0.0 * self.original.b, self.original.blocks)
            ray = onto_rows(flat, tuple(x / size for x in X), self.stopped)
            radius = self.judge.unbounded(ray)
            # The expected norm of multipliers that balance the cost.
            expected = float((self.normalised.cost / self.normalised.rows).max())
            if radius >= BEYOND * expected:
                return self._end(
                    Outcome(Status.UNBOUNDED, ray, y, bound=_limited(-math.inf, radius))
                )
        return False

    def _end(self, outcome: Outcome) -> bool:
        self.ended = replace(outcome, engine=self.engine)
        return True

    def outcome(self, status: Status) -> Outcome:
        """Return the best point and the best bound, and what they prove together."""
        if self.ended is not None:
            return self.ended
        if self.point is None or self.bound is None:
            zero = tuple(np.zeros(p.shape) for p in self.original.blocks)
            return Outcome(status, zero, np.zeros(len(self.original.b)), engine=self.engine)
        point, bound = self.point, self.bound
        known = math.isfinite(self.judge.trace_bound) or bound.slope == 0.0
        reach = self._reach()
        return Outcome(
            status,
            point.X,
            bound.y,
            point.fun,
            _limited(bound.at(reach), math.inf if known else reach),
            point.charge(bound),
            point.violation,
            engine=self.engine,
        )


def _limited(value: float, radius: float) -> Bound:
    """Return a bound that holds up to this trace, or up to this norm of multipliers."""
    return Bound(value, np.zeros(0), np.zeros(0), limit=radius)


def _least(slack: Array) -> float:
    """Return the computed least eigenvalue."""
    return float(slack.min(initial=math.inf) if slack.ndim == 1 else np.linalg.eigvalsh(slack)[0])
