"""The general benchmarks: all solvers receive the same problem and are judged by the same code."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import pytest

import lopro
from benchmarks.general import composite, sdplib
from lopro.newton.sdp import Status, read_sdpa

TINY = '"one variable\n1 = m\n1 = blocks\n2\n1.0\n0 1 1 2 1.0\n1 1 1 1 1.0\n1 1 2 2 1.0\n'


@pytest.mark.parametrize("case", composite.cases(small=True), ids=lambda c: c.name)
def test_peers_solve_the_same_problem(case: composite.Case) -> None:
    pytest.importorskip("cvxpy")
    ours = lopro.solve(case.problem, tol=composite.TOL)
    bound = ours.certificate.lower_bound
    rows: dict[str, Any] = {"lopro": composite.row_of(case, "lopro", 0.0, ours, "", bound)}
    for solver in case.solvers:
        answer = composite.prepared(case, solver, 60.0)()
        rows[solver] = composite.row_of(case, solver, 0.0, answer, "", bound)
    assert rows["lopro"]["violation"] <= 1e-9 and 0.0 <= rows["lopro"]["gap"] <= composite.TOL
    for row in rows.values():
        assert row["fun"] == pytest.approx(rows["lopro"]["fun"], rel=1e-4)


def test_answers_of_solve_in_the_words_of_the_kernel(tmp_path: Path) -> None:
    file = tmp_path / "tiny.dat-s"
    file.write_text(TINY, encoding="utf-8")
    found = sdplib.by_lopro(lopro.read_sdpa(file), 60.0)
    assert found.status is Status.CONVERGED and found.fun == pytest.approx(-1.0, rel=1e-4)
    assert 0.0 <= found.gap <= 1e-4 and math.isinf(found.radius)
    peer = sdplib.by_clarabel(read_sdpa(file), 60.0)
    assert peer.fun == pytest.approx(found.fun, rel=1e-4)
