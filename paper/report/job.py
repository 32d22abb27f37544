"""The job: run the parts that are not finished yet, and write the page after each of them."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import replace
from functools import lru_cache
from hashlib import sha256
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import lopro
from lopro.cli.machine import facts
from paper.report.blocks import Table
from paper.report.interrupt import interruptible
from paper.report.order import Order, Scale
from paper.report.page import Entry, page
from paper.report.parts import TITLES, part
from paper.report.progress import Announcer
from paper.report.store import Finished, Store

__all__ = ["check_installed", "reproduce"]

_NEEDS = {"matplotlib": "plot", "pywt": "examples"}


def check_installed() -> None:
    """Raise an error with the command to install if a package that the report needs is missing."""
    for module, extra in _NEEDS.items():
        if find_spec(module) is None:
            raise ValueError(
                f"the report needs {module}, which is not installed: pip install 'lopro[{extra}]'"
            )


def reproduce(
    names: Sequence[str] = tuple(TITLES),
    order: Order | None = None,
    out: Path = Path("report"),
    *,
    fresh: bool = False,
) -> dict[str, Finished]:
    """Run parts of the report and write ``index.html``; return these parts.

    Parts that were finished before with the same parameters, versions and machine are not run again.

    Parameters
    ----------
    names : sequence of str
        Names of parts, keys of `paper.report.parts.TITLES`.
    order : Order
        The scale and the data.
    out : Path
        The folder of the page; finished parts are kept in ``parts`` below it.
    fresh : bool
        Run everything again.
    """
    check_installed()
    order = order or Order()
    machine, store = facts(), Store(out / "parts")
    store.tidy()
    keys = {name: _key(name, order, machine) for name in TITLES}
    done = {name: found for name, key in keys.items() if (found := store.load(name, key))}
    todo = [name for name in names if fresh or name not in done]
    with interruptible(), Announcer(list(names)) as announcer:
        for name in names:
            announcer.begin(name)
            if name in todo:
                began = time.perf_counter()
                draft = part(name).run(replace(order, say=announcer.say))
                done[name] = store.save(name, keys[name], draft, time.perf_counter() - began)
                announcer.end(name, f"done in {done[name].seconds:.1f} s")
            else:
                announcer.end(name, f"finished before, {done[name].when}")
            _write(out, done, order, machine, set(names) | set(done))
    return {name: done[name] for name in names}


def _key(name: str, order: Order, machine: dict[str, Any]) -> dict[str, Any]:
    """Return all data that an outcome depends on; timings depend on the machine as well."""
    hardware = {k: machine[k] for k in ("lopro", "python", "processor", "cores", "linear algebra")}
    packages = {k: machine["packages"][k] for k in ("numpy", "scipy")}
    parameters = part(name).parameters(order)
    return {"parameters": parameters, "source": source_digest()} | hardware | packages


def _write(
    out: Path, done: dict[str, Finished], order: Order, machine: dict[str, Any], shown: set[str]
) -> None:
    entries = [Entry(name, TITLES[name], done.get(name)) for name in TITLES if name in shown]
    # Parts finished earlier are on the page with their times.
    text = page(entries, _about(machine), _timings(done), _lead(order), _footer())
    out.mkdir(parents=True, exist_ok=True)
    partial = out / "index.html.partial"
    partial.write_text(text, encoding="utf-8")
    partial.replace(out / "index.html")


def _lead(order: Order) -> str:
    return (
        "Yang, Lin and Zhang, A Richer Theory of Convex Constrained Optimization with Reduced Projections "
        f"and Improved Rates (ICML 2017), run with lopro {lopro.__version__} on this machine. "
        f"Scale {order.scale.value}."
    )


def _footer() -> str:
    command = {scale: f"--{scale.name.lower()}" for scale in (Scale.SHORT, Scale.FULL)}
    return (
        "Written by: lopro reproduce (in a checkout: make reproduce). Smaller and larger: "
        f"{command[Scale.SHORT]}, {command[Scale.FULL]}. Random numbers come from NumPy's default "
        "generator with the seeds named in each part; values repeat, times do not."
    )


def _timings(done: dict[str, Finished]) -> Table:
    rows = [
        (TITLES[name], f"{done[name].seconds:.1f}", done[name].when)
        for name in TITLES
        if name in done
    ]
    total = sum(finished.seconds for finished in done.values())
    return Table(
        "What took how long",
        ("part", "seconds", "measured"),
        (*rows, ("all", f"{total:.1f}", "")),
    )


def _about(machine: dict[str, Any]) -> Table:
    rows = [
        (name, str(machine[name])) for name in ("processor", "cores", "memory", "machine", "python")
    ]
    rows += [("linear algebra", pool) for pool in machine["linear algebra"]]
    versions = {"lopro": machine["lopro"]} | machine["packages"] | machine["optional"]
    rows += [(name, version) for name, version in versions.items() if version is not None]
    return Table("The machine and the versions", ("", ""), tuple(rows), words=2)


@lru_cache(maxsize=1)
def source_digest() -> str:
    """Return a digest of the package's source, which changes with every edit."""
    digest = sha256()
    root = Path(lopro.__file__).parent
    for path in sorted(root.rglob("*.py")):
        digest.update(path.relative_to(root).as_posix().encode() + path.read_bytes())
    return digest.hexdigest()[:16]
