"""What basis pursuit denoising gives back: a result with the dual solution that proves its bound."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from lopro._arrays import Array, equal, namespace
from lopro.certificates import Certificate
from lopro.driver import solve
from lopro.epochs import Epoch, Scheme, Workbench
from lopro.oracles import ledger
from lopro.problem import Problem
from lopro.result import Result
from lopro.schemes.sparse_problem import DualNormal, SparseProblem

__all__ = ["BPDNResult", "solve_with_dual"]


@dataclass(frozen=True)
class BPDNResult(Result):
    """A `Result` with the dual solution.

    ``dual`` is the multiplier ``nu`` of ``A x = y - r`` scaled to ``|A^H nu|_i <= w_i``; its value
    ``Re <y, nu> - sigma |nu|`` is a lower bound of the optimum. Where a method made for this problem
    found it (`WorkingSet`, `MatrixFree`) it is the bound of the certificate, up to rounding; with others
    it comes from the residual at the end and may prove less. ``relative_gap`` is
    ``gap / fun``.
    """

    dual: Array | None = None

    @property
    def support(self) -> Array:
        """Indices of the nonzeros of ``x``."""
        return namespace(self.x).nonzero(self.x)[0]


def solve_with_dual(
    problem: Problem, x0: Array | None, method: Scheme, **options: Any
) -> BPDNResult:
    """Solve, and return the dual point that the certificate rests on along with the result."""
    listener = _Listener(method)
    result = solve(problem, x0, listener, **options)
    fields = {f.name: getattr(result, f.name) for f in dataclasses.fields(result)}
    sparse = SparseProblem.of(problem, result.x)
    bound = result.certificate.lower_bound
    if listener.normal is not None and -listener.normal.support >= bound - 1e-12 * abs(bound):
        return BPDNResult(**fields, dual=listener.normal.dual)
    # Other methods do not name their dual point: it is the residual where they stood, scaled.
    points = [result.x]
    if listener.x_hat is not None and not equal(listener.x_hat, result.x):
        points.append(listener.x_hat)
    with ledger(result.certificate_counts):
        found = [_dual_at(sparse, x) for x in points]
    value, dual = max(found, key=lambda pair: pair[0])
    if value > bound:
        source = "Fenchel dual at the residual of x"
        violation = result.certificate.violation
        fields["certificate"] = Certificate.of(result.fun, value, violation, source, 0.0)
    return BPDNResult(**fields, dual=dual)


def _dual_at(sparse: SparseProblem, x: Array) -> tuple[float, Array]:
    """Return the dual point that the residual at ``x`` gives, after the value it proves."""
    residual = sparse.ball.y - sparse.ball.A.forward(x)
    gauge = sparse.gauge(sparse.ball.A.adjoint(residual))
    dual = residual / gauge if gauge > 0.0 else 0.0 * residual
    return sparse.dual_value(dual, sparse.ball.y), dual


class _Listener:
    """A scheme that does what another one does, and keeps the best dual point it mentions."""

    def __init__(self, method: Scheme) -> None:
        self._method = method
        self.normal: DualNormal | None = None
        self.x_hat: Array | None = None

    def __repr__(self) -> str:
        return repr(self._method)

    def check(self, problem: Problem) -> None:
        self._method.check(problem)

    def epochs(self, bench: Workbench, x0: Array) -> Iterator[Epoch]:
        for epoch in self._method.epochs(bench, x0):
            self.x_hat = epoch.x_hat
            normal = epoch.normal
            if isinstance(normal, DualNormal) and (
                self.normal is None or normal.support < self.normal.support
            ):
                self.normal = normal
            yield epoch
