"""Atoms: conjugates by Fenchel's equality, the same numbers on every library, conic forms of equal value."""

from __future__ import annotations

import math
from typing import Any

import array_api_strict
import numpy as np
import pytest
import scipy.sparse

from lopro.core.arrays import to_numpy
from lopro.core.deadline import Deadline, OutOfTime
from lopro.engines import ConicProgram
from lopro.errors import MissingCapabilityError
from lopro.functions import atoms
from lopro.functions.atoms import Atom
from lopro.functions.cone_program import RealImage
from lopro.functions.term import Term, scaled
from lopro.linalg.rounding import Estimate
from lopro.maps import linear_map

SIZE = 6
LABELS = np.array([1.0, -1.0, 1.0, 1.0, -1.0, -1.0])
COUNTS = np.array([0.0, 1.0, 5.0, 2.0, 0.0, 3.0])
WEIGHTS = np.linspace(0.0, 2.0, SIZE)
P = np.diag(np.arange(1.0, 7.0)) + 0.1

SMOOTH: dict[str, Atom] = {
    "half square": atoms.HalfSquare(),
    "logistic": atoms.Logistic(LABELS),
    "huber": atoms.Huber(0.7),
    "squared hinge": atoms.SquaredHinge(LABELS),
    "poisson": atoms.Poisson(COUNTS),
}
NORMS: dict[str, Atom] = {
    "l1": atoms.L1(WEIGHTS),
    "two-sided l1": atoms.L1(WEIGHTS, 0.3),
    "groups": atoms.GroupNorm(2, 0.8),
    "l-infinity": atoms.LInf(),
    "nuclear": atoms.Nuclear((2, 3)),
    "linear": atoms.Linear(np.arange(6.0) - 2.0),
}
SETS: dict[str, Atom] = {
    "interval": atoms.Interval(np.full(SIZE, -0.5), np.linspace(0.1, 2.0, SIZE)),
    "ball": atoms.Ball(1.5),
    "l1 ball": atoms.L1Ball(1.5),
    "cone": atoms.SecondOrderCone(),
}


OPTIONAL = {"conjugate", "into_domain", "add_to_cone_program"}
#: Optional methods that an atom leaves out, by its name above, as in {"log cosh": OPTIONAL}; the tests of
#: these methods are skipped for it.
PARTIAL: dict[str, set[str]] = {}


def needs(name: str, *methods: str) -> Atom:
    """Return the atom; skip the test where it leaves out one of the methods."""
    missing = PARTIAL.get(name, set()).intersection(methods)
    if missing:
        pytest.skip(f"{name} defines no {', '.join(sorted(missing))}")
    return (SMOOTH | NORMS | SETS)[name]


@pytest.mark.parametrize("name", SMOOTH | NORMS)
def test_an_atom_defines_all_methods_but_those_listed(name: str) -> None:
    atom = type((SMOOTH | NORMS)[name])
    missing = {method for method in OPTIONAL if getattr(atom, method) is getattr(Atom, method)}
    assert missing == PARTIAL.get(name, set()), f"define them, or list them in PARTIAL[{name!r}]"


def exact(atom: Atom) -> bool:
    return not isinstance(atom, atoms.LInf | atoms.Nuclear | atoms.L1Ball)


@pytest.mark.parametrize("name", SMOOTH | NORMS)
def test_a_slope_attains_the_conjugate(name: str, rng: Any) -> None:
    """g(z) + g*(v) = <v, z> for a subgradient v at z: fails for a wrong factor in either."""
    atom = needs(name, "conjugate", "into_domain")
    for z in 1.5 * rng.standard_normal((20, SIZE)):
        v = atom.slope(z)
        inside = atom.into_domain(v)
        np.testing.assert_allclose(inside, v, atol=1e-13)
        assert atom.value(z) + atom.conjugate(inside) == pytest.approx(float(v @ z), abs=1e-12)


@pytest.mark.parametrize("name", SMOOTH | NORMS)
def test_no_point_exceeds_the_conjugate(name: str, rng: Any) -> None:
    atom = needs(name, "conjugate", "into_domain")
    for v in rng.standard_normal((20, SIZE)):
        inside = atom.into_domain(v)
        most = atom.conjugate(inside)
        assert math.isfinite(most)
        for z in 2.0 * rng.standard_normal((20, SIZE)):
            assert float(inside @ z) - atom.value(z) <= most + 1e-12


@pytest.mark.parametrize("name", SMOOTH)
def test_slopes_and_curvatures_are_derivatives(name: str, rng: Any) -> None:
    atom, h = SMOOTH[name], 1e-6
    z, d = rng.standard_normal(SIZE), rng.standard_normal(SIZE)
    change = (atom.value(z + h * d) - atom.value(z - h * d)) / (2.0 * h)
    assert float(atom.slope(z) @ d) == pytest.approx(change, rel=1e-7, abs=1e-9)
    bend = (atom.slope(z + h * d) - atom.slope(z - h * d)) / (2.0 * h)
    np.testing.assert_allclose(atom.curvature(z) * d, bend, rtol=1e-6, atol=1e-8)


@pytest.mark.parametrize("name", SMOOTH | NORMS | SETS)
def test_other_libraries_give_the_same_numbers(name: str, rng: Any) -> None:
    atom = (SMOOTH | NORMS | SETS)[name]
    z = rng.standard_normal(SIZE)
    there = array_api_strict.asarray(z)
    assert atom.value(there) == pytest.approx(atom.value(z), rel=1e-14)
    if not PARTIAL.get(name, set()) & {"conjugate", "into_domain"}:
        inside = atom.into_domain(z)
        np.testing.assert_allclose(to_numpy(atom.into_domain(there)), inside, rtol=1e-14)
        conjugate = atom.conjugate(array_api_strict.asarray(inside))
        assert conjugate == pytest.approx(atom.conjugate(inside), rel=1e-13, abs=1e-15)
    if not atom.is_set:
        np.testing.assert_allclose(to_numpy(atom.slope(there)), atom.slope(z), rtol=1e-13)
    if atom.smooth:
        np.testing.assert_allclose(to_numpy(atom.curvature(there)), atom.curvature(z), rtol=1e-13)
    if atom.proximable:
        np.testing.assert_allclose(to_numpy(atom.prox(there, 0.7)), atom.prox(z, 0.7), rtol=1e-13)


@pytest.mark.parametrize("name", SETS)
def test_projections_are_nearest_points(name: str, rng: Any) -> None:
    """<w - p, q - p> <= 0 for all q of the set; points inside are returned unchanged."""
    atom = SETS[name]
    for w in 2.0 * rng.standard_normal((20, SIZE)):
        p = atom.prox(w, 1.0)
        assert np.max(atom.distance(p)) <= 1e-14
        assert atom.prox(p, 1.0) == pytest.approx(p, abs=1e-14)
        for q in (atom.prox(q, 1.0) for q in 3.0 * rng.standard_normal((10, SIZE))):
            assert float((w - p) @ (q - p)) <= 1e-12


@pytest.mark.parametrize("name", SMOOTH | NORMS)
@pytest.mark.parametrize("identity", [True, False])
def test_conic_forms_have_the_value_of_the_term(name: str, identity: bool, rng: Any) -> None:
    """With the point fixed by equations the optimal value is ``s g(D x - b)``: signs, factors, constants."""
    atom, scale, n = needs(name, "add_to_cone_program"), 0.7, SIZE
    D = np.eye(n) if identity else rng.standard_normal((SIZE, n))
    b, x = 0.5 * rng.standard_normal(SIZE), rng.standard_normal(n)
    program = ConicProgram(n)
    program.add_equations(x, (scipy.sparse.eye_array(n), 0))
    image = RealImage(scipy.sparse.csr_array(D), b, is_identity=identity)
    atom.add_to_cone_program(program, image, scale)
    answer = program.solve(1e-9)
    v, form = answer.x, program.form()
    found = float(v @ (0.5 * (form.P @ v) + form.q)) + program.constant
    term = Term(atom, linear_map(D), b, scale)
    assert found == pytest.approx(term.value(term.image(x)), rel=1e-6, abs=1e-6)


def test_complex_moduli_in_a_cone_program(rng: Any) -> None:
    z, b = (rng.standard_normal(4) + 1j * rng.standard_normal(4) for _ in range(2))
    program = ConicProgram(8)
    x = np.concatenate([z.real, z.imag])
    program.add_equations(x, (scipy.sparse.eye_array(8), 0))
    image = RealImage(scipy.sparse.eye_array(8, format="csr"), np.r_[b.real, b.imag], True, True)
    weights = np.array([0.0, 1.0, 2.0, 0.5])
    atoms.L1(weights).add_to_cone_program(program, image, 3.0)
    found = float(program.form().q @ program.solve(1e-9).x)
    assert found == pytest.approx(3.0 * float(weights @ np.abs(z - b)), rel=1e-7)


def test_factors_become_parameters_of_atoms_and_zero_drops_the_term() -> None:
    l1, square = Term(atoms.L1(np.array([1.0, 2.0]))), Term(atoms.HalfSquare())
    box = Term(atoms.Interval(np.zeros(2), np.ones(2)))
    doubled = scaled(2.0, (l1, square, box))
    assert [term.scale for term in doubled] == [1.0, 2.0, 1.0]
    assert doubled[0].value(np.ones(2)) == 6.0 and doubled[1].value(np.ones(2)) == 2.0
    assert [term.atom for term in scaled(0.0, (l1, square, box))] == [box.atom]


def test_multipliers_that_are_moved_inside_stay_there_after_scaling() -> None:
    """0.1 * 3 / 3 is above 0.1: clipped entries must not leave the domain by rounding."""
    term = Term(atoms.Huber(0.1), scale=3.0)
    v = term.into_domain(np.array([0.2, 1.0, -5.0]))
    assert v[0] == 0.2
    assert math.isfinite(term.conjugate(v)) and math.isfinite(term.enclose_conjugate(v).value)
    np.testing.assert_allclose(v[1:], [0.3, -0.3], rtol=1e-15)


def test_missing_methods_of_atoms_are_named() -> None:
    with pytest.raises(MissingCapabilityError, match="Logistic has no prox"):
        atoms.Logistic(LABELS).prox(np.zeros(6), 1.0)


@pytest.mark.parametrize("name", SMOOTH)
def test_enclosures_hold_for_points_within_the_error(name: str, rng: Any) -> None:
    """Value and slope at any z + e with |e| <= error are within the bounds, also where these are tight.

    The conjugate gives the value at the point that has the slope, without any error of the point.
    """
    atom = SMOOTH[name]
    z, error = rng.standard_normal(SIZE), 1e-6 * rng.uniform(0.5, 1.0, SIZE)
    if atom.has_enclosed_conjugate:
        v = atom.into_domain(atom.slope(z))
        found = Estimate(float(v @ z)) - atom.enclose_conjugate(v)
        assert found.value == pytest.approx(atom.value(z), rel=1e-13)
        assert 0.0 < found.error <= 1e-13
    if not math.isfinite(atom.sharpest) and type(atom).enclose is Atom.enclose:
        return
    value, slope, off = atom.enclose(z, error)
    for signs in rng.choice([-1.0, 1.0], size=(50, SIZE)):
        there = z + 0.999 * signs * error
        assert abs(atom.value(there) - value.value) <= value.error
        assert np.all(np.abs(atom.slope(there) - slope) <= off)
    assert value.error <= 1e-4 and off.max() <= 1e-4


@pytest.mark.parametrize("step", [0.25, 1.0, 4.0])
def test_the_complement_of_hubers_prox_changes_where_the_prox_does(step: float) -> None:
    """The slope of ``w - prox(w)`` on either side of ``(1 + step) delta``, by differences."""
    atom, delta = atoms.Huber(0.5), 0.5
    edge = (1.0 + step) * delta
    w = np.array([0.0, 0.9 * edge, -0.999 * edge, 1.001 * edge, -1.1 * edge, edge + 0.9 * delta])
    found = atom.complement(w, step).values
    change = (w + 1e-6 - atom.prox(w + 1e-6, step)) - (w - atom.prox(w, step))
    assert found == pytest.approx(change / 1e-6, abs=1e-8)


@pytest.mark.parametrize("shape", [(2,), (1, 2), (2, 1)])
def test_moduli_of_complex_arrays_of_any_shape(shape: tuple[int, ...]) -> None:
    """The prox reduces a modulus of 5 by 1; a slope whose moduli equal the weight is in the domain."""
    atom, w = atoms.L1(5.0), np.array([6.0 + 8.0j, 0.3j]).reshape(shape)
    assert atom.prox(w, 0.2).ravel() == pytest.approx([5.4 + 7.2j, 0.0])
    assert atom.conjugate(np.array([3.0 - 4.0j, 5.0j]).reshape(shape)) == 0.0
    assert atom.conjugate(np.array([3.0 - 4.0j, 5.001j]).reshape(shape)) == math.inf


def test_a_slope_beyond_the_dual_ball_by_less_than_a_rounding_is_outside() -> None:
    """The sum of the moduli is 1 in floating point."""
    v = np.array([1.0, 2.0**-54])
    assert atoms.LInf().enclose_conjugate(v).value == math.inf
    assert atoms.LInf().enclose_conjugate((1.0 - 1e-14) * v).value == 0.0


@pytest.mark.parametrize("shape", [(1000, 2000), (2000, 1000)])
def test_singular_values_that_take_too_long_are_not_computed(shape: tuple[int, int]) -> None:
    """The time suffices for those of a small matrix, and not for 2e9 operations or more."""
    small, w = np.ones((2, 3)), np.ones(shape)
    with Deadline(10.0).active():
        found = atoms.Nuclear((2, 3)).prox(small, 1.0)
    assert found == pytest.approx(small - small / math.sqrt(6.0))
    with Deadline(0.1).active(), pytest.raises(OutOfTime):
        atoms.Nuclear(shape).prox(w, 1.0)


def test_entries_of_weight_zero_are_ignored_where_the_slope_is_zero() -> None:
    atom = atoms.L1(np.array([0.0, 2.0]))
    assert atom.gauge(np.array([0.0, 1.0])) == 0.5
    assert atom.gauge(np.array([1e-300, 1.0])) == math.inf


@pytest.mark.parametrize("z", [1e-3, 0.5, 20.0])
def test_the_error_of_half_a_square_is_the_entry_times_its_error(z: float) -> None:
    value = atoms.HalfSquare().enclose(np.array([z]), np.array([0.1]))[0]
    assert value.value == pytest.approx(0.5 * z * z)
    assert value.error == pytest.approx(0.1 * z + 0.005)
