"""Results of basis pursuit denoising and the LASSO, and of their paths."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

from lopro.basis_pursuit.penalised import FitMultiplier, PenalisedProblem
from lopro.basis_pursuit.problem import SparseProblem
from lopro.basis_pursuit.recognition import sparse_form
from lopro.core.arrays import Array, eps, namespace, norm, to_numpy
from lopro.core.optional import needing
from lopro.driver.printing import in_html
from lopro.driver.result import Result
from lopro.problem import Problem

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["BPDNResult", "LassoPath", "LassoResult", "ParetoCurve", "fields_of", "from_largest"]

T = TypeVar("T", bound="BPDNResult")


def fields_of(result: Result) -> dict[str, Any]:
    """Return the fields of a result, to construct one with further fields."""
    return {f.name: getattr(result, f.name) for f in dataclasses.fields(result)}


@dataclass(frozen=True, repr=False)
class BPDNResult(Result):
    """A `Result` with the dual solution.

    ``dual`` is the multiplier ``nu`` of ``A x = y - r`` scaled to ``|A^H nu|_i <= w_i``; its value
    ``Re <y, nu> - sigma |nu|`` is a lower bound of the optimum, that of the certificate up to rounding. None
    where the certificate has another proof.
    """

    dual: Array | None = None

    @property
    def support(self) -> Array:
        """Indices of the nonzeros of ``x``; of its rows that are not zero, where it has several columns."""
        xp = namespace(self.x)
        return xp.nonzero(self.x if self.x.ndim == 1 else xp.any(self.x != 0.0, axis=1))[0]

    @staticmethod
    def of(result: Result, problem: Problem) -> BPDNResult:
        """Add the dual point of the multiplier of a result."""
        sparse = SparseProblem.of(problem, result.x)
        dual = sparse.dual_point(result.multiplier)
        if dual is not None:
            bound = result.certificate.lower_bound
            proved = -sparse.ball.support_image((-dual,))
            # The point was rounded to the precision of the data after its value was computed.
            rounding = 8.0 * eps(dual) * norm(sparse.ball.y) * norm(dual)
            # Where it proves less, the bound has used a radius as well.
            if proved < bound - 1e-12 * abs(bound) - rounding:
                dual = None
        return BPDNResult(**fields_of(result), dual=dual)


@dataclass(frozen=True, repr=False)
class LassoResult(BPDNResult):
    """A `Result` of `lopro.lasso`: ``fun`` is the penalised objective, or with ``tau`` the residual.

    ``dual`` is ``nu``, in all forms the residual over the weight ``lam`` of the penalty:
    ``|A^H nu|_i <= w_i`` (without a ridge). With ``tau``, ``(Re <y, nu> - tau) / |nu|`` is the lower bound,
    and ``curve`` has the computed points of the Pareto curve as pairs of residual and norm.
    """

    curve: tuple[tuple[float, float], ...] = ()

    @staticmethod
    def of(result: Result, problem: Problem) -> LassoResult:
        """Add the dual point of the multiplier of a result."""
        form, found = sparse_form(problem), result.multiplier
        assert isinstance(form, PenalisedProblem)
        dual = found.fit / form.lam if isinstance(found, FitMultiplier) else None
        return LassoResult(**fields_of(result), dual=dual)


class LassoPath(list[T]):
    """Results for several weights of the penalty, in the order of the weights.

    Parameters
    ----------
    results : sequence of LassoResult or LogisticResult
        One for each weight.
    lams : sequence of float
        The weights.

    Examples
    --------
    >>> import numpy as np, lopro
    >>> path = lopro.lasso_path(np.eye(2), np.array([3.0, 4.0]), [4.0, 1.0])
    >>> path.lams, path.coefficients.round(6) + 0.0
    ((4.0, 1.0), array([[0., 0.],
           [2., 3.]]))
    """

    def __init__(self, results: Sequence[T], lams: Sequence[float]) -> None:
        super().__init__(results)
        self.lams = tuple(float(lam) for lam in lams)

    @property
    def coefficients(self) -> np.ndarray[tuple[int, int], np.dtype[np.float64]]:
        """The solutions, one in each row, on the host."""
        return np.stack([to_numpy(result.x) for result in self])


class ParetoCurve(list[BPDNResult]):
    """Results for several radii, in the order of the radii, with the points of the Pareto curve.

    The least norm ``v(sigma)`` is convex and decreasing, with the slope ``-|nu|`` for the dual solution
    ``nu`` at ``sigma``: each result bounds the whole curve from below by a tangent.

    Parameters
    ----------
    results : sequence of BPDNResult
        One for each radius.
    radii : sequence of float
        The radii.

    Examples
    --------
    >>> import numpy as np, lopro
    >>> path = lopro.bpdn_path(np.eye(2), np.array([3.0, 4.0]), [5.0, 0.0])
    >>> path.radii, path.norms.round(6) + 0.0
    ((5.0, 0.0), array([0., 7.]))
    """

    def __init__(self, results: Sequence[BPDNResult], radii: Sequence[float]) -> None:
        super().__init__(results)
        self.radii = tuple(float(radius) for radius in radii)

    def __repr__(self) -> str:
        certified = sum(result.success for result in self)
        return f"ParetoCurve({len(self)} radii, {certified} certified)"

    def _repr_html_(self) -> str:
        """Return a table for notebooks, one row for each radius."""
        rows = [
            [f"{s:.6g}", f"{r.fun:.10g}", f"{r.certificate.relative_gap:.3g}", r.status.name]
            for s, r in zip(self.radii, self, strict=True)
        ]
        heads = ["radius", "least norm", "relative gap", "status"]
        return in_html([["th"] * 4, ["td"] * 4], [heads, *rows])

    @property
    def norms(self) -> np.ndarray[tuple[int], np.dtype[np.float64]]:
        """The least norm for each radius."""
        return np.array([float(result.fun) for result in self])

    @property
    def slopes(self) -> np.ndarray[tuple[int], np.dtype[np.float64]]:
        """The slope of the curve at each radius; NaN where there is no dual solution."""
        return np.array([math.nan if r.dual is None else -norm(r.dual) for r in self])

    def plot(self, ax: Axes | None = None) -> Axes:
        """Draw the norms against the radii, with a piece of each tangent; needs matplotlib."""
        if ax is None:
            with needing("plot", "matplotlib", "lopro[plot]"):
                import matplotlib.pyplot as plt

            _, ax = plt.subplots(figsize=(6.0, 4.0), layout="constrained")
        order = np.argsort(self.radii)
        radii, norms, slopes = np.asarray(self.radii)[order], self.norms[order], self.slopes[order]
        ax.plot(radii, norms, "o-", ms=4, label="least norm")
        reach = 0.05 * float(np.ptp(radii))
        for radius, value, slope in zip(radii, norms, slopes, strict=True):
            if math.isfinite(slope) and reach > 0.0:
                ends = np.array([radius - reach, radius + reach])
                ax.plot(ends, value + slope * (ends - radius), "-", color="0.6", lw=1.0)
        ax.set(xlabel="radius of the residual ball", ylabel="least norm")
        ax.grid(alpha=0.3)
        return ax


def from_largest(
    values: Sequence[float],
    solve: Callable[[int, Array | None], T],
    start: Array | None = None,
    point: Callable[[T], Array] = lambda result: result.x,
) -> list[T]:
    """Solve from the largest value down, each from the last proved solution; results in the given order."""
    results: dict[int, T] = {}
    for i in sorted(range(len(values)), key=lambda i: -values[i]):
        results[i] = solve(i, start)
        if results[i].success:
            start = point(results[i])
    return [results[i] for i in range(len(values))]
