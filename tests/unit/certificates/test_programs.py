"""The certificate of a quadratic program from its data equals the one computed from its terms."""

from fractions import Fraction

import numpy as np
import pytest

import lopro
from lopro.certificates import VariableBounds
from lopro.certificates.certificate import Status
from lopro.certificates.programs import ProgramProof
from lopro.linalg.rounding import EPS
from lopro.methods.second_order.forms import Forms
from lopro.newton.bounds import lower_bound, relative_violation, violation_charge

SIZE, ROWS = 5, 9


def objectives():
    rng = np.random.default_rng(3)
    B, b, q = rng.standard_normal((8, SIZE)), rng.standard_normal(8), rng.standard_normal(SIZE)
    square = lopro.objectives.LeastSquares(B, b)
    form = lopro.objectives.Quadratic(B.T @ B, q, 0.7)
    flat = lopro.objectives.Quadratic(np.diag([1.0, 1.0, 1.0, 1.0, 0.0]), q)
    distance = lopro.objectives.SquaredDistance(q)
    return {
        "square": square, "form": form, "distance": distance, "flat": flat,
        "sum": 2.0 * square + lopro.objectives.Linear(q), "two": form + 0.5 * square,
    }  # fmt: skip


def constraints():
    rng = np.random.default_rng(4)
    A, lower = rng.standard_normal((ROWS, SIZE)), -rng.random(ROWS)
    upper = np.where(np.arange(ROWS) % 3 == 0, np.inf, rng.random(ROWS))
    upper[1] = lower[1]
    rows = lopro.constraints.Affine(A, lower=lower, upper=upper)
    box = lopro.constraints.Polyhedron.box(-np.ones(SIZE), np.full(SIZE, 0.5))
    return {"rows": rows, "box": box, "both": lopro.constraints.Intersection(rows, box)}


@pytest.mark.parametrize("f", objectives().values(), ids=objectives())
@pytest.mark.parametrize("c", constraints().values(), ids=constraints())
@pytest.mark.parametrize("outside", [0.0, 0.3])
def test_it_is_the_certificate_of_the_terms(f, c, outside):
    forms = Forms(lopro.Problem(f, c))
    rng, m = np.random.default_rng(5), len(forms.program.lower)
    x = 0.1 * rng.standard_normal(SIZE) + outside
    # Multipliers of both signs, also of sides that are infinite.
    rows = rng.standard_normal(m)
    found = forms.proof.outcome(x, rows, ())
    problem = forms.composite
    v = forms.split_multipliers(rows, np.zeros(SIZE))
    bound = lower_bound(problem, x, v, problem.smooth.strong_convexity())
    if (
        found is None
    ):  # the remaining slope is charged times a distance, in the units of the squares
        assert forms.proof.squares and forms.proof.convexity == 0.0 and not bound.flat
        return
    # Two matrices or a sum of curvatures are summed in another order.
    assert found.bound.value == pytest.approx(bound.value, rel=1e-12, abs=0.0)
    assert found.bound.flat == bound.flat == found.bound.holds_everywhere
    if not bound.flat:  # the rows do not bound the flat direction: the same loss in the same units
        assert forms.proof.convexity == 0.0
        assert found.bound.slopes == pytest.approx(bound.slopes, rel=1e-9)
        assert found.bound.around(x) == pytest.approx(bound.around(x), rel=1e-12)
    here = np.clip(x, *problem.box)
    assert np.array_equal(found.x, here)
    assert found.fun == pytest.approx(problem.value(here), rel=1e-13)
    assert found.violation == pytest.approx(relative_violation(problem, here), rel=1e-13)
    inside = [t.into_domain(u) for t, u in zip(problem.terms, v, strict=True)]
    assert found.charge == pytest.approx(violation_charge(problem, here, inside), rel=1e-13)
    assert (found.charge > 0.0) == (found.violation > 0.0 and m > 0)


def test_a_single_form_has_the_same_bound_to_a_few_roundings():
    forms = Forms(lopro.Problem(objectives()["square"], constraints()["rows"]))
    problem, rng = forms.composite, np.random.default_rng(6)
    for _ in range(20):
        x, rows = rng.standard_normal(SIZE), np.maximum(rng.standard_normal(ROWS), 0.0)
        bound = lower_bound(problem, x, (rows,), problem.smooth.strong_convexity())
        proved = forms.proof.outcome(x, rows, ()).bound.value  # one sum instead of four
        assert abs(proved - bound.value) <= 4.0 * EPS * abs(bound.value)


def test_bounds_of_random_multipliers_are_below_the_optimum():
    rng = np.random.default_rng(7)
    for f in objectives().values():
        for c in constraints().values():
            problem = lopro.Problem(f, c)
            best = lopro.solve(problem, tol=1e-9)
            assert best.success
            forms = Forms(problem)
            for _ in range(10):
                x = rng.standard_normal(SIZE)
                found = forms.proof.outcome(x, rng.standard_normal(len(forms.program.lower)), ())
                if found is None:
                    continue
                bound, lost = found.bound, 0.0
                if not bound.flat:  # it decreases with the distance from its centre
                    lost = float(bound.slopes @ np.abs(best.x - bound.centre))
                assert bound.value - lost <= best.fun
                assert found.status is Status.STOPPED


def test_convexity_is_not_computed_where_bounds_absorb_the_slope() -> None:
    """The least eigenvalue takes factorisations; min x^2 / 2 + x over x >= 0 is 0 by its slope alone."""
    box, none = VariableBounds(np.zeros(1), np.full(1, np.inf)), np.zeros(0)
    proof = ProgramProof(np.eye(1), np.ones(1), 0.0, (), np.zeros((0, 1)), none, none, box)
    outcome = proof.outcome(np.zeros(1), none, ())
    assert outcome is not None and outcome.bound.value == pytest.approx(0.0, abs=1e-300)
    assert outcome.bound.holds_everywhere and "convexity" not in vars(proof)


@pytest.mark.parametrize("squares", [False, True])
def test_a_small_slope_of_a_flat_direction_is_not_mistaken_for_rounding(squares):
    """The factorisation that proves convexity fails: the objective decreases along the second variable."""
    slope, B = np.array([0.0, 1e-9]), np.array([[1.0, 0.0], [0.0, 0.0]])
    f = lopro.objectives.LeastSquares(B, np.array([1.0, 2.0])) + lopro.objectives.Linear(slope)
    if not squares:
        f = lopro.objectives.Quadratic(B, np.array([-1.0, 0.0]) + slope, 2.5)
    forms = Forms(lopro.Problem(f, lopro.constraints.Polyhedron([[1.0, 0.0]], [5.0])))
    found = forms.proof.outcome(np.array([1.0, 0.0]), np.zeros(1), ())
    assert found is None if squares else not found.bound.flat
    curved = lopro.objectives.Quadratic(np.eye(2), np.array([-1.0, 0.0]) + slope, 2.5)
    forms = Forms(lopro.Problem(curved, lopro.constraints.Polyhedron([[1.0, 0.0]], [5.0])))
    bound = forms.proof.outcome(np.array([1.0, 0.0]), np.zeros(1), ()).bound
    assert bound.holds_everywhere
    assert 0.0 < 2.0 - bound.value <= 8.0 * EPS * 2.0  # the optimum is 2 - 5e-19


def test_a_charge_is_rounded_upwards():
    """``x_j <= 0`` is violated by ``x_j``, which costs its multiplier: no less than the exact sum."""
    rng, n = np.random.default_rng(8), 40
    box = VariableBounds(np.full(n, -np.inf), np.full(n, np.inf))
    rows = np.eye(n), np.full(n, -np.inf), np.zeros(n)
    proof = ProgramProof(np.eye(n), np.zeros(n), 0.0, (), *rows, box)
    for x, y in rng.random((20, 2, n)):
        charge = proof._violation(x, y)[1]
        exact = sum(Fraction(a) * Fraction(b) for a, b in zip(x.tolist(), y.tolist(), strict=True))
        assert exact <= Fraction(charge) <= exact * (1 + Fraction(1, 10**13))
