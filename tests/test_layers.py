"""Rooms import only from rooms above them, inside functions too; the exceptions are argued here."""

from __future__ import annotations

import ast
from pathlib import Path

ROOT = Path(__file__).parent.parent / "src" / "lopro"

#: From the bottom up: a room may import from those that stand before it, and from itself.
LAYERS = [
    "errors", "_moved", "core", "certificates", "newton", "functions", "maps", "cones", "projections",
    "constraints", "objectives", "conic_forms", "penalties", "problem", "protocol", "driver", "methods",
    "solving", "certifying", "explaining", "sdpa",
    "basis_pursuit", "metric", "correlation", "minimize", "cvxpy", "sklearn",
    "cli", "__init__", "__main__",
]  # fmt: skip

#: Imports that point upwards, and why.
ARGUED = {
    ("objectives", "metric"): "PairLoss under its old name, for one release",
}


def imports(path: Path) -> set[str]:
    """Return the rooms that a file imports from, at its top or inside its functions."""
    found = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.ImportFrom) and node.module and node.module.startswith("lopro"):
            parts = node.module.split(".")
            found |= {parts[1]} if len(parts) > 1 else {alias.name for alias in node.names}
        elif isinstance(node, ast.Import):
            found |= {a.name.split(".")[1] for a in node.names if a.name.startswith("lopro.")}
    return {name for name in found if name in LAYERS}


def test_rooms_import_downwards_only() -> None:
    wrong = []
    for path in ROOT.rglob("*.py"):
        room = path.relative_to(ROOT).parts[0].removesuffix(".py")
        for other in imports(path) - {room}:
            if LAYERS.index(other) > LAYERS.index(room) and (room, other) not in ARGUED:
                wrong.append(f"{path.relative_to(ROOT)} imports lopro.{other}")
    assert wrong == []


def test_every_room_has_its_place() -> None:
    rooms = {p.stem for p in ROOT.glob("*.py")} | {
        p.parent.name for p in ROOT.glob("*/__init__.py")
    }
    assert rooms <= set(LAYERS)
