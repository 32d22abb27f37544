"""Sets as SciPy's constraint objects, where there is one."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from fuzz.general.balls import ResidualBall
from fuzz.general.sets import Box, Polyhedron, Set
from fuzz.machine.script import Script

__all__ = ["constraint_text", "seen_as"]


def constraint_text(member: Set, script: Script, scipy: bool) -> str:
    """Return an expression for a constraint: SciPy's if requested and possible, else the library's."""
    if not scipy:
        return member.text(script)
    if isinstance(member, Box):
        bounds = f"{script.array(member.lower)}, {script.array(member.upper)}"
        return f"scipy.optimize.Bounds({bounds})"
    if isinstance(member, Polyhedron):
        M = script.array(np.vstack([member.C, member.E]))
        upper = script.array(np.concatenate([member.b, member.e]))
        lower = script.array(np.concatenate([np.full(len(member.b), -np.inf), member.e]))
        return f"scipy.optimize.LinearConstraint({M}, {lower}, {upper})"
    if isinstance(member, ResidualBall) and member.sigma > 0.0:  # see `seen_as`
        A, y, s = script.array(member.A), script.array(member.y), repr(member.sigma)
        r = f"(({A} @ x - {y}) / {s})"
        slope = f"lambda x: (2.0 / {s}) * ({A}.T @ {r})[None, :]"
        return (
            f"scipy.optimize.NonlinearConstraint(lambda x: np.sum({r} ** 2), -np.inf, 1.0, {slope})"
        )
    return member.text(script)


def seen_as(member: Set, scipy: bool) -> Set:
    """Return a set in the form the library receives: callables alone, where SciPy has no other form."""
    if scipy and isinstance(member, ResidualBall) and member.sigma > 0.0 and not member.untyped:
        return replace(member, form="callable")
    return member
