"""What basis pursuit denoising returns: a point with its dual solution, and a curve of such points."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from lopro.basis_pursuit.penalised import FitMultiplier, PenalisedProblem, sparse_form
from lopro.basis_pursuit.problem import SparseProblem
from lopro.core.arrays import Array, eps, namespace, norm, to_numpy
from lopro.core.optional import needing
from lopro.driver.result import Result
from lopro.problem import Problem

if TYPE_CHECKING:
    from matplotlib.axes import Axes


__all__ = ["BPDNResult", "LassoPath", "LassoResult", "ParetoCurve"]


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
        """Add the dual point that the multiplier of a result stands for."""
        fields = {f.name: getattr(result, f.name) for f in dataclasses.fields(result)}
        sparse = SparseProblem.of(problem, result.x)
        dual = sparse.dual_point(result.multiplier)
        if dual is not None:
            bound = result.certificate.lower_bound
            proved = -sparse.ball.support_image((-dual,))
            # The point was rounded to the precision of the data after its value had been taken.
            rounding = 8.0 * eps(dual) * norm(sparse.ball.y) * norm(dual)
            # Where it proves less, the bound rests on a radius as well.
            if proved < bound - 1e-12 * abs(bound) - rounding:
                dual = None
        return BPDNResult(**fields, dual=dual)


@dataclass(frozen=True, repr=False)
class LassoResult(BPDNResult):
    """A `Result` of `lopro.lasso`: ``fun`` is the penalised objective, or with ``tau`` the residual.

    ``dual`` is ``nu``, in all forms the residual over the weight ``lam`` of the penalty:
    ``|A^H nu|_i <= w_i`` (without a ridge). With ``tau``, ``(Re <y, nu> - tau) / |nu|`` is the lower bound,
    and ``curve`` has the points of the Pareto curve that were computed on the way, as pairs of residual and
    norm.
    """

    curve: tuple[tuple[float, float], ...] = ()

    @staticmethod
    def of(result: Result, problem: Problem) -> LassoResult:
        """Add the dual point that the multiplier of a result stands for."""
        fields = {f.name: getattr(result, f.name) for f in dataclasses.fields(result)}
        form, found = sparse_form(problem), result.multiplier
        assert isinstance(form, PenalisedProblem)
        dual = found.fit / form.lam if isinstance(found, FitMultiplier) else None
        return LassoResult(**fields, dual=dual)


class LassoPath(list[LassoResult]):
    """Results for several weights of the penalty, in the order of these.

    Parameters
    ----------
    results : sequence of LassoResult
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

    def __init__(self, results: Sequence[LassoResult], lams: Sequence[float]) -> None:
        super().__init__(results)
        self.lams = tuple(float(lam) for lam in lams)

    @property
    def coefficients(self) -> np.ndarray[tuple[int, int], np.dtype[np.float64]]:
        """The solutions, one in each row, on the host."""
        return np.stack([to_numpy(result.x) for result in self])


class ParetoCurve(list[BPDNResult]):
    """Results for several radii, in the order of these: a list with what it says of the curve.

    Where ``v(sigma)`` is the least norm, ``v`` is convex and falls, and ``-|nu|`` is its slope, with the dual
    solution ``nu`` at ``sigma``: each result bounds the whole curve from below by a tangent.

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

    @property
    def norms(self) -> np.ndarray[tuple[int], np.dtype[np.float64]]:
        """The least norm for each radius."""
        return np.array([float(result.fun) for result in self])

    @property
    def slopes(self) -> np.ndarray[tuple[int], np.dtype[np.float64]]:
        """The slope of the curve at each radius; not a number where there is no dual solution."""
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
