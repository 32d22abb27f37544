"""What the dual of the nearest correlation matrix proves, with the rounding of its evaluation."""

from __future__ import annotations

import math

import numpy as np

from lopro.certificates.rounding import Estimate, dot, gamma
from lopro.newton.arrays import EPS, Array, norm
from lopro.newton.correlation.dual_newton import DualPoint
from lopro.newton.correlation.problem import Target

__all__ = ["excluded", "lower_bound", "violation_charge"]


def lower_bound(target: Target, point: DualPoint) -> float:
    """Return ``b'y - <U, T> - |U|^2 / 2``, ``U = A*y + S``, less its rounding.

    It bounds ``1/2 |Z - T|^2`` over all feasible Z for every y and every positive semidefinite S. Here S is
    ``F F'`` for the floating-point F of the negative eigenvalues: positive semidefinite by its form, however
    accurate the eigenvectors are. What rounding does to the product is charged.
    """
    values, vectors = point.spectrum.negative
    F = vectors * np.sqrt(np.maximum(values, 0.0))
    S = F @ F.T
    lost = gamma(F.shape[1] + 1) * float(np.einsum("ij,ij->", F, F)) * 1.01
    U = target.rows.add_adjoint(point.y, S)
    flat, T = U.ravel(), target.T.ravel()
    lost += EPS * norm(flat)
    value = dot(target.b, point.y) - dot(flat, T) - dot(flat, flat) * 0.5
    size_T, size_U = norm(T) * (1.0 + 1e-10), norm(flat) * (1.0 + 1e-10)
    charge = lost * (size_T + size_U + lost)
    # T and b are themselves rounded products of weights and entries.
    charge += 4.0 * EPS * (size_T * size_U + float(np.abs(target.b) @ np.abs(point.y)))
    return (value - Estimate(charge * (1.0 + 1e-10))).lower()


def violation_charge(target: Target, point: DualPoint) -> float:
    """Return what a least eigenvalue that is too small by 1 may gain, in the value: ``<S, W>``.

    ``1/2 |Z - T|^2`` is at least the bound of the multipliers plus ``<S, Z>``, and Z is then above ``-W``.
    """
    values, vectors = point.spectrum.negative
    diagonal = (vectors * vectors) @ np.maximum(values, 0.0)
    return float(diagonal @ target.roots**2) * (1.0 + 1e-10)


def excluded(target: Target, y: Array) -> bool:
    """Whether the direction of ``y`` proves that no matrix satisfies the rows.

    For feasible Z, ``b'd = <A*d, Z> <= rho trace Z`` with rho the largest eigenvalue of ``A*d``, if that is
    positive, and the trace is known: a larger ``b'd`` is a contradiction.
    """
    length = norm(y)
    if not (math.isfinite(length) and length > 0.0):
        return False
    d = y / length
    n = target.rows.size
    M = target.rows.add_adjoint(d, np.zeros((n, n)))
    largest = float(np.linalg.eigvalsh(M)[-1])
    rho = max(largest, 0.0) + 8.0 * n * EPS * norm(M.ravel())
    gain = dot(target.b, d).lower()
    return gain > rho * float(target.b[:n].sum()) * (1.0 + 1e-10)
