"""`MultiplierMethod` on a problem in one variable: every multiplier, gap and projection in closed form.

For ``min (x - z)^2 / 2`` subject to ``a x <= a b``, ``b < z``, the minimiser of the augmented Lagrangian
with multiplier u and stiffness beta has ``x - b = (z - b - a u) / (1 + beta a^2)``, and the next
multiplier is ``u + beta a (x - b)``: the distance of ``a u`` from ``z - b`` shrinks by ``1 + beta a^2``.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import pytest

import lopro
from lopro import MultiplierMethod, Status
from lopro.constraints import Polyhedron, PSDCone, SecondOrderCone
from lopro.core.deadline import Deadline
from lopro.driver.workbench import Options, RunWorkbench
from lopro.methods.multipliers import first_stiffness
from lopro.objectives import SquaredDistance
from lopro.penalties import SetPenalty


@dataclass(frozen=True)
class Line:
    """The problem, and the run that the method's description requires."""

    z: float
    a: float
    b: float

    @property
    def problem(self) -> lopro.Problem:
        half = Polyhedron(np.array([[self.a]]), np.array([self.a * self.b]))
        return lopro.Problem(SquaredDistance(np.array([self.z])), half)

    @property
    def optimum(self) -> float:
        return 0.5 * (self.z - self.b) ** 2

    def gaps_and_bounds(self, x0: float, count: int) -> list[tuple[float, float]]:
        """Return estimated gap and lower bound after each multiplier update."""
        # A violation of the size of the start and of the set, whose end is the typical length of x,
        # balances the slope of the objective there.
        beta = abs(x0 - self.z) / (abs(self.b) + abs(x0)) / self.a**2
        u, slack, found = 0.0, np.inf, []
        for _ in range(count):
            outside = (self.z - self.b - self.a * u) / (1.0 + beta * self.a**2)
            u += beta * self.a * outside
            fun = 0.5 * (self.b + outside - self.z) ** 2
            bound = self.a * u * (self.z - self.b) - 0.5 * (self.a * u) ** 2
            before, slack = slack, self.a * u * outside
            found.append((slack + abs(fun - bound), bound))
            if slack > 0.3 * before:
                beta *= 3.0
        return found

    def projections(self, x0: float, tol: float) -> list[tuple[int, float]]:
        """Return after how many updates it projects, and the certified gap there, until convergence."""
        target, rows = np.inf, []
        for k, (gap, bound) in enumerate(self.gaps_and_bounds(x0, 60), start=1):
            if gap <= target:
                certified = self.optimum - bound  # the projection ends at the solution
                rows.append((k, certified))
                target = 0.1 * min(gap, certified)
                if certified <= tol * self.optimum:
                    return rows
        raise AssertionError("it should have converged")


#: Two with a first stiffness that lets the gap fall fast enough, and two in which it has to grow.
CASES = [
    (Line(4.0, 1.0, 1.0), 0.0),
    (Line(8.0, 2.0, 0.5), 1.0),
    (Line(-2.0, 0.3, -13.0), 0.0),
    (Line(3.0, 5.0, -1.0), -0.5),
]


@pytest.mark.parametrize("tol", [1e-4, 1e-8, 1e-12])
@pytest.mark.parametrize(("line", "x0"), CASES)
def test_it_projects_when_the_gap_has_fallen_to_a_tenth(line: Line, x0: float, tol: float) -> None:
    result = lopro.solve(line.problem, np.array([x0]), MultiplierMethod(steps=40), tol=tol)
    rows = line.projections(x0, tol)
    assert result.success
    assert result.x == pytest.approx([line.b], rel=1e-9)
    # Forty accelerated steps solve the inner problem of one variable.
    assert [n / 40 for n in result.history["iterations"]] == [k for k, _ in rows]
    # Rounding errors are subtracted from bounds; in the end they are the whole gap.
    rounding = 1e-12 * max(1.0, line.optimum)
    assert result.history["gap"] == pytest.approx([gap for _, gap in rows], rel=1e-4, abs=rounding)


@pytest.mark.parametrize(("line", "x0"), CASES)
def test_patience_counts_updates_without_progress(line: Line, x0: float) -> None:
    """A gap that falls by a tenth resets the count; where the stiffness has to grow, it reaches three."""
    best, idle, waits = np.inf, 0, 0
    for gap, _ in line.gaps_and_bounds(x0, 60):
        if gap <= 1e-12 * line.optimum:
            break
        best, idle = (gap, 0) if gap < 0.9 * best else (best, idle + 1)
        waits = max(waits, idle)
    assert waits == (3 if line == CASES[2][0] else 0)
    method = MultiplierMethod(patience=max(2, waits))
    assert lopro.solve(line.problem, np.array([x0]), method, tol=1e-12).success
    if waits:
        short = MultiplierMethod(patience=waits - 1)
        result = lopro.solve(line.problem, np.array([x0]), short, tol=1e-12)
        assert result.status is Status.STALLED
        assert result.iterations == 25 * (1 + waits)


@pytest.mark.parametrize("patience", [3, 10])
@pytest.mark.parametrize(("line", "x0"), CASES)
def test_it_ends_when_nothing_improves(line: Line, x0: float, patience: int) -> None:
    """With ``tol = 0`` it continues to the limits of rounding, and for ``patience`` more updates."""
    method = MultiplierMethod(patience=patience)
    result = lopro.solve(line.problem, np.array([x0]), method, tol=0, max_iter=20_000)
    assert result.status is Status.STALLED
    assert result.fun == pytest.approx(line.optimum, rel=1e-12)
    useful = sum(gap > 1e-13 * line.optimum for gap, _ in line.gaps_and_bounds(x0, 60))
    assert useful + patience <= result.iterations / 25 <= useful + patience + 6


def test_penalties_do_not_grow_for_a_slack_of_rounding() -> None:
    """In single precision the slack stops falling at 1e-8; tripled at each update, penalties overflowed."""
    rng = np.random.default_rng(0)
    A, b = (rng.standard_normal(s).astype(np.float32) for s in ((9, 6), 9))
    f = lopro.objectives.LInfNorm() + lopro.objectives.LeastSquares(A, b)
    rows = lopro.constraints.Affine(rng.standard_normal((2, 6)).astype(np.float32), 0.1, 0.1)
    problem = lopro.Problem(f, rows)
    result = lopro.solve(problem, method=lopro.MultiplierMethod(), tol=0.0, max_iter=20000)
    assert result.status.name in ("STALLED", "MAX_ITER")
    assert result.certificate.relative_gap < 1e-4


@pytest.mark.parametrize("size", [1.0, 1e3, 1e6])
def test_multipliers_of_cones_are_in_the_polar_in_spite_of_rounding(size):
    """They are differences of projections, whose rounding is that of a large part within the cone."""
    Q = np.linalg.qr(np.random.default_rng(0).standard_normal((5, 5)))[0]
    X = (Q * [-1.0, -0.5, size, 2.0 * size, 0.0]) @ Q.T
    found = SetPenalty(2.0).valid_inequality(PSDCone(5), 0.5 * (X + X.T))
    assert np.linalg.eigvalsh(found.dual[0]).max() <= 0.0 == found.support
    assert found.direction == pytest.approx(
        2.0 * (Q * [-1.0, -0.5, 0.0, 0.0, 0.0]) @ Q.T, abs=1e-14 * size
    )
    cone = SecondOrderCone(np.eye(5)[1:], c=np.eye(5)[0])
    x = np.array([0.0, 1.0, 2.0, 3.0, 4.0]) + size * np.array([1.0, 0.0, 0.0, 0.0, 0.0])
    (v,) = SetPenalty(1.0 / 3.0).valid_inequality(cone, x).dual
    assert math.fsum(np.square(v[1:])) <= v[0] ** 2 and v[0] <= 0.0


@pytest.mark.parametrize("factor", [1.0, 64.0, 2.0**-20])
def test_the_first_stiffness_is_that_near_a_start_where_the_slope_vanishes(factor: float) -> None:
    """For ``factor |x - z|^2 / 2`` from ``z``: the slope divided by a length is the factor."""
    z = np.array([3.0, 0.0])
    rows = Polyhedron(np.array([[5.0, 0.0]]), np.array([1.0]))
    problem = lopro.Problem(factor * SquaredDistance(z), rows)
    bench = RunWorkbench(problem, Options(tol=1e-3), Deadline(), z)
    (found,) = first_stiffness(bench, z)
    # The direction is the diagonal, along which the row rises by 5 / sqrt(2).
    assert found == pytest.approx(factor / 12.5)
