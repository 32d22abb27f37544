"""Errors at random places of the mathematics: operators, signs, comparisons, constants, arguments.

Every place is found in the syntax tree and changed in the text, so that nothing else of the file moves. The
tests of a file are those that its entries in the list name, and those that import the module or one of its
names.
"""

from __future__ import annotations

import ast
import random
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from mutants.listing import Mutant

__all__ = ["Edit", "Placed", "edits", "random_mutants", "related_tests"]

_ARITHMETIC = {ast.Add: ("+", "-"), ast.Sub: ("-", "+"), ast.Mult: ("*", "/"), ast.Div: ("/", "*")}
_COMPARISONS = {
    ast.Lt: ("<", "<="), ast.LtE: ("<=", "<"), ast.Gt: (">", ">="), ast.GtE: (">=", ">"),
    ast.Eq: ("==", "!="), ast.NotEq: ("!=", "=="),
}  # fmt: skip
_EXTREMES = {"min": "max", "max": "min", "minimum": "maximum", "maximum": "minimum"}
#: Packages with little mathematics.
_LEFT_OUT = ("cli/", "driver/printing", "driver/plotting", "errors")


@dataclass(frozen=True)
class Edit:
    """A piece of a text and what it becomes."""

    start: int
    end: int
    after: str
    line: int


@dataclass(frozen=True)
class Placed(Mutant):
    """An error at one place of a file, which need not be the only one with its text."""

    start: int = 0

    def applied_to(self, text: str) -> str:
        return text[: self.start] + self.after + text[self.start + len(self.before) :]


def edits(text: str) -> Iterator[Edit]:
    """Yield every single change of a source that makes other mathematics of it.

    Examples
    --------
    >>> [
    ...     (e.line, "a = b - c"[: e.start] + e.after + "a = b - c"[e.end :])
    ...     for e in edits("a = b - c")
    ... ]
    [(1, 'a = b + c')]
    """
    starts = [0]
    for line in text.encode().splitlines(keepends=True):
        starts.append(starts[-1] + len(line))
    raw = text.encode()

    def at(line: int, column: int) -> int:
        return len(raw[: starts[line - 1] + column].decode())

    for node in ast.walk(ast.parse(text)):
        for start, end, after in _changes(node, text, at):
            if text[start:end] != after:
                yield Edit(start, end, after, getattr(node, "lineno", 0))


def _span(node: ast.AST, at) -> tuple[int, int]:  # type: ignore[no-untyped-def]
    return at(node.lineno, node.col_offset), at(node.end_lineno, node.end_col_offset)  # type: ignore[attr-defined]


def _changes(node: ast.AST, text: str, at) -> Iterator[tuple[int, int, str]]:  # type: ignore[no-untyped-def]
    if isinstance(node, ast.BinOp) and type(node.op) in _ARITHMETIC:
        yield from _between(node.left, node.right, *_ARITHMETIC[type(node.op)], text, at)
    elif isinstance(node, ast.Compare) and type(node.ops[0]) in _COMPARISONS:
        yield from _between(
            node.left, node.comparators[0], *_COMPARISONS[type(node.ops[0])], text, at
        )
    elif isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
        start = _span(node, at)[0]
        yield start, start + 1, ""
    elif isinstance(node, ast.Constant) and type(node.value) in (int, float):
        start, end = _span(node, at)
        yield start, end, repr(node.value + 1 if isinstance(node.value, int) else 2.0 * node.value)
    elif isinstance(node, ast.Call):
        yield from _of_call(node, text, at)


def _between(left: ast.AST, right: ast.AST, old: str, new: str, text: str, at):  # type: ignore[no-untyped-def]
    start, end = _span(left, at)[1], _span(right, at)[0]
    place = text.find(old, start, end)
    if place >= 0:
        yield place, place + len(old), new


def _of_call(node: ast.Call, text: str, at) -> Iterator[tuple[int, int, str]]:  # type: ignore[no-untyped-def]
    start, end = _span(node.func, at)
    name = re.search(r"\w+$", text[start:end])
    if name and name.group() in _EXTREMES:
        yield end - len(name.group()), end, _EXTREMES[name.group()]
    plain = not any(isinstance(a, ast.Starred) for a in node.args)
    if len(node.args) == 2 and plain and name and name.group() not in _EXTREMES:
        (a, b), (c, d) = _span(node.args[0], at), _span(node.args[1], at)
        yield a, d, text[c:d] + text[b:c] + text[a:b]


def related_tests(file: str, root: Path, listed: list[Mutant]) -> tuple[str, ...]:
    """Return the tests that the list names for a file, and those that use its module or one of its names.

    A test may import a name from the package (``from lopro.certificates import Bound``), from a package with
    a short name (``lo.LeastSquares``), or from the library (``lopro.solve``). Tests of the list come first,
    then those that import the module itself: they are the most likely to fail, and the first failure ends a
    trial.
    """
    module = (
        file.removeprefix("src/").removesuffix(".py").removesuffix("/__init__").replace("/", ".")
    )
    ranked = {test: 0 for m in listed if m.file == file for test in m.tests}
    itself = re.compile(rf"\b{re.escape(module)}\b")
    imported = _imports_of(module, _public_names((root / file).read_text(encoding="utf-8")))
    for path in (root / "tests").rglob("test_*.py"):
        text, name = path.read_text(encoding="utf-8"), path.relative_to(root).as_posix()
        if itself.search(text):
            ranked.setdefault(name, 1)
        elif imported(text):
            ranked.setdefault(name, 2)
    return tuple(sorted(ranked, key=lambda test: (ranked[test], test)))


def _public_names(text: str) -> list[str]:
    """Return the names in ``__all__`` of a module."""
    for node in ast.parse(text).body:
        if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "__all__":
            return [str(name) for name in ast.literal_eval(node.value)]
    return []


def _imports_of(module: str, names: list[str]) -> Callable[[str], bool]:
    """Return whether a text imports a package around a module and mentions one of the names of the module."""
    library, *folders = module.split(".")
    packages = [".".join([library, *folders[:i]]) for i in range(1, len(folders))]
    used = re.compile(rf"\b(?:{'|'.join(map(re.escape, names)) or '(?!)'})\b")
    parts = [rf"\b{re.escape(p)}\b" for p in packages]
    parts += [rf"^from {library} import .*\b{f}\b" for f in folders[:1] if packages]
    around = re.compile("|".join(parts) or "(?!)", flags=re.MULTILINE)
    direct = re.compile(
        rf"\b{library}\.(?:{'|'.join(map(re.escape, names)) or '(?!)'})\b"
        rf"|^from {library} import .*{used.pattern}",
        flags=re.MULTILINE,
    )
    return lambda text: bool(direct.search(text) or (around.search(text) and used.search(text)))


def random_mutants(
    count: int, seed: int, file: str, root: Path, listed: list[Mutant]
) -> list[Placed]:
    """Return a number of random errors in files that have tests and whose path contains a text."""
    places: list[tuple[str, Edit]] = []
    tests: dict[str, tuple[str, ...]] = {}
    for path in sorted((root / "src").rglob("*.py")):
        name = path.relative_to(root).as_posix()
        if file not in name or any(part in name for part in _LEFT_OUT):
            continue
        tests[name] = related_tests(name, root, listed)
        if tests[name]:
            places += [(name, edit) for edit in edits(path.read_text(encoding="utf-8"))]
    chosen = random.Random(seed).sample(places, min(count, len(places)))
    found = []
    for name, edit in chosen:
        text = (root / name).read_text(encoding="utf-8")
        before = text[edit.start : edit.end]
        shown = (
            f"{Path(name).stem}:{edit.line}:{before or '(nothing)'}->{edit.after or '(nothing)'}"
        )
        found.append(Placed(shown, name, before, edit.after, tests[name], "", edit.start))
    return found
