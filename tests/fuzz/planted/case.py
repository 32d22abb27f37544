"""Calls of `solve` and of CVXPY on planted programs, as data, with their judge."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from fuzz.judge.claims import Outcome, Raised
from fuzz.judge.contract import SLACK
from fuzz.judge.points import check_bound, check_status, check_value, judge_by_points
from fuzz.judge.verdict import Class, Finding, Verdict
from fuzz.machine.script import Script
from fuzz.planted.conic import Conic, draw_cones, draw_conic
from fuzz.planted.exponential import ATOMS, Exponential, draw_exponential
from fuzz.planted.generate import draw_program, transport
from fuzz.planted.program import Program

__all__ = [
    "ConicCase",
    "CvxpyCase",
    "ExponentialCase",
    "ProgramCase",
    "cones_case",
    "conic_case",
    "cvxpy_case",
    "exponential_case",
    "large_case",
    "program_case",
]

#: The library's names of CVXPY's statuses.
_STATUSES = {"infeasible": "INFEASIBLE", "unbounded": "UNBOUNDED", "optimal": "CONVERGED"}


@dataclass(frozen=True)
class ProgramCase:
    """``lopro.solve(lopro.Problem(objective, sets), tol=..., time_limit=...)``."""

    program: Program
    tol: float
    limit: float = 2.0
    kind: str = "program"

    @property
    def tags(self) -> dict[str, Any]:
        return {"two_seconds": self.limit == 2.0, "way": self.program.way}

    def script(self) -> Script:
        script, p = self._data(), self.program
        if self.kind == "large":  # in the sparse form that users have
            script.data.append("A = scipy.sparse.csr_array(A)")
        linear = "lo.Linear(q)" if p.P is None else "lo.Quadratic(P, q)"
        sets = []
        if len(p.A):
            sets.append("lc.Affine(A, lower, upper)")
        if np.isfinite(p.low).any() or np.isfinite(p.high).any():
            sets.append("lc.Box(low, high)")
        if p.D is not None:
            sets.append("lc.ResidualBall(D, e, float(radius))")
        both = f"lc.Intersection({', '.join(sets)})" if len(sets) > 1 else "".join(sets)
        script.setup = [f"problem = lopro.Problem({linear}{', ' if sets else ''}{both})"]
        script.call = f"result = lopro.solve(problem, tol={self.tol!r}, time_limit={self.limit!r})"
        return script

    def _data(self) -> Script:
        script = Script()
        for name, values in self.program.data().items():
            script.array(values, name)
        return script

    def judge(self, outcome: Outcome) -> Verdict:
        if len(outcome.claims) != 1:
            return Verdict(Class.WRONG, "results missing", repr(outcome.value))
        return judge_by_points(self.program.known(), self.tol, outcome.claims[0])

    def excuse(self, raised: Raised) -> Verdict | None:
        return None

    def simpler(self) -> Iterator[ProgramCase]:
        for program in self.program.simpler():
            yield replace(self, program=program)


@dataclass(frozen=True)
class CvxpyCase(ProgramCase):
    """``problem.solve(solver=lopro.cvxpy.Lopro(), tol=..., time_limit=...)``."""

    kind: str = "cvxpy"

    def script(self) -> Script:
        script, p = self._data(), self.program
        square = "" if p.P is None else "0.5 * cvxpy.quad_form(x, cvxpy.psd_wrap(P)) + "
        rows = []
        for image, a, b, low, high in (
            ("A[{}] @ x", p.lower, p.upper, "lower", "upper"),
            ("x[{}]", p.low, p.high, "low", "high"),
        ):
            for used, side, relation in (
                (np.isfinite(a) & (a == b), high, "=="),
                (np.isfinite(b) & (a != b), high, "<="),
                (np.isfinite(a) & (a != b), low, ">="),
            ):
                if used.any():
                    index = np.flatnonzero(used).tolist()
                    rows.append(f"{image.format(index)} {relation} {side}[{index}]")
        rows += ["cvxpy.norm(D @ x - e) <= float(radius)"] if p.D is not None else []
        objective = f"{square}q @ x" if p.q.any() or p.P is not None else "0"
        script.setup = [
            "import cvxpy",
            "import lopro.cvxpy",
            f"x = cvxpy.Variable({p.dim})",
            f"result = cvxpy.Problem(cvxpy.Minimize({objective}), [{', '.join(rows)}])",
        ]
        options = f"tol={self.tol!r}, time_limit={self.limit!r}"
        script.call = f"result.solve(solver=lopro.cvxpy.Lopro(), {options})"
        return script

    def judge(self, outcome: Outcome) -> Verdict:
        try:
            return self._checked(outcome.value)
        except Finding as found:
            return Verdict(Class.WRONG, found.label, found.detail)

    def _checked(self, problem: Any) -> Verdict:
        known, status = self.program.known(), str(problem.status)
        # Where a status is qualified ("infeasible_inaccurate") nothing is claimed.
        status = _STATUSES.get(status, status)
        success = status == "CONVERGED"
        check_status(known, status, success)
        if status in ("INFEASIBLE", "UNBOUNDED"):  # that it is right has been checked
            return Verdict(Class.CERTIFIED, status)
        variables = problem.variables()
        x = variables[0].value if variables else np.zeros(self.program.dim)
        if x is None:
            return Verdict(Class.HONEST, status)
        fun, size = known.value(x), known.size(x)
        certificate = problem.solver_stats.extra_stats
        constant = fun - float(problem.value)
        if math.isfinite(constant) and abs(constant) > 1e-9 * (size + known.typical):
            raise Finding("value misstated", f"{problem.value!r}, the point has {fun!r}")
        if certificate is not None and certificate.radius == math.inf:
            check_bound(known, certificate.lower_bound, size)
        if success:
            if known.excess(x) > SLACK * 1e-9:
                raise Finding("infeasible success", f"relative violation {known.excess(x):.3g}")
            check_value(known, self.tol, x, fun)
        return Verdict(Class.CERTIFIED if success else Class.HONEST, status)

    def excuse(self, raised: Raised) -> Verdict | None:
        # What CVXPY raises where a solver has no point.
        return Verdict(Class.HONEST, "SolverError") if raised.kind == "SolverError" else None


@dataclass(frozen=True)
class ConicCase(CvxpyCase):
    """The same with a semidefinite cone and a second-order cone."""

    program: Conic  # type: ignore[assignment]
    kind: str = "conic"

    def script(self) -> Script:
        script, n = self._data(), self.program.dim
        value = "q @ x" if self.program.F is None else "q @ x + cvxpy.norm(F @ x - f)"
        script.setup = [
            "import cvxpy",
            "import lopro.cvxpy",
            f"x = cvxpy.Variable({n})",
            f"X = M0 + sum(x[j] * M[j] for j in range({n}))",
            "rows = [X >> 0, cvxpy.norm(D @ x - e) <= g @ x + float(h), A @ x <= b]",
            f"result = cvxpy.Problem(cvxpy.Minimize({value}), rows)",
        ]
        options = f"tol={self.tol!r}, time_limit={self.limit!r}"
        script.call = f"result.solve(solver=lopro.cvxpy.Lopro(), {options})"
        return script


@dataclass(frozen=True)
class ExponentialCase(CvxpyCase):
    """The same with exponentials, logistic losses, entropies or a logarithm of a sum of exponentials."""

    program: Exponential  # type: ignore[assignment]
    kind: str = "exponential"

    def script(self) -> Script:
        script, p = self._data(), self.program
        value = "q @ x" + (f" + {ATOMS[p.atom]}" if p.w.any() else "")
        script.setup = [
            "import cvxpy",
            "import lopro.cvxpy",
            f"x = cvxpy.Variable({p.dim})",
            "rows = [float(cone) * cvxpy.exp(e @ x - float(k)) <= g @ x + float(h), A @ x <= b]",
            f"result = cvxpy.Problem(cvxpy.Minimize({value}), rows)",
        ]
        options = f"tol={self.tol!r}, time_limit={self.limit!r}"
        script.call = f"result.solve(solver=lopro.cvxpy.Lopro(), {options})"
        return script


def _tol(rng: np.random.Generator) -> float:
    return float(rng.choice([1e-3, 1e-6, 1e-6, 1e-8]))


def program_case(seed: int) -> ProgramCase:
    """A planted program by `solve`."""
    rng = np.random.default_rng([11, seed])
    return ProgramCase(draw_program(rng), _tol(rng))


def cvxpy_case(seed: int) -> CvxpyCase:
    """A planted program by CVXPY."""
    rng = np.random.default_rng([12, seed])
    return CvxpyCase(draw_program(rng), _tol(rng))


def conic_case(seed: int) -> ConicCase:
    """A planted program over cones by CVXPY."""
    rng = np.random.default_rng([18, seed])
    return ConicCase(draw_conic(rng), _tol(rng))


def cones_case(seed: int) -> ConicCase:
    """A program over cones without a feasible point, without a least value, or with a norm as its value."""
    rng = np.random.default_rng([19, seed])
    return ConicCase(draw_cones(rng), _tol(rng), kind="cones")


def exponential_case(seed: int) -> ExponentialCase:
    """A program with exponential cones by CVXPY."""
    rng = np.random.default_rng([21, seed])
    return ExponentialCase(draw_exponential(rng), _tol(rng))


def large_case(seed: int) -> ProgramCase:
    """A large degenerate program under a short limit."""
    rng = np.random.default_rng([13, seed])
    limit = float(rng.choice([0.1, 0.3, 1.0]))
    return ProgramCase(transport(rng), 1e-6, limit, kind="large")
