"""Pages made from the code at build time: the methods, the commands, and the reference of every module."""

from __future__ import annotations

import contextlib
import inspect
import io
import os
import pkgutil
import re
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType

from contract_tables import contract_tables
from sphinx.application import Sphinx
from sphinx.config import Config

import lopro
from lopro.cli import main
from lopro.methods.registry import methods


@dataclass(frozen=True)
class PublicModule:
    """A module whose public names get a page."""

    name: str
    title: str


#: Modules in the order of the reference, with better titles than their names.
KNOWN = [
    PublicModule("lopro", "Functions that solve, methods, results"),
    PublicModule("lopro.objectives", "Objectives"),
    PublicModule("lopro.constraints", "Constraints"),
    PublicModule("lopro.penalties", "Penalties"),
    PublicModule("lopro.metric", "Sparse metric learning"),
    PublicModule("lopro.inner", "Inner algorithms"),
    PublicModule("lopro.theorems", "The choices of the theorems"),
    PublicModule("lopro.stopping", "Stopping rules"),
    PublicModule("lopro.adaptive", "Schedules without constants"),
    PublicModule("lopro.restarts", "Restarts in parallel"),
    PublicModule("lopro.baselines", "Baselines"),
    PublicModule("lopro.certificates", "Certificates"),
    PublicModule("lopro.theory", "Constants of the theory"),
    PublicModule("lopro.projections", "Projections"),
    PublicModule("lopro.maps", "Linear maps"),
    PublicModule("lopro.protocol", "Messages between methods and the driver"),
    PublicModule("lopro.functions", "Terms, atoms and constants"),
    PublicModule("lopro.errors", "Errors"),
    PublicModule("lopro.sklearn", "Estimators for scikit-learn"),
    PublicModule("lopro.cvxpy", "A solver for CVXPY"),
]


def public_modules() -> list[PublicModule]:
    """Return the modules above, and whatever other modules `lopro` makes public."""
    public = [f"lopro.{name}" for name in lopro.__all__ if inspect.ismodule(getattr(lopro, name))]
    known = {public.name for public in KNOWN}
    titles = {name: name.rpartition(".")[2].replace("_", " ").capitalize() for name in public}
    return KNOWN + [PublicModule(name, titles[name]) for name in public if name not in known]


#: Methods that scikit-learn adds to its estimators, with links into its own pages.
ROUTING = (
    "get_metadata_routing, set_callbacks, set_fit_request, set_score_request, set_predict_request, "
    "set_decision_function_request, set_transform_request"
)


def setup(app: Sphinx) -> dict[str, bool]:
    """Write the pages before Sphinx looks for its sources."""
    app.connect("config-inited", write_pages)
    return {"parallel_read_safe": True, "parallel_write_safe": True}


def write_pages(app: Sphinx, config: Config) -> None:
    """Write the table and one page for each module, and a page that lists them."""
    folder = Path(app.srcdir) / "_generated"
    (folder / "api").mkdir(parents=True, exist_ok=True)
    for prefix in ("lopro", "lopro.baselines"):
        write(folder / f"methods_of_{prefix}.md", methods_table(prefix))
    for public in public_modules():
        write(folder / "api" / f"{public.name}.rst", page(public))
    write(folder / "api" / "index.rst", index())
    for command in ("bpdn", "metric", "bench", "reproduce"):
        write(folder / f"help_{command}.txt", help_of(command))
    write(folder / "imports.md", imports_table())
    write(folder / "contract.md", contract_tables())


def imports() -> dict[str, set[str]]:
    """Return which packages each package of lopro imports from, at the top of files or inside functions."""
    root = Path(lopro.__file__).parent
    found: dict[str, set[str]] = {}
    for path in root.rglob("*.py"):
        package = path.relative_to(root).parts[0].removesuffix(".py")
        text = path.read_text(encoding="utf-8")
        named = re.findall(r"^ *from lopro\.(\w+)", text, re.MULTILINE)
        found.setdefault(package, set()).update(set(named) - {package})
    return found


def imports_table() -> str:
    """Return a table of these imports, each package after those that it builds on."""
    left, rows = imports(), ["| package | imports from |", "|---|---|"]
    placed: list[str] = []
    while left:
        package = min(left, key=lambda name: (len(left[name] - set(placed)), len(left[name]), name))
        names = sorted(
            left.pop(package), key=lambda name: placed.index(name) if name in placed else 99
        )
        if not package.startswith("__"):
            rows.append(
                f"| `{package}` | {', '.join(f'`{name}`' for name in names) or 'nothing'} |"
            )
        placed.append(package)
    return "\n".join(rows) + "\n"


def methods_table(prefix: str) -> str:
    """Return a table of the methods in a module, each with what it declares about itself."""
    rows = [
        "| Method | Assumes | Asks for | Rate | Projects | Reference |",
        "|---|---|---|---|---|---|",
    ]
    for name, method in methods().items():
        home, _, short = name.rpartition(".")
        if home == prefix:
            about = method.card
            facts = about.assumptions, about.oracles, about.rate, about.projections, about.reference
            # A bar would end the cell, and a star or an underscore may start an emphasis.
            cells = [re.sub(r"([|*_~<])", r"\\\1", fact) for fact in facts]
            rows.append(f"| {{py:obj}}`{short} <{name}>` | {' | '.join(cells)} |")
    return "\n".join(rows) + "\n"


def help_of(command: str) -> str:
    """Return the output of ``lopro COMMAND --help`` for a page of this width."""
    os.environ["COLUMNS"] = "100"
    with contextlib.redirect_stdout(io.StringIO()) as printed, contextlib.suppress(SystemExit):
        main([command, "--help"])
    return printed.getvalue()


def write(path: Path, text: str) -> None:
    """Write only what has changed: an untouched file is not built again."""
    if not path.exists() or path.read_text(encoding="utf-8") != text:
        path.write_text(text, encoding="utf-8")


def page(public: PublicModule) -> str:
    """Return the page of a module: its own first words, a list of names, and the docstrings."""
    module = pkgutil.resolve_name(public.name)
    names, home = documented(module), homes()
    parts = [
        heading(public.title, "="),
        f".. py:module:: {public.name}",
        (inspect.getdoc(module) or "").strip(),
        "\n".join(summary(home[getattr(module, name)], module, name) for name in names),
        *(
            entry(public, module, name)
            for name in names
            if home[getattr(module, name)] == public.name
        ),
    ]
    return "\n\n".join(parts) + "\n"


def homes() -> dict[object, str]:
    """Return the module where each thing is documented: the first one that makes it public."""
    found: dict[object, str] = {}
    for public in public_modules():
        module = pkgutil.resolve_name(public.name)
        for name in documented(module):
            found.setdefault(getattr(module, name), public.name)
    return found


def documented(module: ModuleType) -> list[str]:
    """Return the public names that have words of their own: not constants, not aliases of types."""
    things = {name: getattr(module, name) for name in module.__all__}
    return [n for n, thing in things.items() if inspect.isclass(thing) or inspect.isfunction(thing)]


def summary(home: str, module: ModuleType, name: str) -> str:
    """Return a name and the first line of its docstring."""
    words = (inspect.getdoc(getattr(module, name)) or "").partition("\n")[0]
    return f"- :py:obj:`~{home}.{name}`: {words}"


def entry(public: PublicModule, module: ModuleType, name: str) -> str:
    """Return the directive that documents one name."""
    is_class = inspect.isclass(getattr(module, name))
    options = f"\n   :members:\n   :exclude-members: {ROUTING}" if is_class else ""
    kind = "class" if is_class else "function"
    # Names start with the module, so that a link to lopro.bpdn works wherever it is defined.
    return f"{heading(name, '-')}\n\n.. auto{kind}:: {public.name}.{name}{options}"


def index() -> str:
    """Return the page that lists the modules."""
    pages = "\n".join(f"   {public.title} <{public.name}>" for public in public_modules())
    text = (
        "Every public name, from its docstring; the examples in them run in the tests. Start with "
        ":doc:`lopro`: its functions are all that most programs call."
    )
    return f"{heading('Reference', '=')}\n\n{text}\n\n.. toctree::\n   :maxdepth: 1\n\n{pages}\n"


def heading(text: str, line: str) -> str:
    """Return a title with its underline."""
    return f"{text}\n{line * len(text)}"
