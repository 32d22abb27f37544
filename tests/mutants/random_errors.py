"""Errors at random places of the mathematics: operators, signs, comparisons, constants, arguments.

Every place is found in the syntax tree and changed in the text, so that nothing else of the file moves. The
tests of a file are those that its entries in the list name, and those that import it by its name.
"""

from __future__ import annotations

import ast
import random
import re
from collections.abc import Iterator
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
    """Return the tests that the list names for a file, and those that import its module by name."""
    found = {test for m in listed if m.file == file for test in m.tests}
    module = (
        file.removeprefix("src/").removesuffix(".py").removesuffix("/__init__").replace("/", ".")
    )
    named = re.compile(rf"\b{re.escape(module)}\b")
    for path in (root / "tests").rglob("test_*.py"):
        if named.search(path.read_text(encoding="utf-8")):
            found.add(path.relative_to(root).as_posix())
    return tuple(sorted(found))


def random_mutants(
    count: int, seed: int, file: str, root: Path, listed: list[Mutant]
) -> list[Placed]:
    """Return so many errors at random, of files whose path contains this and that have tests."""
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
