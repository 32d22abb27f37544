"""Pages made from the code at build time: the methods, the commands, and the reference of every room."""

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

from sphinx.application import Sphinx
from sphinx.config import Config

import lopro
from lopro.cli import main
from lopro.methods.registry import methods


@dataclass(frozen=True)
class Room:
    """A module whose public names get a page."""

    name: str
    title: str


#: Rooms in the order of the reference, with better titles than their names.
KNOWN = [
    Room("lopro", "Front doors, methods, results"),
    Room("lopro.objectives", "Objectives"),
    Room("lopro.constraints", "Constraints"),
    Room("lopro.penalties", "Penalties"),
    Room("lopro.metric", "Sparse metric learning"),
    Room("lopro.inner", "Inner algorithms"),
    Room("lopro.theorems", "The choices of the theorems"),
    Room("lopro.stopping", "Stopping rules"),
    Room("lopro.adaptive", "Schedules without constants"),
    Room("lopro.restarts", "Restarts in parallel"),
    Room("lopro.baselines", "Baselines"),
    Room("lopro.certificates", "Certificates"),
    Room("lopro.theory", "Constants of the theory"),
    Room("lopro.projections", "Projections"),
    Room("lopro.maps", "Linear maps"),
    Room("lopro.protocol", "What methods and the driver say to each other"),
    Room("lopro.functions", "What functions know of themselves"),
    Room("lopro.errors", "Errors"),
    Room("lopro.sklearn", "Estimators for scikit-learn"),
    Room("lopro.cvxpy", "A solver for CVXPY"),
]


def rooms() -> list[Room]:
    """Return the rooms above, and whatever other modules `lopro` makes public."""
    public = [f"lopro.{name}" for name in lopro.__all__ if inspect.ismodule(getattr(lopro, name))]
    known = {room.name for room in KNOWN}
    titles = {name: name.rpartition(".")[2].replace("_", " ").capitalize() for name in public}
    return KNOWN + [Room(name, titles[name]) for name in public if name not in known]


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
    """Write the table and one page for each room, and a page that lists them."""
    folder = Path(app.srcdir) / "_generated"
    (folder / "api").mkdir(parents=True, exist_ok=True)
    for room in ("lopro", "lopro.baselines"):
        write(folder / f"methods_of_{room}.md", methods_table(room))
    for room in rooms():
        write(folder / "api" / f"{room.name}.rst", page(room))
    write(folder / "api" / "index.rst", index())
    for command in ("bpdn", "metric", "bench", "reproduce"):
        write(folder / f"help_{command}.txt", help_of(command))


def methods_table(room: str) -> str:
    """Return a table of the methods in a room, each with what it declares about itself."""
    rows = [
        "| Method | Assumes | Asks for | Rate | Projects | Reference |",
        "|---|---|---|---|---|---|",
    ]
    for name, method in methods().items():
        home, _, short = name.rpartition(".")
        if home == room:
            about = method.card
            facts = about.assumptions, about.oracles, about.rate, about.projections, about.reference
            # A bar would end the cell, and a star or an underscore may start an emphasis.
            cells = [re.sub(r"([|*_~<])", r"\\\1", fact) for fact in facts]
            rows.append(f"| {{py:obj}}`{short} <{name}>` | {' | '.join(cells)} |")
    return "\n".join(rows) + "\n"


def help_of(command: str) -> str:
    """Return what ``lopro COMMAND --help`` prints on a page of this width."""
    os.environ["COLUMNS"] = "100"
    with contextlib.redirect_stdout(io.StringIO()) as printed, contextlib.suppress(SystemExit):
        main([command, "--help"])
    return printed.getvalue()


def write(path: Path, text: str) -> None:
    """Write only what has changed: an untouched file is not built again."""
    if not path.exists() or path.read_text(encoding="utf-8") != text:
        path.write_text(text, encoding="utf-8")


def page(room: Room) -> str:
    """Return the page of a room: its own first words, a list of names, and the docstrings."""
    module = pkgutil.resolve_name(room.name)
    names, home = documented(module), homes()
    parts = [
        heading(room.title, "="),
        f".. py:module:: {room.name}",
        (inspect.getdoc(module) or "").strip(),
        "\n".join(summary(home[getattr(module, name)], module, name) for name in names),
        *(entry(room, module, name) for name in names if home[getattr(module, name)] == room.name),
    ]
    return "\n\n".join(parts) + "\n"


def homes() -> dict[object, str]:
    """Return the room where each thing is documented: the first one that makes it public."""
    found: dict[object, str] = {}
    for room in rooms():
        module = pkgutil.resolve_name(room.name)
        for name in documented(module):
            found.setdefault(getattr(module, name), room.name)
    return found


def documented(module: ModuleType) -> list[str]:
    """Return the public names that have words of their own: not constants, not aliases of types."""
    things = {name: getattr(module, name) for name in module.__all__}
    return [n for n, thing in things.items() if inspect.isclass(thing) or inspect.isfunction(thing)]


def summary(home: str, module: ModuleType, name: str) -> str:
    """Return a name and the first line of its docstring."""
    words = (inspect.getdoc(getattr(module, name)) or "").partition("\n")[0]
    return f"- :py:obj:`~{home}.{name}`: {words}"


def entry(room: Room, module: ModuleType, name: str) -> str:
    """Return the directive that documents one name."""
    is_class = inspect.isclass(getattr(module, name))
    options = f"\n   :members:\n   :exclude-members: {ROUTING}" if is_class else ""
    kind = "class" if is_class else "function"
    # Names start with the room, so that a link to lopro.bpdn works wherever it is defined.
    return f"{heading(name, '-')}\n\n.. auto{kind}:: {room.name}.{name}{options}"


def index() -> str:
    """Return the page that lists the rooms."""
    pages = "\n".join(f"   {room.title} <{room.name}>" for room in rooms())
    text = (
        "Every public name, from its docstring; the examples in them run in the tests. Start with "
        ":doc:`lopro`: its functions are all that most programs call."
    )
    return f"{heading('Reference', '=')}\n\n{text}\n\n.. toctree::\n   :maxdepth: 1\n\n{pages}\n"


def heading(text: str, line: str) -> str:
    """Return a title with its underline."""
    return f"{text}\n{line * len(text)}"
