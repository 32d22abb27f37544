"""Stacked quadratic programs of one shape, as users pass them in arrays."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from lopro import objectives
from lopro.certificates.batched_programs import Programs
from lopro.constraints import Affine, Constraint, Intersection, Polyhedron
from lopro.core.arrays import Array, asarray_like, is_array, is_complex, isfinite, namespace, zeros
from lopro.errors import MissingCapabilityError
from lopro.problem import Problem

__all__ = ["QuadraticPrograms", "in_double"]


@dataclass(frozen=True, eq=False)
class QuadraticPrograms:
    """Problems ``min 1/2 x'Px + q'x  s.t.  lower <= A x <= upper, least <= x <= most``, stacked.

    All arrays have the number of problems as their first axis; they are of one library and on one device,
    where `lopro.solve_many` solves the problems. Matrices that are not given are zero, sides infinite.

    Parameters
    ----------
    q : array of shape (problems, n)
        The linear terms.
    P : array of shape (problems, n, n), optional
        Symmetric and positive semidefinite.
    A : array of shape (problems, m, n), optional
        The rows.
    lower, upper : array of shape (problems, m), optional
        Infinite where there is no bound. A row is an equation where both are equal, in all of the problems.
    least, most : array of shape (problems, n), optional
        Bounds of the variables.

    Examples
    --------
    >>> import numpy as np, lopro
    >>> P, q = np.array([[[2.0]], [[4.0]]]), np.array([[-2.0], [-2.0]])
    >>> programs = lopro.QuadraticPrograms(q, P, most=np.array([[0.75], [0.75]]))
    >>> lopro.solve_many(programs).x.round(6)
    array([[0.75],
           [0.5 ]])
    """

    q: Array
    P: Array | None = None
    A: Array | None = None
    lower: Array | None = None
    upper: Array | None = None
    least: Array | None = None
    most: Array | None = None

    def __post_init__(self) -> None:
        q = self.q
        if not is_array(q) or q.ndim != 2 or 0 in q.shape:
            raise ValueError("q must be an array of shape (problems, n)")
        count, n = q.shape
        m = 0 if self.A is None else self.A.shape[1]
        shapes = {
            "q": (count, n), "P": (count, n, n), "A": (count, m, n), "lower": (count, m),
            "upper": (count, m), "least": (count, n), "most": (count, n),
        }  # fmt: skip
        for name, shape in shapes.items():
            found = getattr(self, name)
            if found is None:
                continue
            if tuple(found.shape) != shape:
                raise ValueError(f"{name} must have the shape {shape}, got {tuple(found.shape)}")
            if is_complex(found):
                raise TypeError(f"{name} must be real, got dtype {found.dtype}")
            if name in ("q", "P", "A") and not isfinite(found):
                raise ValueError(f"{name} must be finite, but it contains NaN or inf")
        if (self.lower is None and self.upper is None) != (self.A is None):
            raise ValueError("A must be given together with lower, upper or both")
        _check_order(self.lower, self.upper, "lower must not exceed upper")
        _check_order(self.least, self.most, "least must not exceed most")
        if self.P is not None:
            _check_convex(self.P)

    def __len__(self) -> int:
        return int(self.q.shape[0])

    def subset(self, places: slice) -> Programs:
        """Return some of the programs in double precision, with arrays in place of None."""
        q, A = in_double(self.q[places, ...]), self.A
        count, n = q.shape
        rows = zeros((count, 0, n), q) if A is None else in_double(A[places, ...])
        P = zeros((count, n, n), q) if self.P is None else in_double(self.P[places, ...])
        of_rows, of_box = zeros(rows.shape[:2], q), zeros(q.shape, q)

        def side(given: Array | None, absent: float, like: Array) -> Array:
            return like + absent if given is None else in_double(given[places, ...])

        inf = float("inf")
        return Programs(
            # Exactly symmetric: the gradient is P x.
            q, 0.5 * (P + namespace(P).matrix_transpose(P)), zeros((count,), q), rows,
            side(self.lower, -inf, of_rows), side(self.upper, inf, of_rows),
            side(self.least, -inf, of_box), side(self.most, inf, of_box),
        )  # fmt: skip

    def problem_at(self, place: int) -> Problem:
        """Return one of the programs as a problem."""

        def at(array: Array | None) -> Array | None:
            return None if array is None else array[place, ...]

        q, P, A, least, most = (at(a) for a in (self.q, self.P, self.A, self.least, self.most))
        f = objectives.Linear(q) if P is None else objectives.Quadratic(P, q)
        sets: list[Constraint] = []
        if A is not None:
            lower, upper = at(self.lower), at(self.upper)
            sets.append(
                Affine(
                    A,
                    -float("inf") if lower is None else lower,
                    float("inf") if upper is None else upper,
                )
            )
        if least is not None or most is not None:
            none = zeros(q.shape, q) + float("inf")  # type: ignore[union-attr]
            box = (-none if least is None else least), (none if most is None else most)
            if not bool(namespace(q).all(namespace(q).isinf(box[0] - box[1]))):
                sets.append(Polyhedron.box(*box))
        if len(sets) > 1:
            return Problem(f, Intersection(*sets))
        return Problem(f, sets[0]) if sets else Problem(f)


def in_double(x: Array) -> Array:
    """Convert an array to double precision.

    Raises
    ------
    MissingCapabilityError
        If the library has no double precision, as JAX by default.
    """
    xp = namespace(x)
    found = x if x.dtype == xp.float64 else xp.astype(x, xp.float64)
    if found.dtype != xp.float64:
        raise MissingCapabilityError(
            'batches need double precision: call jax.config.update("jax_enable_x64", True) before '
            "making arrays, or solve one by one with lopro.solve"
        )
    return found


def _check_order(low: Array | None, high: Array | None, message: str) -> None:
    ordered = [
        *([] if low is None else [low < float("inf")]),
        *([] if high is None else [high > -float("inf")]),
        *([] if low is None or high is None else [low <= high]),
    ]
    if not all(bool(namespace(each).all(each)) for each in ordered):
        raise ValueError(f"{message}, and neither may hold NaN, in any of the problems")


def _check_convex(P: Array) -> None:
    """Raise an error for matrices that are not symmetric, or indefinite by more than rounding."""
    xp, n = namespace(P), P.shape[-1]
    size, eps = xp.max(abs(P), axis=(1, 2)), float(xp.finfo(P.dtype).eps)
    skew = xp.max(abs(P - xp.matrix_transpose(P)), axis=(1, 2))
    if bool(xp.any(skew > 100.0 * eps * size)):
        raise ValueError("P must be symmetric in all of the problems")
    # The Cholesky factorisation of P + d I succeeds if P is positive semidefinite and d exceeds n^2 eps |P|
    # (Higham, Accuracy and Stability of Numerical Algorithms, theorem 10.7).
    shift = 4.0 * n * n * eps * size + float(xp.finfo(P.dtype).smallest_normal)
    try:
        shifted = P + shift[:, None, None] * asarray_like(np.eye(n), P)
        definite = isfinite(xp.linalg.cholesky(shifted))
    except (np.linalg.LinAlgError, RuntimeError):  # PyTorch's error is a RuntimeError
        definite = False
    if not definite:
        raise ValueError("P must be positive semidefinite in all of the problems")
