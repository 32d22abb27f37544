"""Quadratic and linear programs: solved by an engine, proved by us."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

from lopro.core.arrays import Array, asarray_like
from lopro.core.counting import count
from lopro.core.deadline import current_deadline
from lopro.engines import ENGINES
from lopro.errors import StalledError
from lopro.methods.second_order.forms import program_multipliers, quadratic_program
from lopro.methods.second_order.proofs import answer, evidence_of
from lopro.newton.engines import program_composite, solve_program
from lopro.newton.outcome import Status
from lopro.problem import Problem
from lopro.protocol import Candidate, Candidates, Card, Workbench
from lopro.protocol.certificates import feasibility_tolerance

__all__ = ["ProgramEngines"]


@dataclass(frozen=True)
class ProgramEngines:
    """Quadratic programs by PIQP, linear ones by HiGHS or PIQP, and where these fail by Clarabel.

    Problem: min 1/2 x'Px + q'x s.t. l <= Mx <= u, given as a sum of `Quadratic`, `Linear` and
    `SquaredDistance` over a `Polyhedron`, a box, an `Affine` set, a `Simplex`, or an `Intersection` of those.
    Oracles: none, it reads the data.

    What is certified does not rest on the engine: its point and its multipliers are refined by Newton steps
    on the augmented Lagrangian, and the bound is computed from the data with the rounding of its own
    arithmetic. A program without solution is told so only with a ray that has been checked.

    Parameters
    ----------
    engines : tuple of str
        Which ones to ask, in this order: ``"piqp"``, ``"highs"``, ``"clarabel"``; by default those that fit.

    References
    ----------
    R. Schwan, Y. Jiang, D. Kuhn, C. N. Jones, "PIQP: a proximal interior-point quadratic programming
    solver", CDC (2023); Q. Huangfu, J. A. J. Hall, "Parallelizing the dual revised simplex method",
    Math. Program. Comput. 10 (2018).

    Examples
    --------
    >>> import numpy as np, scipy.sparse, lopro
    >>> f = lopro.objectives.Linear(np.array([-1.0, -2.0]))
    >>> triangle = lopro.constraints.Simplex(2, equality=False)
    >>> result = lopro.solve(lopro.Problem(f, triangle), method=lopro.ProgramEngines())
    >>> result.success, (result.x + 0.0).round(9)
    (True, array([0., 1.]))
    """

    engines: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if any(name not in ENGINES for name in self.engines):
            raise ValueError(f"engines must be a tuple of {sorted(ENGINES)}, got {self.engines!r}")

    def __repr__(self) -> str:
        return f"ProgramEngines(engines={self.engines!r})" if self.engines else "ProgramEngines()"

    card: ClassVar[Card] = Card(
        assumptions="f is a quadratic function with its matrix at hand, the set is given by rows",
        oracles="none: it reads the data",
        rate="some tens of factorisations, or pivots",
        projections="0 or 1",
        reference="Schwan, Jiang, Kuhn, Jones (PIQP, 2023); Huangfu, Hall (HiGHS, 2018)",
    )

    def check(self, problem: Problem) -> None:
        quadratic_program(problem)

    def run(self, bench: Workbench, x0: Array) -> Candidates:
        program = quadratic_program(bench.problem)
        left = current_deadline().left
        outcome = solve_program(
            program,
            bench.target.tol,
            feasibility_tolerance(x0),
            bench.target.scale,
            bench.unit,
            None if math.isinf(left) else left,
            convex=True,  # objectives have looked at their matrices when they were made
            engines=[ENGINES[name] for name in self.engines],
        )
        bench.tick()
        count("factorizations")
        form = program_composite(program)
        if outcome.status is Status.STOPPED and current_deadline().passed:
            # A projection is a program again, and there is no time for it.
            evidence = evidence_of(form, outcome, bench, x0, program_multipliers)
            yield Candidate(asarray_like(outcome.x, x0), evidence)
        else:
            yield answer(form, outcome, bench, x0, program_multipliers, mend=True)
        raise StalledError
