"""The extras of pyproject.toml have what the make targets import, alone in an empty environment."""

from __future__ import annotations

import ast
import re
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]

#: What a target imports, and the extra that its environment has.
TARGETS = {
    "docs": ["docs/conf.py", "docs/_ext/*.py", "examples/**/*.py", "src/lopro/**/*.py"],
    "bench": ["benchmarks/*.py", "paper/**/*.py"],
    "examples": ["examples/*.py", "paper/**/*.py"],
}
#: Imported only where a user's arrays are of these, or behind a check that they are installed.
OPTIONAL = {"cupy", "cupyx", "dask", "distributed", "h5py", "jax", "pandas", "torch", "zarr"}
#: Sphinx brings it along.
BROUGHT = {"docs": {"docutils"}, "bench": set(), "examples": set()}
DISTRIBUTIONS = {
    "pywt": "pywavelets",
    "sklearn": "scikit-learn",
    "sphinx_gallery": "sphinx-gallery",
}


def installed(extra: str | None) -> set[str]:
    """Return the distributions that the package, or one of its extras, requires."""
    required = PROJECT["dependencies"] if extra is None else PROJECT["optional-dependencies"][extra]
    found = set() if extra is None else installed(None)
    for requirement in required:
        name, more = re.match(r"([A-Za-z0-9._-]+)(?:\[(.*)\])?", requirement).groups()
        if name == "lopro":
            found = found.union(*(installed(part.strip()) for part in more.split(",")))
        else:
            found.add(name.lower())
    return found


def imported(path: Path) -> Iterator[str]:
    """Yield the packages that a file imports anywhere."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            yield from (name.name.split(".")[0] for name in node.names)
        elif isinstance(node, ast.ImportFrom) and node.level == 0 and node.module:
            yield node.module.split(".")[0]


@pytest.mark.parametrize("extra", TARGETS)
def test_a_target_has_what_it_imports(extra):
    files = {path for pattern in TARGETS[extra] for path in ROOT.glob(pattern)}
    assert len(files) > 5
    # Scripts import each other by name; the modules of the package are called lopro.something.
    own = {path.stem for path in files if "src" not in path.parts} | {
        "lopro",
        "paper",
        "benchmarks",
    }
    needed = {name for path in files for name in imported(path)}
    needed -= set(sys.stdlib_module_names) | own | OPTIONAL | BROUGHT[extra]
    names = {DISTRIBUTIONS.get(name, name.replace("_", "-")) for name in needed}
    assert names - installed(extra) == set()
    assert {"numpy", "matplotlib"} <= names
