"""Numbers that describe the structure of the source, read from its syntax trees.

A numeric constant is a name at module level, or a field of a class whose name ends in Settings, with a value
made of numbers alone. It has a source where the comment above or beside it, the docstring below it or that of
its module or class names one (`SOURCE`); a docstring of a module or class counts where it names a command.
"""

from __future__ import annotations

import ast
import json
import re
from collections import defaultdict
from collections.abc import Iterator
from itertools import zip_longest
from pathlib import Path
from typing import Any

import lopro

__all__ = ["before", "inventory", "report"]

_HOME = Path(lopro.__file__).parent

#: How a comment names a source: a command or a file, a publication, a numbered statement, figures
#: by size, or what was measured.
SOURCE = re.compile(
    r"python -m |benchmarks[./]\w|theory\.md|\barXiv\b|\bdoi\b|et al\.|\((19|20)\d\d\)"
    r"|\b(Theorem|Lemma|Corollary|Proposition|section|eq\.) ?\(?\d|\b[nmd] = \d+: \d"
    r"|\bmeasured (on|against|with|by) "
)

Modules = dict[str, ast.Module]


def inventory(home: Path = _HOME) -> dict[str, Any]:
    """Return the numbers of the package in this folder."""
    texts = {path: path.read_text(encoding="utf-8") for path in sorted(home.rglob("*.py"))}
    modules = {_module_name(home, path): ast.parse(text) for path, text in texts.items()}
    lengths = {_module_name(home, path): text.count("\n") for path, text in texts.items()}
    constants = [c for text in texts.values() for c in _constants(text)]
    twice = _classes_twice(modules)
    cycles = _import_cycles(modules)
    return {
        "lines": sum(lengths.values()),
        "files": len(texts),
        "packages": len({path.parent for path in texts}),
        "files above 300 lines": sum(length > 300 for length in lengths.values()),
        "class names defined more than once": len(twice),
        "numeric constants": len(constants),
        "numeric constants with a source": sum(known for _, known in constants),
        "isinstance": _count_calls(modules, "isinstance"),
        "function-level imports of lopro": sum(1 for _ in _late_imports(modules, home.name)),
        "import cycles inside packages": len(cycles),
        "public names": _public_names() if home == _HOME else {},
        "classes": twice,
        "cycles": cycles,
    }


def _module_name(home: Path, path: Path) -> str:
    parts = path.relative_to(home.parent).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def _classes_twice(modules: Modules) -> dict[str, list[str]]:
    """Return the names of classes that several modules define, private ones as well."""
    found: dict[str, list[str]] = defaultdict(list)
    for module, tree in modules.items():
        for node in tree.body:
            if isinstance(node, ast.ClassDef):
                found[node.name].append(module)
    return {name: where for name, where in sorted(found.items()) if len(where) > 1}


def _constants(text: str) -> Iterator[tuple[str, bool]]:
    """Yield each numeric constant, and whether it has a source."""
    lines, tree = text.splitlines(), ast.parse(text)
    places: list[ast.Module | ast.ClassDef] = [tree]
    places += [n for n in tree.body if isinstance(n, ast.ClassDef) and n.name.endswith("Settings")]
    for place in places:
        shared = "python -m " in (ast.get_docstring(place) or "")
        for node, following in zip_longest(place.body, place.body[1:]):
            if isinstance(node, (ast.Assign, ast.AnnAssign)) and _is_numeric(node.value):
                words = _comments(lines, node) + _docstring(following)
                yield from ((name, shared or bool(SOURCE.search(words))) for name in _names(node))


def _docstring(node: ast.stmt | None) -> str:
    """Return the text of a statement that is a string, as it documents the name above it."""
    value = node.value if isinstance(node, ast.Expr) else None
    return value.value if isinstance(value, ast.Constant) and isinstance(value.value, str) else ""


def _names(node: ast.Assign | ast.AnnAssign) -> list[str]:
    targets = node.targets if isinstance(node, ast.Assign) else [node.target]
    return [n.id for t in targets for n in ast.walk(t) if isinstance(n, ast.Name)]


def _is_numeric(value: ast.expr | None) -> bool:
    """Whether an expression is made of numbers and arithmetic alone."""
    if isinstance(value, ast.Tuple):
        return bool(value.elts) and all(_is_numeric(e) for e in value.elts)
    if isinstance(value, ast.UnaryOp):
        return _is_numeric(value.operand)
    if isinstance(value, ast.BinOp):
        return _is_numeric(value.left) and _is_numeric(value.right)
    number = isinstance(value, ast.Constant) and isinstance(value.value, (int, float))
    return number and not isinstance(value.value, bool)  # type: ignore[union-attr]


def _comments(lines: list[str], node: ast.stmt) -> str:
    """Return the comment beside a statement and the block of comments above it."""
    assert node.end_lineno is not None
    beside = [line.partition("#")[2] for line in lines[node.lineno - 1 : node.end_lineno]]
    above = []
    for line in reversed(lines[: node.lineno - 1]):
        if not line.strip().startswith("#"):
            break
        above.append(line.strip().lstrip("#:"))
    return " ".join([*reversed(above), *beside])


def _count_calls(modules: Modules, name: str) -> int:
    nodes = (node for tree in modules.values() for node in ast.walk(tree))
    return sum(isinstance(n, ast.Call) and getattr(n.func, "id", "") == name for n in nodes)


def _imported(node: ast.AST, module: str) -> Iterator[str]:
    """Yield the modules and names that a statement imports, with their full names."""
    if isinstance(node, ast.Import):
        yield from (alias.name for alias in node.names)
    elif isinstance(node, ast.ImportFrom):
        assert not node.level, f"{module}: relative imports are not used"
        yield from (f"{node.module}.{alias.name}" for alias in node.names)


def _late_imports(modules: Modules, root: str) -> Iterator[tuple[str, str]]:
    """Yield imports of the package inside functions."""
    for module, tree in modules.items():
        for function in ast.walk(tree):
            if isinstance(function, (ast.FunctionDef, ast.AsyncFunctionDef)):
                for node in ast.walk(function):
                    for name in _imported(node, module):
                        if name.split(".")[0] == root:
                            yield module, name


def _import_cycles(modules: Modules) -> list[list[str]]:
    """Return the sets of modules of one package below the root that import each other, in any way.

    Imports inside functions and for type checkers count as well: they are how cycles are hidden.
    """
    graph: dict[str, set[str]] = {}
    for module, tree in modules.items():
        package = module.split(".")[:2]
        names = (name for node in ast.walk(tree) for name in _imported(node, module))
        targets = {_module_of(name, modules) for name in names}
        graph[module] = {t for t in targets if t and t != module and t.split(".")[:2] == package}
    return sorted(sorted(part) for part in _components(graph) if len(part) > 1)


def _module_of(name: str, modules: Modules) -> str | None:
    """Return the module that a full name belongs to."""
    while name and name not in modules:
        name = name.rpartition(".")[0]
    return name or None


def _components(graph: dict[str, set[str]]) -> list[set[str]]:
    """Return the strongly connected components: modules that reach each other."""
    reach = {module: _reachable(graph, module) for module in graph}
    found: list[set[str]] = []
    for module in graph:
        if not any(module in part for part in found):
            found.append({module} | {n for n in reach[module] if module in reach.get(n, ())})
    return found


def _reachable(graph: dict[str, set[str]], start: str) -> set[str]:
    seen: set[str] = set()
    stack = [start]
    while stack:
        for target in graph.get(stack.pop(), set()) - seen:
            seen.add(target)
            stack.append(target)
    return seen


def _public_names() -> dict[str, list[str]]:
    spaces = ("objectives", "constraints", "penalties", "maps")
    found = {"lopro": sorted(lopro.__all__)}
    return found | {f"lopro.{s}": sorted(getattr(lopro, s).__all__) for s in spaces}


def before() -> dict[str, Any]:
    """Return the numbers that were written down before the restructuring."""
    path = Path(__file__).parent / "reference" / "inventory.json"
    found: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))["before"]
    return found


def report(found: dict[str, Any], before: dict[str, Any]) -> list[str]:
    """Return the table of numbers, before and now."""
    lines = [f"{'':40s}{'before':>10s}{'now':>10s}"]
    for key, value in found.items():
        if isinstance(value, int):
            lines.append(f"{key:40s}{before.get(key, '-'):>10}{value:>10}")
    for key, names in found["public names"].items():
        old = before.get("public names", {}).get(key, [])
        lines.append(f"{'public names of ' + key:40s}{len(old):>10}{len(names):>10}")
        lines += [f"  removed: {key}.{name}" for name in old if name not in names]
        lines += [f"  added: {key}.{name}" for name in names if name not in old]
    return lines
