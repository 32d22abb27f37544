"""Objectives as parts of a conic program: one function for each type of objective."""

from __future__ import annotations

from functools import singledispatch
from typing import Any

import numpy as np
import scipy  # parts of it load when first used

from lopro.cones.cones import Exponentials, Nonnegative, SecondOrders, Zero
from lopro.conic_forms.sets import real_matrix, real_vector
from lopro.core.arrays import Array, is_complex
from lopro.core.real_vectors import Vector, to_real_vector
from lopro.engines import ConicProgram
from lopro.errors import MissingCapabilityError
from lopro.objectives import (
    GroupNorm,
    L1Norm,
    LeastSquares,
    Linear,
    Logistic,
    Objective,
    Quadratic,
    Scaled,
    SquaredDistance,
    Sum,
)

__all__ = ["add_half_square", "add_objective"]


@singledispatch
def add_objective(f: Objective, program: ConicProgram, factor: float, zero: Array) -> None:
    """Add ``factor`` times an objective to a conic program; what is constant goes to ``program.constant``.

    Register a function for a type of your own with ``add_objective.register``.

    Parameters
    ----------
    f : Objective
        What is added.
    program : ConicProgram
        Where it is added.
    factor : float
        Nonnegative.
    zero : array
        The origin, of the shape, library and dtype of the points.

    Examples
    --------
    >>> import numpy as np
    >>> from lopro.conic_forms import ConicProgram, add_objective
    >>> from lopro.objectives import L1Norm, SquaredDistance
    >>> program, zero = ConicProgram(2), np.zeros(2)
    >>> add_objective(SquaredDistance(np.array([3.0, 0.5])) + L1Norm(), program, 1.0, zero)
    >>> program.solve(1e-9).x[:2].round(5) + 0.0
    array([2., 0.])
    """
    raise MissingCapabilityError(
        f"the objective {type(f).__name__} has no conic form; lopro.conic_forms.add_objective.register gives "
        "it one, and lopro.Auto() needs none"
    )


@add_objective.register
def _(f: Sum, program: ConicProgram, factor: float, zero: Array) -> None:
    for part in f.parts:
        add_objective(part, program, factor, zero)


@add_objective.register
def _(f: Scaled, program: ConicProgram, factor: float, zero: Array) -> None:
    add_objective(f.f, program, factor * f.factor, zero)


@add_objective.register
def _(f: Linear, program: ConicProgram, factor: float, zero: Array) -> None:
    program.add_linear(factor * to_real_vector(f.subgradient(zero)))


@add_objective.register
def _(f: SquaredDistance, program: ConicProgram, factor: float, zero: Array) -> None:
    program.add_quadratic(factor * scipy.sparse.identity(program.size))
    program.add_linear(factor * to_real_vector(f.subgradient(zero)))
    program.constant += factor * float(f.value(zero))


@add_objective.register
def _(f: Quadratic, program: ConicProgram, factor: float, zero: Array) -> None:
    program.add_quadratic(factor * real_matrix(f.P, is_complex(zero)))
    program.add_linear(factor * to_real_vector(f.subgradient(zero)))
    program.constant += factor * f.constant


@add_objective.register
def _(f: LeastSquares, program: ConicProgram, factor: float, zero: Array) -> None:
    twofold = is_complex(zero)
    # At zero the gradient in the image is -b.
    add_half_square(program, real_matrix(f.A, twofold), real_vector(f.b, twofold), factor)


@add_objective.register
def _(f: L1Norm, program: ConicProgram, factor: float, zero: Array) -> None:
    """Add ``w't`` with ``|x_i| <= t_i``; entries of weight zero need no ``t_i``."""
    weights = to_real_vector(f.weights_like(abs(zero)))
    used = np.flatnonzero(weights)
    if not len(used):
        return
    t = program.new_variables(len(used))
    program.add_linear(factor * weights[used], t)
    read = _selection(used, program.size)
    bound = -scipy.sparse.identity(len(used), format="csr")
    nothing = np.zeros(len(used))
    if not is_complex(zero):
        program.add_rows(nothing, Nonnegative(len(used)), (read, 0), (bound, t))
        program.add_rows(nothing, Nonnegative(len(used)), (-read, 0), (bound, t))
        return
    imaginary = _selection(used + len(weights), program.size)
    program.add_rows(
        np.zeros(3 * len(used)),
        SecondOrders(len(used), 3),
        (_every_third(bound, 0), t),
        (_every_third(read, 1) + _every_third(imaginary, 2), 0),
    )


@add_objective.register
def _(f: GroupNorm, program: ConicProgram, factor: float, zero: Array) -> None:
    """Add the sum of ``t_g`` with ``|(Dx)_g| <= t_g``."""
    D = scipy.sparse.csr_array(real_matrix(f.D, False))
    t = program.new_variables(f.groups)
    program.add_linear(np.full(f.groups, factor), t)
    bound = -scipy.sparse.identity(f.groups, format="csr")
    if f.group_size == 1:
        nothing = np.zeros(f.groups)
        program.add_rows(nothing, Nonnegative(f.groups), (D, 0), (bound, t))
        program.add_rows(nothing, Nonnegative(f.groups), (-D, 0), (bound, t))
        return
    # Each cone holds t_g and the rows of its group.
    size = f.group_size + 1
    rows = np.arange(f.groups * size).reshape(f.groups, size)
    spread = _placed(D, rows[:, 1:].ravel(), f.groups * size)
    tops = _placed(bound, rows[:, 0], f.groups * size)
    nothing = np.zeros(f.groups * size)
    program.add_rows(nothing, SecondOrders(f.groups, size), (tops, t), (-spread, 0))


@add_objective.register
def _(f: Logistic, program: ConicProgram, factor: float, zero: Array) -> None:
    """Add the mean of ``t_i >= log(1 + exp(u_i))``, ``u_i = -y_i x_i'w``, by two exponential cones.

    ``exp(u - t) <= p``, ``exp(-t) <= q`` and ``p + q <= 1``.
    """
    X, y = real_matrix(f.X, False), to_real_vector(f.labels)
    n = len(y)
    t, p, q = (program.new_variables(n) for _ in range(3))
    program.add_linear(np.full(n, factor / n), t)
    if f.l2 > 0.0:
        program.add_quadratic(factor * f.l2 * scipy.sparse.identity(program.size))
    one = scipy.sparse.identity(n, format="csr")
    program.add_rows(np.ones(n), Nonnegative(n), (one, p), (one, q))
    u = scipy.sparse.csr_matrix(
        -y[:, None] * X if isinstance(X, np.ndarray) else X.multiply(-y[:, None])
    )
    middle = np.tile([0.0, 1.0, 0.0], n)
    for value, limit in ((((-_every_third(u, 0)), 0), p), (None, q)):
        pieces = [(_every_third(one, 0), t), (-_every_third(one, 2), limit)]
        program.add_rows(middle, Exponentials(n), *pieces, *([value] if value else []))


def add_half_square(program: ConicProgram, A: Any, b: Vector, factor: float) -> None:
    """Add ``factor / 2 |A z - b|^2``.

    A wide matrix is kept and its residual becomes a variable, which loses no digits; of a tall one
    the small matrix ``A'A`` is enough.

    Examples
    --------
    >>> import numpy as np
    >>> from lopro.conic_forms import ConicProgram, add_half_square
    >>> program = ConicProgram(1)
    >>> add_half_square(program, np.array([[2.0]]), np.array([3.0]), 1.0)
    >>> program.solve(1e-9).x[:1].round(6)
    array([1.5])
    """
    m, n = A.shape
    if m > 4 * n:
        program.add_quadratic(factor * (A.T @ A))
        program.add_linear(-factor * (A.T @ b))
        program.constant += 0.5 * factor * float(b @ b)
        return
    r = program.new_variables(m)
    identity = scipy.sparse.identity(m)
    program.add_quadratic(factor * identity, r)
    program.add_rows(b, Zero(m), (A, 0), (-identity, r))


def _selection(indices: Any, size: int) -> Any:
    """Return the rows that read these entries."""
    count = len(indices)
    return scipy.sparse.csr_matrix((np.ones(count), (np.arange(count), indices)), (count, size))


def _placed(rows: Any, places: Any, count: int) -> Any:
    """Return ``count`` rows, these at their places and zeros elsewhere."""
    entries = scipy.sparse.coo_array(rows)
    i, j = entries.coords
    return scipy.sparse.csr_matrix((entries.data, (places[i], j)), (count, rows.shape[1]))


def _every_third(rows: Any, offset: int) -> Any:
    """Return three rows for each: the row itself at this offset, zeros elsewhere."""
    entries = scipy.sparse.coo_array(rows)
    i, j = entries.coords
    shape = (3 * rows.shape[0], rows.shape[1])
    return scipy.sparse.csr_matrix((entries.data, (3 * i + offset, j)), shape)
