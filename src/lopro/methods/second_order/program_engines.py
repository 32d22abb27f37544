"""Quadratic and linear programs, solved by an engine; the proof does not depend on the engine."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import ClassVar

from lopro.certificates import feasibility_tolerance
from lopro.certificates.certificate import Status
from lopro.core.arrays import Array, asarray_like
from lopro.core.counting import count
from lopro.core.deadline import current_deadline
from lopro.engines import ENGINES, Engine, engines_for
from lopro.engines.active_set import solve_by_active_set
from lopro.engines.answer import installed
from lopro.errors import MissingCapabilityError, StalledError
from lopro.maps.host import host_vector
from lopro.methods.answers import answer, evidence_of, member_multipliers
from lopro.methods.costs import engine_cost, guess_pays
from lopro.methods.second_order.forms import Forms
from lopro.newton.programs import solve_program
from lopro.problem import Problem
from lopro.protocol import Candidate, Candidates, Card, Fit, Workbench

__all__ = ["ProgramEngines"]


@dataclass(frozen=True)
class ProgramEngines:
    """Quadratic programs by PIQP, linear programs by HiGHS or PIQP, and by Clarabel where these fail.

    Problem: min 1/2 x'Px + q'x s.t. l <= Mx <= u, given as a sum of `Quadratic`, `Linear` and
    `SquaredDistance` over a `Polyhedron`, a box, an `Affine` set, a `Simplex`, or an `Intersection` of those.
    Oracles: none; it reads the data.

    The certificate does not depend on the engine: its point and its multipliers are refined by Newton steps
    on the augmented Lagrangian, and the bound is computed from the data and includes its own rounding error.
    INFEASIBLE and UNBOUNDED are reported only with a ray that has been checked.

    Parameters
    ----------
    engines : tuple of str
        The engines to run, in this order, of ``"piqp"``, ``"highs"``, ``"clarabel"``; by default those that
        suit the program.

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
        assumptions="f is a quadratic function given by its matrix, the set is given by rows",
        oracles="none: it reads the data",
        rate="some tens of factorisations, or pivots",
        projections="0 or 1",
        reference="Schwan, Jiang, Kuhn, Jones (PIQP, 2023); Huangfu, Hall (HiGHS, 2018)",
    )

    def check(self, problem: Problem) -> None:
        obstacle = self._obstacle(Forms(problem))
        if obstacle is not None:
            raise MissingCapabilityError(obstacle)

    def _obstacle(self, forms: Forms) -> str | None:
        if forms.program_obstacle is None and set(self.engines) == {"highs"} and not forms.linear:
            return "HiGHS solves linear programs only, and the objective is quadratic"
        return forms.program_obstacle

    def fit(self, problem: Problem) -> Fit | None:
        """Return the fit to a problem, with its reason and cost; None if the method does not fit."""
        return self.fit_to(Forms(problem))

    def fit_to(self, forms: Forms) -> Fit | None:
        """Return the fit to the forms of a problem, which methods share."""
        if self._obstacle(forms) is not None:
            return None
        kind = "linear" if forms.linear else "quadratic"
        density = "" if forms.sparse else "dense "
        default = "highs" if forms.linear else "piqp" if installed("piqp") else "clarabel"
        first = self.engines[0] if self.engines else default
        cost = engine_cost(forms.rows, forms.variables, forms.entries, forms.sparse, first)
        return Fit(self, f"it is a {density}{kind} program", cost, partial(self._run, forms))

    def run(self, bench: Workbench, x0: Array) -> Candidates:
        return self._run(Forms(bench.problem), bench, x0)

    def _engines(self, forms: Forms) -> Sequence[Engine]:
        return [ENGINES[name] for name in self.engines] or engines_for(forms.program)

    def _active_set(self, forms: Forms, bench: Workbench) -> Iterator[Engine]:
        """Yield the active-set method for a warm start, if multipliers are given and it may save time."""
        given = bench.multipliers0 if bench.warm and forms.has_active_sets else None
        if given is not None and guess_pays(forms.rows, forms.size):
            rows, box = forms.joined_multipliers([host_vector(v) for v in given])
            yield lambda program, tol, seconds: solve_by_active_set(program, rows, box)

    def _run(self, forms: Forms, bench: Workbench, x0: Array) -> Candidates:
        left = current_deadline().left
        outcome = solve_program(
            forms.program,
            bench.target.tol,
            feasibility_tolerance(x0),
            lambda: bench.target.scale,
            lambda: bench.unit,
            None if math.isinf(left) else left,
            convex=True,  # objectives check their matrices at construction
            engines=[*self._active_set(forms, bench), *self._engines(forms)],
            problem=lambda: forms.composite,
            split=forms.split_multipliers,
            proof=forms.proof,
            size=forms.size,
        )
        bench.tick()
        count("factorizations")
        if outcome.status is Status.UNBOUNDED and not forms.exact:
            raise StalledError  # the normal matrix is rounded: its ray proves nothing
        if isinstance(outcome.ray, tuple):
            outcome = replace(outcome, ray=forms.split_multipliers(*outcome.ray))
        late = outcome.status is Status.STOPPED and current_deadline().passed
        if late and outcome.certificate is None:
            # The projection would be another program, for which no time is left.
            evidence = evidence_of(forms.sets_on_host, outcome, bench, x0, member_multipliers)
            yield Candidate(asarray_like(outcome.x, x0), evidence)
        else:
            yield answer(forms.sets_on_host, outcome, bench, x0, member_multipliers, mend=True)
        raise StalledError
