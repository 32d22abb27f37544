"""All benchmarks of the general solver: random problems and public collections, against other solvers.

    python -m benchmarks.general [FAMILY ...] [--data FOLDER] [--small] [--redraw]

Families are polyhedral, everyday, correlation, composite, imaging, networks, sequences, forced, control,
maros, netlib, cblib, maxcut and sdplib; all by default, without the collections if no folder is given
(--data, or LOPRO_DATA, names the folder that holds them). One process, one thread, one judge; JSON, a
table and a performance profile go to benchmarks/results.
"""

from __future__ import annotations

import argparse
import importlib
import importlib.util
import os
import sys
from pathlib import Path

#: The module of each family, and its arguments.
FAMILIES: dict[str, tuple[str, list[str]]] = {
    "polyhedral": ("polyhedral", []),
    "everyday": ("everyday", []),
    "correlation": ("correlation", []),
    "composite": ("composite", []),
    "imaging": ("imaging", []),
    "networks": ("linear", ["networks"]),
    "sequences": ("sequences", ["drift", "portfolio"]),
    "forced": ("forced", []),
    "control": ("sequences", ["control"]),
    "maros": ("programs", ["maros"]),
    "netlib": ("linear", ["netlib", "infeasible"]),
    "cblib": ("cblib", []),
    "maxcut": ("maxcut", []),
    "sdplib": ("sdplib", []),
}
COLLECTIONS = ("control", "maros", "netlib", "cblib", "maxcut", "sdplib")
THREAD_VARIABLES = ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS")


def parse(arguments: list[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.general", description=__doc__)
    parser.add_argument("family", nargs="*", choices=[[], *FAMILIES], help="all by default")
    parser.add_argument("--data", type=Path, help="the folder that holds the collections")
    parser.add_argument("--small", action="store_true", help="toy sizes, as a test")
    parser.add_argument("--redraw", action="store_true", help="from the files of an earlier run")
    return parser.parse_args(arguments)


def main(arguments: list[str]) -> int:
    options = parse(arguments)
    if options.data is not None:
        os.environ["LOPRO_DATA"] = str(options.data)
    known = "LOPRO_DATA" in os.environ
    chosen = options.family or [f for f in FAMILIES if known or f not in COLLECTIONS]
    for family in [] if options.redraw else chosen:
        module, own = FAMILIES[family]
        if importlib.util.find_spec(f"benchmarks.general.{module}") is None:
            continue
        print(f"\n{family}", flush=True)
        small = ["--small"] if options.small and family not in COLLECTIONS else []
        # Some read sys.argv, some take arguments.
        sys.argv = [f"benchmarks.general.{module}", *own, *small]
        run = importlib.import_module(f"benchmarks.general.{module}").main
        run(*([sys.argv[1:]] if run.__code__.co_argcount else []))
    if not options.small:
        show()
    return 0


def show() -> None:
    """Print the table of all recorded runs, and draw their profiles."""
    import _style
    from _report import RESULTS

    from benchmarks.general.profile import draw, entries_of, table

    entries = entries_of(RESULTS)
    print(f"\n{table(entries)}")
    print("profile:", *_style.save(draw(entries), "general_profile", docs=True))


if __name__ == "__main__":
    for variable in THREAD_VARIABLES:
        os.environ[variable] = "1"
    os.environ.setdefault("MPLBACKEND", "Agg")
    # The shared helpers are imported by name, as in the benchmarks that are plain scripts.
    sys.path.insert(0, str(Path(__file__).parent.parent))
    sys.exit(main(sys.argv[1:]))
