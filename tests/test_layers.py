"""Lower layers never import higher ones, at the top of a file or inside its functions."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent / "src" / "lopro"

#: From the bottom up: a package may import from itself and from those before it in the list.
LAYERS = [
    "errors", "core", "maps", "linalg", "functions", "certificates", "engines", "newton",
    "projections",
    "constraints", "objectives", "penalties", "problem", "driver", "protocol", "methods",
    "solving", "batch", "certifying", "explaining", "sdpa",
    "basis_pursuit", "metric", "correlation", "diagonal", "minimize", "cvxpy", "sklearn",
    "__init__", "cli", "__main__",
]  # fmt: skip


def imports(source: str) -> set[str]:
    """Return the packages that a source imports from: at its top, inside functions, by strings.

    ``import lopro`` is an import of ``__init__``, as is a string that only a run completes.
    """
    names = set()
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.ImportFrom) and node.module == "lopro":
            names |= {f"lopro.{alias.name}" for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            names.add(node.module)
        elif isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.Call) and ast.unparse(node.func).endswith(_BY_STRING):
            names |= {_text(argument) for argument in node.args[:1]}
    parts = [name.split(".") for name in names]
    found = {part[1] if len(part) > 1 else "" for part in parts if part[0] == "lopro"}
    return {name if name in LAYERS else "__init__" for name in found}


#: Functions that import the module that a string names.
_BY_STRING = ("import_module", "__import__")


def _text(argument: ast.expr) -> str:
    """Return a string, with nothing in place of what is filled in; an empty one for other values."""
    if isinstance(argument, ast.JoinedStr):
        return "".join(_text(value) for value in argument.values)
    return str(argument.value) if isinstance(argument, ast.Constant) else ""


@pytest.mark.parametrize(
    ("source", "found"),
    [
        ("import numpy\nfrom lopro.core.arrays import norm", {"core"}),
        ("def f():\n    from lopro import maps", {"maps"}),
        ("from lopro import solve", {"__init__"}),
        ("import lopro", {"__init__"}),
        ("import lopro.methods as own", {"methods"}),
        ("importlib.import_module('lopro.cvxpy')", {"cvxpy"}),
        ("__import__('lopro.metric.api')", {"metric"}),
        ("import_module(f'lopro.{name}')", {"__init__"}),
        ("import_module('scipy.linalg')", set()),
    ],
)
def test_every_kind_of_import_is_seen(source: str, found: set[str]) -> None:
    assert imports(source) == found


def test_packages_import_lower_layers_only() -> None:
    wrong = []
    for path in ROOT.rglob("*.py"):
        package = path.relative_to(ROOT).parts[0].removesuffix(".py")
        for other in imports(path.read_text(encoding="utf-8")) - {package}:
            if LAYERS.index(other) > LAYERS.index(package):
                wrong.append(f"{path.relative_to(ROOT)} imports lopro.{other}")
    assert wrong == []


def test_every_package_has_a_layer() -> None:
    packages = {p.stem for p in ROOT.glob("*.py")} | {
        p.parent.name for p in ROOT.glob("*/__init__.py")
    }
    assert packages <= set(LAYERS)


def test_the_page_of_the_architecture_has_the_packages_in_this_order() -> None:
    page = (ROOT.parents[1] / "docs" / "architecture.md").read_text(encoding="utf-8")
    cells = re.findall(r"^\| (`[^|]+) \|", page, re.MULTILINE)
    named = [name for cell in cells for name in re.findall(r"`(\w+)`", cell)]
    assert named == [name for name in LAYERS if not name.startswith("__")]


def test_baselines_are_imported_by_the_registry_and_the_package_alone() -> None:
    importers = {
        path.relative_to(ROOT).as_posix()
        for path in ROOT.rglob("*.py")
        if "baselines" not in path.relative_to(ROOT).parts and _imports_baselines(path)
    }
    assert importers == {"__init__.py", "methods/registry.py"}


def _imports_baselines(path: Path) -> bool:
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.ImportFrom) and node.module:
            names = {node.module, *(f"{node.module}.{alias.name}" for alias in node.names)}
        elif isinstance(node, ast.Import):
            names = {alias.name for alias in node.names}
        else:
            continue
        if any(f"{name}.".startswith("lopro.methods.baselines.") for name in names):
            return True
    return False
