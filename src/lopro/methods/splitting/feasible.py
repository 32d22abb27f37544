"""A feasible point near an iterate, by projections on half-spaces: two products for each round."""

from __future__ import annotations

from lopro.core.arrays import Array, norm
from lopro.methods.splitting.parts import Parts
from lopro.protocol import Workbench
from lopro.protocol.certificates import feasibility_tolerance

__all__ = ["feasible_near"]

#: Rounds at most. Near a smooth boundary the violation is squared by each of them.
_ROUNDS = 30


def feasible_near(bench: Workbench, parts: Parts, x: Array) -> Array:
    """Return a feasible point near ``x``; its projection on a single set where no other was found.

    Every round projects on the sets of the variables, and on the half-space ``sum_i <e_i, D_i x - p_i> <= 0``
    that separates the images ``w_i = D_i x`` from their projections ``p_i``, with ``e_i = w_i - p_i``.
    """
    sets = [i for i, term in enumerate(parts.split) if term.is_set]
    if not sets:
        return x
    constraint = bench.problem.constraint
    if constraint.projects_in_closed_form:
        return bench.project(x)
    allowed = 0.5 * feasibility_tolerance(x)
    for _ in range(_ROUNDS):
        for i in sets:
            if parts.split[i].is_identity:
                x = parts.split[i].prox(x, 1.0)
        with bench.observe():
            if constraint.violation(x) <= allowed:
                return x
        step = _towards(parts, sets, x)
        if step is None or bench.exhausted:
            break
        x = x + step
    single = len(constraint.members()) == 1
    return bench.project(x) if single and not bench.exhausted else x


def _towards(parts: Parts, sets: list[int], x: Array) -> Array | None:
    """Return the step to the half-space that separates the images from their projections."""
    images = parts.images(x)
    excess = [0.0 * w for w in images]
    for i in sets:
        excess[i] = images[i] - parts.split[i].prox(images[i], 1.0)
    slope = parts.pullback(excess)
    square = norm(slope) ** 2
    total = sum(norm(e) ** 2 for e in excess)
    return None if square == 0.0 or total == 0.0 else (-total / square) * slope
