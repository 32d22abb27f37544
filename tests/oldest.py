"""The oldest release of each dependency that pyproject.toml allows, as constraints for pip."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

__all__ = ["oldest"]

_REQUIREMENT = re.compile(r"(?P<name>[A-Za-z0-9._-]+)(\[.*\])?>=(?P<version>[0-9.]+)$")


def oldest(pyproject: str) -> list[str]:
    """Return ``name==version`` for everything that has a lower bound."""
    project = tomllib.loads(pyproject)["project"]
    groups = [project["dependencies"], *project["optional-dependencies"].values()]
    found = (_REQUIREMENT.match(requirement) for group in groups for requirement in group)
    return sorted({f"{m['name']}=={m['version']}" for m in found if m})


if __name__ == "__main__":
    print("\n".join(oldest(Path("pyproject.toml").read_text())))
