"""The problem ``min |x|_1 s.t. |A x - y| <= sigma`` of NESTA and the level-set method."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import cast

from lopro.constraints import ResidualBall
from lopro.constraints.base import ValidInequality
from lopro.core.arrays import Array, namespace, norm
from lopro.core.deadline import current_deadline
from lopro.errors import MissingCapabilityError
from lopro.linalg.conjugate_gradients import conjugate_gradients
from lopro.linalg.dense import SingularSystem
from lopro.maps import LinearMap, SparseMap
from lopro.objectives import L1Norm
from lopro.problem import Problem
from lopro.projections.residual_ball import adjoint_product

__all__ = ["checked_parts", "parts", "preimage", "scaled_to_dual_ball"]


@dataclass(frozen=True)
class PreimageSettings:
    """Constants of `preimage`."""

    #: Smallest eigenvalue of ``A A^H``, relative to the largest, that enters a multiplier, and relative
    #: squared residual at which conjugate gradients stop. Every multiplier is valid; below 1e-12 the rounding
    #: error of its product exceeds the improvement of the bound.
    smallest_eigenvalue: float = 1e-12
    #: Limit of the iterations of conjugate gradients for a certificate, with two products each.
    cg_iterations: int = 50


SETTINGS = PreimageSettings()


def checked_parts(problem: Problem, method: str, advice: str = "") -> tuple[L1Norm, ResidualBall]:
    """Return objective and constraint; raise unless they are an l1 norm and a residual ball."""
    f, c = problem.objective, problem.constraint
    if not (isinstance(f, L1Norm) and isinstance(c, ResidualBall) and len(c.shape) == 1):
        raise MissingCapabilityError(
            f"{method} minimises an L1Norm over a ResidualBall, got {f!r} over {c!r}{advice}"
        )
    return f, c


def parts(problem: Problem) -> tuple[L1Norm, ResidualBall]:
    """Return objective and constraint of a checked problem."""
    return cast(L1Norm, problem.objective), cast(ResidualBall, problem.constraint)


def scaled_to_dual_ball(f: L1Norm, inequality: ValidInequality) -> ValidInequality:
    """Return a nonzero inequality with norm G, the largest norm in the dual ball of the l1 norm.

    The certificate scales it down to the boundary of the dual ball.
    """
    G = f.lipschitz()
    assert G is not None  # the shape is fixed by the problem
    return inequality.scaled(G.value / norm(inequality.direction))


def preimage(c: ResidualBall, step: Array) -> tuple[Array, float]:
    """Return ``q`` with ``A^H q`` near the step, and an estimate of the norm of A.

    Every ``q`` is a valid multiplier, so ``q`` need not be exact. Directions of small singular values are
    omitted: a shorter ``q`` has a smaller rounding error in ``A^H q``.
    """
    A, image = c.A, c.A.forward(step)
    if not A.explicit or isinstance(A, SparseMap) or c.tight_frame is not None:
        return _preimage_by_products(A, image)
    s, U = A.left_spectrum
    if s.shape[0] == 0:
        return 0.0 * image, 0.0
    kept = namespace(s).nonzero(s > SETTINGS.smallest_eigenvalue * s[-1])[0]
    U, s = namespace(U).take(U, kept, axis=1), namespace(s).take(s, kept)
    return U @ (adjoint_product(U, image) / s), A.singular_range[0]


def _preimage_by_products(A: LinearMap, image: Array) -> tuple[Array, float]:
    """Return ``q`` with ``A A^H q`` near the image by conjugate gradients, and an estimate of ``|A|``."""
    size = 0.0

    def product(p: Array) -> Array:
        nonlocal size
        pulled = A.adjoint(p)
        size = max(size, norm(pulled) / norm(p))
        return A.forward(pulled)

    accuracy, most = math.sqrt(SETTINGS.smallest_eigenvalue), SETTINGS.cg_iterations
    try:
        q, _ = conjugate_gradients(
            product, image, accuracy, None, most, lambda: current_deadline().passed
        )
    except SingularSystem:
        q = 0.0 * image
    return q, size
