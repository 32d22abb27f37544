"""Lower layers never import higher ones, at the top of a file or inside its functions."""

from __future__ import annotations

import ast
import re
from pathlib import Path

ROOT = Path(__file__).parent.parent / "src" / "lopro"

#: From the bottom up: a package may import from itself and from those before it in the list.
LAYERS = [
    "errors", "core", "maps", "linalg", "functions", "certificates", "engines", "newton",
    "projections",
    "constraints", "objectives", "conic_forms", "penalties", "problem", "driver", "protocol", "methods",
    "solving", "batch", "certifying", "explaining", "sdpa",
    "basis_pursuit", "metric", "correlation", "diagonal", "minimize", "cvxpy", "sklearn",
    "cli", "__init__", "__main__",
]  # fmt: skip


def imports(path: Path) -> set[str]:
    """Return the packages that a file imports from, at its top or inside its functions."""
    found = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.ImportFrom) and node.module and node.module.startswith("lopro"):
            parts = node.module.split(".")
            found |= {parts[1]} if len(parts) > 1 else {alias.name for alias in node.names}
        elif isinstance(node, ast.Import):
            found |= {a.name.split(".")[1] for a in node.names if a.name.startswith("lopro.")}
    return {name for name in found if name in LAYERS}


def test_packages_import_lower_layers_only() -> None:
    wrong = []
    for path in ROOT.rglob("*.py"):
        package = path.relative_to(ROOT).parts[0].removesuffix(".py")
        for other in imports(path) - {package}:
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
    assert named == [name for name in LAYERS if name != "errors" and not name.startswith("__")]


def test_baselines_are_imported_by_the_registry_and_the_package_alone() -> None:
    importers = {
        str(path.relative_to(ROOT))
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
