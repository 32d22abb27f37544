"""Bounds are not worse than those recorded before all of them came from one package.

Four are those of Newton's method since it compares gradients with the size of their terms, and ends a step
earlier; six lost 1e-10 to 6e-8 when the cost of a slope became a sum over variables, each in its unit.
"""

from __future__ import annotations

import json
from pathlib import Path

from support.random_models import cases

import lopro

RECORDED = json.loads(Path(__file__).with_name("recorded_bounds.json").read_text(encoding="utf-8"))


def test_no_bound_is_worse_than_recorded_by_more_than_rounding() -> None:
    """Each fifth problem of the cross-check: the recorded bound is reached now, and the new one is valid."""
    seen, worse = 0, []
    for case in cases(0):
        if case.name not in RECORDED or case.at_optimum:
            continue
        before = RECORDED[case.name]
        result = lopro.solve(case.problem, max_iter=60_000)
        scale = max(abs(before["fun"]), 1e-9)
        seen += 1
        lost = before["lower_bound"] - result.certificate.lower_bound
        if not result.success or lost > 1e-12 * scale:
            worse.append(f"{case.name}: {result.status.name}, lost {lost / scale:.2g}")
        assert result.certificate.lower_bound <= before["fun"] + 1e-9 * scale
    assert seen == len(RECORDED) and not worse, "\n".join(worse)
