"""Quadratic programs of one shape, stacked: what one batched method solves together."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
from array_api_compat import device

from lopro.core.arrays import Array, asarray_like, is_array, is_complex, isfinite, namespace
from lopro.errors import MissingCapabilityError

__all__ = ["QuadraticPrograms", "Square", "double", "taken", "times"]


@dataclass(frozen=True, eq=False)
class Square:
    """``1/2 s |D x - b|^2`` of each problem; ``D`` is the identity where it is None."""

    D: Array | None
    b: Array | None
    scale: Array


@dataclass(frozen=True, eq=False)
class QuadraticPrograms:
    """Problems ``min 1/2 x'Px + q'x  s.t.  lower <= A x <= upper, least <= x <= most``, stacked.

    All arrays have the number of problems as their first axis; they are of one library and on one device,
    where `lopro.solve_many` solves the problems. What is not given is zero, or no bound.

    Parameters
    ----------
    q : array of shape (problems, n)
        The linear part.
    P : array of shape (problems, n, n), optional
        Symmetric and positive semidefinite.
    A : array of shape (problems, m, n), optional
        The rows.
    lower, upper : array of shape (problems, m), optional
        Infinite where there is no bound; a row is an equation where both agree, in all problems alike.
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
    #: Further terms of the objectives; least-squares problems are proved from their own data.
    squares: tuple[Square, ...] = field(default=(), repr=False)
    #: Added to the values.
    constant: Array | None = field(default=None, repr=False)
    #: What gaps are relative to at least, where users have said so: 0 elsewhere.
    gap_scale: Array | None = field(default=None, repr=False)
    checked: bool = field(default=False, repr=False)

    def __post_init__(self) -> None:
        if not self.checked:
            _check(self)

    def __len__(self) -> int:
        return int(self.q.shape[0])

    @property
    def size(self) -> int:
        """The number of variables."""
        return int(self.q.shape[1])

    @property
    def like(self) -> Array:
        """An array of the library, dtype and device of the data."""
        return self.q

    @property
    def box(self) -> tuple[Array, Array] | None:
        """The bounds of the variables, filled in; None where there are none."""
        if self.least is None and self.most is None:
            return None
        return _sides(self.least, self.most)

    @property
    def sides(self) -> tuple[Array, Array]:
        """The bounds of the rows, filled in."""
        return _sides(self.lower, self.upper)

    @cached_property
    def equations(self) -> np.ndarray[Any, Any]:
        """Which rows are equations, on the host."""
        if self.A is None or self.lower is None or self.upper is None:
            return np.zeros(0 if self.A is None else self.A.shape[1], dtype=bool)
        xp = namespace(self.q)
        alike = xp.astype(self.lower == self.upper, self.q.dtype)
        found = [[float(n) for n in reduce(alike, axis=0)] for reduce in (xp.min, xp.max)]
        if found[0] != found[1]:
            raise ValueError("a row must be an equation in all of the problems, or in none")
        return np.array(found[0]) > 0.0

    def total(self) -> tuple[Array, Array, Array]:
        """Return ``P``, ``q`` and the constants of the objectives with all squares multiplied out."""
        xp, n = namespace(self.q), self.size
        kind = {"dtype": self.q.dtype, "device": device(self.q)}
        P = xp.zeros((len(self), n, n), **kind) if self.P is None else self.P
        q = self.q
        constant = xp.zeros(len(self), **kind) if self.constant is None else self.constant
        for term in self.squares:
            s = term.scale
            if term.D is None:
                P = P + s[:, None, None] * xp.eye(n, **kind)
            else:
                P = P + s[:, None, None] * (xp.matrix_transpose(term.D) @ term.D)
            if term.b is not None:
                back = term.b if term.D is None else times(xp.matrix_transpose(term.D), term.b)
                q = q - s[:, None] * back
                constant = constant + 0.5 * s * xp.sum(term.b * term.b, axis=-1)
        return P, q, constant


def times(M: Array, x: Array) -> Array:
    """Return the product of matrix and vector of each problem."""
    return (M @ x[..., None])[..., 0]


def taken(data: Any, index: Array | slice) -> Any:
    """Return the same dataclass for some of the problems; arrays have the problems as their first axis."""
    if dataclasses.is_dataclass(data):
        names = [f.name for f in dataclasses.fields(data) if f.init]
        found = {name: taken(getattr(data, name), index) for name in names}
        if "checked" in found:
            found["checked"] = True
        return dataclasses.replace(data, **found)  # type: ignore[type-var]
    if isinstance(data, tuple):
        return tuple(taken(each, index) for each in data)
    if is_array(data) and (isinstance(data, np.ndarray) or isinstance(index, slice)):
        return data[index, ...]
    return namespace(data).take(data, index, axis=0) if is_array(data) else data


def double(x: Array) -> Array:
    """Return an array in double precision; a library without it is refused."""
    xp = namespace(x)
    found = x if x.dtype == xp.float64 else xp.astype(x, xp.float64)
    if found.dtype != xp.float64:
        raise MissingCapabilityError(
            'batches need double precision: call jax.config.update("jax_enable_x64", True) before '
            "making arrays, or solve one by one with lopro.solve"
        )
    return found


def _sides(lower: Array | None, upper: Array | None) -> tuple[Array, Array]:
    like = lower if lower is not None else upper
    assert like is not None
    xp = namespace(like)
    none = xp.full_like(like, float("inf"))
    return (-none if lower is None else lower), (none if upper is None else upper)


def _check(programs: QuadraticPrograms) -> None:
    """Check the arrays of a user: shapes, numbers, order of the sides, convexity."""
    q = programs.q
    if not is_array(q) or q.ndim != 2 or 0 in q.shape:
        raise ValueError("q must be an array of shape (problems, n)")
    count, n = q.shape
    m = 0 if programs.A is None else programs.A.shape[1]
    shapes = {
        "P": (count, n, n), "A": (count, m, n), "lower": (count, m), "upper": (count, m),
        "least": (count, n), "most": (count, n),
    }  # fmt: skip
    for name, shape in {"q": (count, n), **shapes}.items():
        found = getattr(programs, name)
        if found is None:
            continue
        if tuple(found.shape) != shape:
            raise ValueError(f"{name} must have the shape {shape}, got {tuple(found.shape)}")
        if is_complex(found):
            raise TypeError(f"{name} must be real, got dtype {found.dtype}")
        if name in ("q", "P", "A") and not isfinite(found):
            raise ValueError(f"{name} must be finite, but it contains NaN or inf")
    if (programs.lower is None and programs.upper is None) != (programs.A is None):
        raise ValueError("A must be given together with lower, upper or both")
    for low, high, names in (
        (programs.lower, programs.upper, "lower must not exceed upper"),
        (programs.least, programs.most, "least must not exceed most"),
    ):
        if low is not None or high is not None:
            _check_order(*_sides(low, high), names)
    if programs.P is not None:
        _check_convex(programs.P)


def _check_order(low: Array, high: Array, said: str) -> None:
    xp = namespace(low)
    ordered = (low <= high) & (low < float("inf")) & (high > -float("inf"))
    if not bool(xp.all(ordered)):
        raise ValueError(f"{said}, and neither may hold NaN, in any of the problems")


def _check_convex(P: Array) -> None:
    """Refuse matrices that are not symmetric, or indefinite beyond rounding, by Cholesky's factorisation."""
    xp, n = namespace(P), P.shape[-1]
    size = xp.max(xp.max(abs(P), axis=-1), axis=-1)
    eps = float(xp.finfo(P.dtype).eps)
    skew = xp.max(xp.max(abs(P - xp.matrix_transpose(P)), axis=-1), axis=-1)
    if bool(xp.any(skew > 100.0 * eps * size)):
        raise ValueError("P must be symmetric in all of the problems")
    # Cholesky's factorisation ends for P + d I if d is above n^2 eps |P| (Higham, Theorem 10.7) and P is
    # positive semidefinite.
    shift = 4.0 * n * n * eps * size + float(xp.finfo(P.dtype).smallest_normal)
    eye = asarray_like(np.eye(n), P)
    try:
        definite = isfinite(xp.linalg.cholesky(P + shift[:, None, None] * eye))
    except (np.linalg.LinAlgError, RuntimeError):  # PyTorch's error is a RuntimeError
        definite = False
    if not definite:
        raise ValueError("P must be positive semidefinite in all of the problems")
