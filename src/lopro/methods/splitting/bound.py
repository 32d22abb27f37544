"""Lower bounds from the multipliers of ADMM.

For any ``v_i``, ``F(x) >= <r, x> - sum_i g_i*(v_i)`` with ``r = sum_i D_i' v_i``. A least-squares step
through all maps reduces r to rounding error; one factor then brings all multipliers into the domains of the
conjugates; the remainder of r is absorbed by bounds of the variables, or charged with the distance.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from lopro.certificates import FARTHER, Bound
from lopro.constraints.base import Constraint, ValidInequality
from lopro.core.arrays import Array, asarray_like, eps, is_single, norm, to_numpy
from lopro.core.real_vectors import to_real_vector
from lopro.functions.atoms import Linear, Quadratic
from lopro.functions.term import Term
from lopro.linalg.rounding import EPS, Estimate, adjoint_product, dot, length
from lopro.maps.host import host_map, host_matrix
from lopro.methods.splitting.parts import SplitTerms
from lopro.methods.splitting.settings import SETTINGS
from lopro.methods.splitting.steps import ADMMState
from lopro.protocol import ProvedBound

__all__ = ["bound_from"]

Vector = np.ndarray[Any, Any]


@dataclass(frozen=True, eq=False)
class _Dual:
    """Multipliers on the host, one for each term, with ``r = sum D_i' v_i`` and a bound of its error."""

    v: tuple[Vector, ...]
    quadratic: tuple[Vector, ...]
    r: Vector
    error: float


def bound_from(
    parts: SplitTerms,
    state: ADMMState,
    gap: float,
    within: tuple[float, float],
    constraint: Constraint,
) -> ProvedBound | None:
    """Return the lower bound that the multipliers of a state prove.

    Parameters
    ----------
    parts, state
        The terms, and the state of the iteration.
    gap : float
        The required gap: the residual should lower the bound by less.
    within : (float, float)
        A distance from zero (infinite if none is known), and a lower bound of the value of feasible points
        farther out.
    constraint : Constraint
        The constraint, to whose members the multipliers belong.
    """
    like = state.x
    if is_single(like):
        # In single precision the residual of the multipliers would lower the bound too much.
        parts, state = parts.in_double(), state.in_double()
    size = norm(state.x)
    target = SETTINGS.residual_share * gap / (FARTHER * size if size > 0.0 else 1.0)
    state, x = _stationary(parts, state, target)
    slopes = [_slope_of(term, parts, x) for term in parts.quadratic]
    dual = _absorbed(parts, _in_domain(parts, state.multipliers, slopes, x))
    conjugates = _conjugates(parts, dual, x)
    if not math.isfinite(conjugates.value):
        return None
    inequality = _inequality(parts, dual, x, constraint, like)
    return _bound_at(to_real_vector(x), dual, conjugates, within, inequality)


def _bound_at(
    centre: Vector,
    dual: _Dual,
    conjugates: Estimate,
    within: tuple[float, float],
    inequality: ValidInequality,
) -> ProvedBound:
    """Return the bound ``<r, x> - sum_i g_i*(v_i)``, as one around a centre if no distance is known."""
    # The linear part at the centre is known up to the error of r.
    value = (dot(centre, dual.r) - conjugates).lower() - dual.error * length(centre)
    slope = length(dual.r) + dual.error
    source = "multipliers of all terms, stationary up to rounding"
    reach, ceiling = within
    if math.isfinite(reach):
        value = min(value - slope * (reach + length(centre)) * (1.0 + 8.0 * EPS), ceiling)
        return ProvedBound(value, source, inequality=inequality)
    # Operators have no columns from which units could be derived.
    local = Bound(value, np.array([slope]), centre)
    return ProvedBound(value, source, inequality=inequality, local=local)


def _stationary(parts: SplitTerms, state: ADMMState, target: float) -> tuple[ADMMState, Array]:
    """Move point and multipliers by a least-squares step until the slopes of all terms sum to about zero."""
    x, v = state.x, list(state.multipliers)
    for _ in range(2):
        r = parts.pullback(v) + parts.gradient(x)
        size = norm(r)
        if size <= target:
            break
        dx, _ = parts.solve(state.rho, -r, max(target / size, eps(x)), SETTINGS.bound_products)
        x = x + dx
        v = [a + rho * d for a, rho, d in zip(v, state.rho, parts.images(dx), strict=True)]
    u = tuple(a / rho for a, rho in zip(v, state.rho, strict=True))
    return replace(state, x=x, u=u), x


def _slope_of(term: Term, parts: SplitTerms, x: Array) -> Array:
    return term.slope(parts.image_of(term, x))


def _in_domain(parts: SplitTerms, v: Sequence[Array], slopes: Sequence[Array], x: Array) -> _Dual:
    """Bring the multipliers into the domains of the conjugates: by one factor, or each by a projection."""
    hosts = [_double(a) for a in v]
    others = [_double(a) for a in slopes]
    # Multipliers of linear functions are fixed; those of quadratic functions are gradients at some point.
    fixed = any(isinstance(term.atom, Linear | Quadratic) for term in parts.quadratic)
    largest = max(term.gauge(a) for term, a in zip(parts.split, hosts, strict=True))
    if largest > 1.0:
        if fixed or not math.isfinite(largest):
            hosts = [t.into_domain(a) for t, a in zip(parts.split, hosts, strict=True)]
        else:
            factor = (1.0 - SETTINGS.inside) / largest
            hosts = [factor * a for a in hosts]
            others = [factor * a for a in others]
    r, error = np.zeros(math.prod(parts.shape)), 0.0
    for term, a in zip((*parts.split, *parts.quadratic), (*hosts, *others), strict=True):
        pulled, off = _pulled(term, a, x)
        r, error = r + pulled, error + off + EPS * norm(pulled)
    return _Dual(tuple(hosts), tuple(others), r, error * (1.0 + 1e-10))


def _pulled(term: Term, v: Vector, like: Array) -> tuple[Vector, float]:
    """Return ``D'v`` on the host and a bound of the norm of its error."""
    # The slope of a quadratic term was rounded when it was computed.
    own = SETTINGS.roundings * EPS * norm(v) if isinstance(term.atom, Quadratic) else 0.0
    if term.is_identity:
        return v.ravel(), own
    matrix = host_matrix(host_map(term.D))
    if matrix is not None:
        product, errors = adjoint_product(matrix, v)
        return product, float(length(errors)) + own
    product = _double(term.D.adjoint(asarray_like(v, like)))
    rounding = max(EPS, eps(like)) * SETTINGS.roundings
    return product.ravel(), rounding * term.D.largest_singular_value.value * norm(v) + own


def _absorbed(parts: SplitTerms, dual: _Dual) -> _Dual:
    """Absorb the residual r by a set of the variables, if its multiplier can change by it."""
    for i, term in enumerate(parts.split):
        if not (term.is_set and term.is_identity):
            continue
        old = dual.v[i]
        moved = term.into_domain(old - dual.r.reshape(old.shape))
        remainder = dual.r + (moved - old).ravel()
        if norm(remainder) >= norm(dual.r):
            continue
        error = dual.error + 2.0 * EPS * (norm(old) + norm(moved))
        v = (*dual.v[:i], moved, *dual.v[i + 1 :])
        return _Dual(v, dual.quadratic, remainder, error)
    return dual


def _conjugates(parts: SplitTerms, dual: _Dual, x: Array) -> Estimate:
    """Return ``sum_i g_i*(v_i)`` with its rounding."""
    total = Estimate(0.0)
    for term, v in zip(parts.split, dual.v, strict=True):
        total = total + term.enclose_conjugate(v)
    for term, v in zip(parts.quadratic, dual.quadratic, strict=True):
        if isinstance(term.atom, Quadratic):
            total = total + _of_quadratic(term, x)
        else:
            total = total + term.enclose_conjugate(v)
    return total


def _of_quadratic(term: Term, x: Array) -> Estimate:
    """Return the conjugate of ``z'Pz/2 + q'z + c`` at its gradient at x: ``x'Px/2 - c``."""
    assert isinstance(term.atom, Quadratic)
    z = to_real_vector(x)
    Pz = _double(term.atom.P.forward(x)).ravel()
    half = dot(z, Pz, SETTINGS.roundings * EPS * np.abs(z)) * 0.5
    return (half - Estimate(term.atom.constant)) * term.scale


def _inequality(
    parts: SplitTerms, dual: _Dual, x: Array, constraint: Constraint, like: Array
) -> ValidInequality:
    """Return the valid inequality of the sets, with their multipliers."""
    direction, support = np.zeros(dual.r.shape), Estimate(0.0)
    found = []
    for term, v in zip(parts.split, dual.v, strict=True):
        if term.is_set:
            direction = direction + _pulled(term, v, x)[0]
            support = support + term.enclose_conjugate(v)
            found.append(asarray_like(v, like))
    pulled = asarray_like(direction.reshape(parts.shape), like)
    alike = all(len(member.terms) == 1 for member in constraint.members())
    return ValidInequality(pulled, support.upper(), tuple(found) if alike else None)


def _double(values: Array) -> Vector:
    return np.asarray(to_numpy(values), dtype=np.float64)
