"""The kinds of cases, their shares, and how a case is made from a kind and a seed."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from fuzz.composite.case import composite_case
from fuzz.correlation.case import correlation_case
from fuzz.general.generate import minimize_case, project_case, solve_case
from fuzz.interrupt import interrupted
from fuzz.invalid.case import invalid_case
from fuzz.losses.case import certify_case, loss_case
from fuzz.machine.case import Case
from fuzz.metric.generate import metric_case
from fuzz.planted.case import (
    cones_case,
    conic_case,
    cvxpy_case,
    exponential_case,
    large_case,
    program_case,
)
from fuzz.planted.entries import entries_case
from fuzz.regression.case import regression_case
from fuzz.sparse.generate import bpdn_case, many_case, path_case

__all__ = ["KINDS", "make", "plan"]

#: How a case is made, and its share among the calls.
KINDS: dict[str, tuple[Callable[[int], Case], int]] = {
    "bpdn": (bpdn_case, 28),
    "many": (many_case, 7),
    "path": (path_case, 7),
    "solve": (solve_case, 22),
    "minimize": (minimize_case, 6),
    "metric": (metric_case, 9),
    "project": (project_case, 11),
    "invalid": (invalid_case, 4),
    "losses": (loss_case, 4),
    "certify": (certify_case, 2),
    "program": (program_case, 10),
    "cvxpy": (cvxpy_case, 6),
    "conic": (conic_case, 4),
    "regression": (regression_case, 8),
    "composite": (composite_case, 8),
    "correlation": (correlation_case, 3),
    "large": (large_case, 1),
}
KINDS["interrupt"] = interrupted([make for make, _ in KINDS.values()]), 4
# Kinds below this line are not interrupted: the cases of existing seeds of "interrupt" must not change.
KINDS["cones"] = cones_case, 6
KINDS["entries"] = entries_case, 6
KINDS["exponential"] = exponential_case, 6


def make(kind: str, seed: int) -> Case:
    """Return the case of a kind and a seed; the same one every time."""
    if kind not in KINDS:
        raise ValueError(f"kind must be one of {', '.join(KINDS)}, got {kind!r}")
    return KINDS[kind][0](seed)


def plan(count: int, seed: int, kinds: list[str] | None = None) -> list[tuple[str, int]]:
    """Return a number of cases, with kinds mixed by their shares; another seed gives other cases."""
    chosen = list(KINDS) if kinds is None else kinds
    shares = np.array([KINDS[kind][1] for kind in chosen], dtype=float)
    drawn = np.random.default_rng([0, seed]).choice(
        len(chosen), size=count, p=shares / shares.sum()
    )
    return [(chosen[k], seed * 1_000_000 + i) for i, k in enumerate(drawn)]
