"""Auto against CVXPY with Clarabel on hundreds of random problems: never wrong, rarely without an answer."""

from __future__ import annotations

import numpy as np
import pytest
from support.clarabel_reference import reference
from support.random_models import Case, cases

import lopro
from lopro import Status


def compare(case: Case) -> tuple[str | None, str | None]:
    """Return the error of the answer, and the reason why there is no answer; None where there is none."""
    best = reference(case)
    x0 = np.array(case.variable.value) if case.at_optimum else None
    result = lopro.solve(case.problem, x0, max_iter=60_000)
    scale = max(1.0, abs(best))
    error = abs(result.fun - best) / scale
    if result.certificate.lower_bound > best + 1e-7 * scale:
        return f"{case.name}: lower bound {result.certificate.lower_bound} above {best}", None
    if not result.success:
        return None, f"{case.name}: {result.status.name}, error {error:.1e}"
    if error > 1e-5 or result.certificate.violation > 1e-9:
        return f"{case.name}: error {error:.1e}, {result.certificate}", None
    return None, None


@pytest.mark.parametrize("round_", [0, 1])
def test_auto_agrees_with_clarabel_or_reports_that_it_did_not_converge(round_: int) -> None:
    """At tol=1e-6 the values agree to 1e-5, points are feasible to 1e-9, bounds are bounds."""
    outcomes = [compare(case) for case in cases(round_)]
    wrong = [w for w, _ in outcomes if w is not None]
    missing = [m for _, m in outcomes if m is not None]
    assert len(outcomes) >= 200
    assert not wrong, "\n".join(wrong)
    assert len(missing) <= 0.05 * len(outcomes), "\n".join(missing)


def test_the_comparison_detects_a_wrong_answer() -> None:
    """Negative control: with a shifted reference objective the comparison must report an error."""
    case = next(iter(cases(0)))
    case.twin = type(case.twin)(type(case.twin.objective)(case.twin.objective.expr + 1e-3))
    wrong, missing = compare(case)
    assert wrong is not None or missing is not None


def test_the_status_of_a_missing_answer_is_true() -> None:
    """A problem given by subgradients alone ends at a feasible point, whether converged or not."""
    case = next(c for c in cases(0) if c.name.startswith("largest_affine/box"))
    result = lopro.solve(case.problem, max_iter=3000)
    assert result.status in (Status.MAX_ITER, Status.CONVERGED)
    assert result.certificate.violation <= 1e-9
    assert result.success == (result.certificate.relative_gap <= 1e-6)
