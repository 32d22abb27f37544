"""The oldest releases that pyproject.toml allows for the environment of the tests, as constraints for pip."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

__all__ = ["oldest"]

_GROUPS = re.compile(r"lopro\[(?P<names>[a-z,]+)\]$")
_REQUIREMENT = re.compile(r"(?P<name>[A-Za-z0-9._-]+)(\[.*\])?>=(?P<version>[0-9.]+)$")


def oldest(pyproject: str, group: str = "dev") -> list[str]:
    """Return ``name==version`` for every lower bound of the package and of one of its extras.

    Other extras are not installed, and constraining them may contradict what the installed packages need.
    """
    project = tomllib.loads(pyproject)["project"]
    required = [*project["dependencies"], *_expanded(project["optional-dependencies"], group)]
    found = (_REQUIREMENT.match(requirement) for requirement in required)
    return sorted({f"{m['name']}=={m['version']}" for m in found if m})


def _expanded(groups: dict[str, list[str]], name: str) -> list[str]:
    """Return the requirements of an extra, with those of the extras that it includes."""
    found = []
    for requirement in groups[name]:
        included = _GROUPS.match(requirement)
        names = included["names"].split(",") if included else []
        found += [r for other in names for r in _expanded(groups, other)] or [requirement]
    return found


if __name__ == "__main__":
    print("\n".join(oldest(Path("pyproject.toml").read_text(encoding="utf-8"))))
