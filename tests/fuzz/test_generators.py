"""Cases are determined by a kind and a seed, do not change, and cover what the documentation lists."""

from __future__ import annotations

import hashlib
import os
import re
import subprocess
import sys

import numpy as np
import pytest

from fuzz.kinds import KINDS, make, plan
from fuzz.machine.script import Script
from fuzz.sparse.case import FORMS

#: The generators are frozen: numbers in the documentation refer to these very cases.
FROZEN = {
    "bpdn": "438f4ff5baeb0545",
    "many": "b679954b3549884a",
    "path": "fcc6cb17d2449bb4",
    "solve": "a01dfef32ae82548",
    "minimize": "9ac8b5fa797e005f",
    "metric": "0e6aba353ca1bff1",
    "project": "701e43c3de8b332e",
    "invalid": "21912fa700ccb8ff",
    "losses": "e9fd1312e67e5649",
    "certify": "61045181809c401a",
    "program": "b24e526b5ddc4129",
    "cvxpy": "3de097e83e7a0606",
    "regression": "3cc5d76efe0778d5",
    "composite": "aa9fe52b82aa1d33",
    "correlation": "d743fe7749b709a4",
    "large": "b95b8f17fd8c42c8",
    "conic": "2f4b2b4e3cc9f997",
    "interrupt": "18a53740251cfffc",
    "cones": "9ec0c7d6e74f99d8",
    "entries": "fcd9476d951b7929",
    "exponential": "e5788ed80d5c44fb",
}


def skeleton(script: Script) -> str:
    """Return the parts of a case without last digits: code, shapes, dtypes, orders of magnitude."""
    words = [*script.data, *script.setup, script.call]
    for name, array in script.arrays.items():
        words.append(f"{name} {array.shape} {array.dtype}")
        if array.dtype.kind in "fc" and array.size:
            size = np.abs(array[np.isfinite(array)]).max(initial=0.0)
            words.append(f"{np.log2(size):.2f}" if size > 0 else "zero")
    return "\n".join(words)


def digest(kind: str, count: int = 40) -> str:
    text = "\n\n".join(skeleton(make(kind, seed).script()) for seed in range(count))
    # Numbers inside the code, radii for instance, have last digits that depend on the machine.
    text = re.sub(r"\d+\.\d+(e[+-]?\d+)?", lambda found: f"{float(found[0]):.3g}", text)
    return hashlib.sha256(text.encode()).hexdigest()[:16]


@pytest.mark.parametrize("kind", KINDS)
def test_a_case_is_made_from_its_seed_alone(kind):
    for seed in (0, 1, 10**6 + 3):
        first, second = make(kind, seed).script(), make(kind, seed).script()
        assert first.text() == second.text()
    assert make(kind, 0).script().text() != make(kind, 1).script().text()


@pytest.mark.parametrize("kind", KINDS)
def test_generators_are_frozen(kind):
    assert digest(kind) == FROZEN[kind]


def test_plans_depend_on_the_seed_and_contain_every_kind():
    assert plan(50, 1) == plan(60, 1)[:50]
    assert not set(plan(50, 1)) & set(plan(50, 2))
    assert {kind for kind, _ in plan(2000, 3)} == set(KINDS)
    assert {kind for kind, _ in plan(20, 3, ["metric"])} == {"metric"}


def test_basis_pursuit_cases_cover_every_documented_form():
    cases = [make("bpdn", seed) for seed in range(1500)]
    assert {c.form for c in cases} == set(FORMS)
    assert {c.dtype.name for c in cases} == {"float64", "float32", "complex128", "complex64"}
    sizes = np.array([np.linalg.norm(c.y.astype(complex)) for c in cases])
    radii = np.array([c.sigma for c in cases]) / np.where(sizes > 0, sizes, np.inf)
    assert (radii == 0).any() and (radii > 1.0).any()
    assert ((radii < 1.0) & (radii > 1.0 - 1e-9)).any()
    units = np.array([np.abs(c.A).max() for c in cases])
    assert units.min() < 1e-9 and units.max() > 1e9
    assert any(c.A.shape[0] > c.A.shape[1] for c in cases)
    assert any((c.A == 0).all(axis=0).any() and c.A.any() for c in cases)
    assert any(c.nonneg for c in cases) and any(c.x0 is not None for c in cases)
    assert 0.05 < np.mean([c.sane for c in cases]) < 0.3


def test_problem_cases_cover_every_documented_form():
    cases = [make("solve", seed) for seed in range(800)]
    sets = {type(m).__name__ for c in cases for m in c.model.members}
    assert sets == {
        "Box",
        "L1Ball",
        "PSDCone",
        "Polyhedron",
        "ResidualBall",
        "Simplex",
        "Spectrahedron",
    }
    assert any(c.model.empty for c in cases) and any(c.model.ray is not None for c in cases)
    assert any(len(c.model.members) > 1 for c in cases)
    assert {c.dtype for c in cases} == {"float64", "float32"}
    assert min(c.model.unit for c in cases) < 1e-9 and max(c.model.unit for c in cases) > 1e9


def test_planted_points_are_in_their_sets():
    """Otherwise a false INFEASIBLE could not be detected."""
    for kind in ("solve", "minimize", "project"):
        cases = [make(kind, seed) for seed in range(150)]
        planted = [c for c in cases if c.model.inside is not None and c.dtype == "float64"]
        known = [c.model.safe is not None for c in planted]
        assert np.mean(known) > 0.98
        assert all(c.model.safe is None for c in cases if c.model.empty)


def test_judges_share_no_code_with_the_library():
    code = (
        "import sys, fuzz.kinds, fuzz.sparse.judge, fuzz.general.judge, fuzz.metric.judge\n"
        "import fuzz.general.projection, fuzz.judge.contract\n"
        "sys.exit(any(name.split('.')[0] == 'lopro' for name in sys.modules))"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False, env=_paths()).returncode == 0


def _paths() -> dict[str, str]:
    return os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)}
