"""SciPy's L-BFGS-B as an inner algorithm.

Theorem 1 holds for every inner algorithm that decreases ``F``; this adapter is an example of one.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy  # parts of it load when first used

from lopro.core.arrays import Array, asarray_like, is_complex, to_numpy
from lopro.core.validation import check_count
from lopro.errors import MissingCapabilityError
from lopro.penalties.penalised import Penalised

__all__ = ["LBFGSB"]


@dataclass(frozen=True)
class LBFGSB:
    """Limited-memory BFGS from SciPy, for smooth ``f`` and a smooth penalty.

    One step is one call of SciPy with up to ``iterations`` L-BFGS iterations, a limit; it ends earlier at a
    gradient of 1e-12.

    Examples
    --------
    >>> import numpy as np, lopro
    >>> from lopro.methods.inner import LBFGSB
    >>> f = lopro.objectives.SquaredDistance(np.array([2.0, 0.0]))
    >>> ball = lopro.constraints.ResidualBall(np.eye(2), np.zeros(2), 1.0)
    >>> method = lopro.OneProjection(LBFGSB(), lopro.penalties.Softplus(3.0, 1e-4), iterations=1)
    >>> lopro.solve(lopro.Problem(f, ball), method=method).x.round(3)
    array([1., 0.])
    """

    iterations: int = 500

    def __post_init__(self) -> None:
        check_count("iterations", self.iterations)

    def check(self, problem: Any) -> None:
        smooth, proximable = problem.objective.split()
        if smooth is None or proximable is not None:
            raise MissingCapabilityError(
                f"LBFGSB needs a smooth objective; {type(problem.objective).__name__} is not"
            )

    def init(self, F: Penalised, x: Array, rng: np.random.Generator) -> Array:
        if is_complex(x):
            raise TypeError("LBFGSB works on real points, got a complex start")
        return x

    def step(self, F: Penalised, state: Array) -> Array:
        shape = tuple(state.shape)

        def value_and_gradient(flat: np.ndarray[Any, Any]) -> tuple[float, np.ndarray[Any, Any]]:
            value, gradient = F.linearize_at(F.image(asarray_like(flat.reshape(shape), state)))
            return value, to_numpy(gradient()).astype(np.float64).ravel()

        start = to_numpy(state).astype(np.float64).ravel()
        options = {"maxiter": self.iterations, "ftol": 0.0, "gtol": 1e-12}
        found = scipy.optimize.minimize(
            value_and_gradient, start, jac=True, method="L-BFGS-B", options=options
        )
        return asarray_like(found.x.reshape(shape), state)

    def output(self, state: Array) -> Array:
        return state

    def bound(self, state: Array, distance: float) -> float | None:
        return None
