"""The exit status of several results is that of the worst one."""

from __future__ import annotations

from dataclasses import replace

import pytest

import lopro
from lopro import Status
from lopro.cli.exit_codes import ExitCode, code_of


@pytest.mark.parametrize(
    ("statuses", "code"),
    [
        ([], ExitCode.CONVERGED),
        ([Status.CONVERGED, Status.CONVERGED], ExitCode.CONVERGED),
        ([Status.CONVERGED, Status.MAX_ITER], ExitCode.NOT_CONVERGED),
        ([Status.INFEASIBLE, Status.CONVERGED], ExitCode.NOT_CONVERGED),
        ([Status.MAX_ITER], ExitCode.NOT_CONVERGED),
        ([Status.CONVERGED, Status.INTERRUPTED, Status.MAX_ITER], ExitCode.INTERRUPTED),
    ],
)
def test_the_worst_result_decides(statuses, code):
    result = lopro.bpdn([[2.0, 1.0]], [2.0], sigma=1.0)
    assert code_of([replace(result, status=status) for status in statuses]) is code


def test_scripts_can_distinguish_the_outcomes():
    assert [int(code) for code in ExitCode] == [0, 1, 2, 3, 130]
