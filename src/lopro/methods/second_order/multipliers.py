"""Multipliers of the terms, and those of the members of the constraint as a user counts them."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from lopro.constraints.base import Constraint
from lopro.constraints.rows import LinearRows
from lopro.constraints.simplex import Simplex
from lopro.linalg.dense import Array
from lopro.newton.smooth import Image

__all__ = ["member_multipliers", "term_multipliers"]


def member_multipliers(constraint: Constraint, multipliers: Sequence[Array]) -> Image:
    """Return one array for each member from the multipliers of the terms of a constraint."""
    if isinstance(constraint, LinearRows):
        return tuple(multipliers)
    left, found = list(multipliers), []
    for member in constraint.members():
        own = [left.pop(0) for _ in member.terms]
        # A member of several terms has one normal vector.
        pairs = zip(member.terms, own, strict=True)
        found.append(own[0] if len(own) == 1 else sum(term.pullback(v) for term, v in pairs))
    return tuple(found)


def term_multipliers(constraint: Constraint, multipliers: Sequence[Array]) -> list[Array]:
    """Return multipliers of the members as those of the terms: the inverse of `member_multipliers`."""
    found: list[Array] = []
    for member, v in zip(constraint.members(), multipliers, strict=True):
        if isinstance(member, Simplex):
            # The total is what positive entries pay, the largest multiplier; the others pay less.
            found += [v - v.max(), np.array([v.max()])]
        else:
            found.append(v)
    return found
