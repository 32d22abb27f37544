"""The list of mutants: the fields of an entry, and the checks of the list.

An entry of a ``*.toml`` file of this folder is

    [[mutant]]
    name = "short-unique-name"
    file = "src/lopro/run.py"
    before = "text that occurs exactly once in the file"
    after = "the error"
    tests = ["tests/unit/driver/test_status.py"]  # the fewest files that notice
    equivalent = "why no test can notice"    # only where that is so
"""

from __future__ import annotations

import tomllib
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import Any

__all__ = ["FOLDER", "ROOT", "Mutant", "flaws", "load"]

FOLDER = Path(__file__).parent
ROOT = FOLDER.parents[1]
_NEEDED, _OPTIONAL = {"name", "file", "before", "after", "tests"}, {"equivalent"}


@dataclass(frozen=True)
class Mutant:
    """One error that a test has to notice."""

    name: str
    file: str
    before: str
    after: str
    tests: tuple[str, ...]
    equivalent: str = ""

    @staticmethod
    def of(entry: dict[str, Any]) -> Mutant:
        """Read an entry; a key that is missing or unknown is an error."""
        keys = set(entry)
        if not _NEEDED <= keys <= _NEEDED | _OPTIONAL:
            wrong = sorted((_NEEDED - keys) | (keys - _NEEDED - _OPTIONAL))
            raise ValueError(f"mutant {entry.get('name')!r}: missing or unknown keys {wrong}")
        return Mutant(**(entry | {"tests": tuple(entry["tests"])}))

    def applied_to(self, text: str) -> str:
        """Return the source with the error in."""
        return text.replace(self.before, self.after)

    def flaws(self, root: Path) -> list[str]:
        """Return the errors of the entry, judged by the sources under ``root``."""
        found = []
        if not (root / self.file).is_file():
            found.append(f"there is no {self.file}")
        else:
            count = (root / self.file).read_text(encoding="utf-8").count(self.before)
            if count != 1:
                found.append(f"`before` occurs {count} times in {self.file}, not once")
        if self.after == self.before:
            found.append("`after` is the same as `before`")
        if not self.tests:
            found.append("no tests are named")
        found += [f"there is no {test}" for test in self.tests if not (root / test).is_file()]
        return [f"{self.name}: {flaw}" for flaw in found]


def load(folder: Path = FOLDER) -> list[Mutant]:
    """Return the mutants of all files of the folder."""
    files = sorted(folder.glob("*.toml"))
    return [
        Mutant.of(e) for f in files for e in tomllib.loads(f.read_text(encoding="utf-8"))["mutant"]
    ]


def flaws(mutants: list[Mutant], root: Path = ROOT) -> list[str]:
    """Return all that is wrong with the list."""
    names = Counter(m.name for m in mutants)
    twice = [
        f"{name}: {count} mutants have this name" for name, count in names.items() if count > 1
    ]
    return twice + [flaw for m in mutants for flaw in m.flaws(root)]
