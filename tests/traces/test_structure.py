"""Figures of the source and of call paths, on a package that is small enough to count by hand."""

from __future__ import annotations

import importlib
import sys
from pathlib import Path
from typing import Any

import pytest

from traces.inventory import before, inventory, report
from traces.paths import calls, walk

FILES = {
    "__init__.py": "",
    "low/__init__.py": "",
    "low/first.py": '''
from toy.low.second import Shape

#: Measured on ten matrices: python -m benchmarks.toy.
LIMIT = 1e-3
_A, _B = 2, -3.5 * 2
WORD, FLAG = "text", True


class ToySettings:
    """Numbers."""

    rounds: int = 25  # theory.md, section 3


class Square(Shape):
    def __init__(self, side):
        super().__init__()
        self.side = side

    def area(self):
        return sum(side for side in [self.side, 0]) ** 2
''',
    "low/second.py": """
class Shape:
    def __init__(self):
        self.known = isinstance(self, Shape)

    def other(self):
        from toy.low.first import Square

        return Square(2)
""",
    "high.py": """
from toy.low.first import Square


class Shape:
    pass


def total():
    return Square(3).area() + Square(4).area()
""",
}


@pytest.fixture
def toy(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    for name, text in FILES.items():
        path = tmp_path / "toy" / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(text, encoding="utf-8")
    monkeypatch.syspath_prepend(str(tmp_path))
    yield tmp_path / "toy"
    for name in [m for m in sys.modules if m.split(".")[0] == "toy"]:
        del sys.modules[name]


def test_the_inventory_of_a_package(toy):
    found = inventory(toy)
    assert found["lines"] == sum(text.count("\n") for text in FILES.values())
    assert (found["files"], found["packages"]) == (5, 2)
    assert found["classes"] == {"Shape": ["toy.high", "toy.low.second"]}
    assert found["numeric constants"] == 4  # LIMIT, _A, _B, rounds
    assert found["numeric constants with a source"] == 2  # LIMIT, rounds
    assert found["isinstance"] == 1
    assert found["function-level imports of lopro"] == 1
    assert found["cycles"] == [["toy.low.first", "toy.low.second"]]


def test_the_path_of_a_call(toy):
    total = importlib.import_module("toy.high").total
    seen = walk(total, toy)
    assert set(seen.files) == {"high.py", "low/first.py", "low/second.py"}
    assert seen.packages == 2
    # total; Square and Shape twice; area twice, and its generator, which yields two numbers and ends.
    assert seen.calls == 1 + 2 * 2 + 2 + 2 * 3
    assert seen.built == {"toy.low.first.Square": 2}
    assert sys.getprofile() != seen.see


def test_the_table_names_what_was_removed_and_added():
    now = {"lines": 5, "public names": {"lopro": ["a", "c"]}}
    lines = report(now, {"lines": 7, "public names": {"lopro": ["a", "b"]}})
    assert lines[1].split() == ["lines", "7", "5"]
    assert lines[2].split() == ["public", "names", "of", "lopro", "2", "2"]
    assert lines[3:] == ["  removed: lopro.b", "  added: lopro.c"]


def test_the_numbers_from_before_are_there():
    numbers = before()
    assert (numbers["lines"], numbers["files"]) == (49856, 382)
    assert numbers["paths"]["solve(LeastSquares 30x10, Polyhedron 15)"]["calls"] == 2355


def test_small_quadratic_programs_pass_few_files_and_functions():
    """Exact numbers that do not depend on the machine; before, the path had 71 files and 2,355 calls."""
    seen = {name: walk(call) for name, call in calls()}
    direct = seen["solve(LeastSquares 30x10, Polyhedron 15)"]
    assert len(direct.files) <= 40
    assert direct.calls <= 560
    assert direct.built["lopro.engines.forms.QuadraticProgram"] <= 2  # as posed, and normalised
    modelled = seen.get("CVXPY quadratic program 30x10, 15 rows")
    if modelled is not None:  # the same path, through sparse rows and equations
        assert len(modelled.files) <= 51
        assert modelled.calls <= 830
        assert not any(name.startswith("newton/bounds") for name in modelled.files)
