"""Counts of `lopro.bpdn` with one of its fallbacks switched off.

    python -m benchmarks.bpdn.without                     # all of them
    python -m benchmarks.bpdn.without programs cones      # some
    python -m benchmarks.bpdn.without splitting --only cosine

The instances are those of `counts`, one of each class of `who_wins` that is small enough, and a few that are
ill-conditioned or have nearly as many nonzeros as rows. Those are printed whose status changes, or whose
products change by more than a tenth. Each run ends with TIME_LIMIT after the seconds given.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from typing import Any
from unittest.mock import patch

import lopro
from benchmarks.bpdn.classes import CLASSES, close_to_y
from benchmarks.bpdn.counted import INSTANCES
from benchmarks.bpdn.counted_data import cosine, ill_conditioned
from benchmarks.bpdn.counts import rows_of
from lopro.core.deadline import Deadline

__all__ = ["FALLBACKS", "changes"]

PACKAGE = "lopro.basis_pursuit."


def nothing(*_: Any, **__: Any) -> None:
    """Replace a function by one that returns None."""


def no(*_: Any, **__: Any) -> bool:
    """Replace a condition by one that is never met."""
    return False


def no_candidates(*_: Any, **__: Any) -> tuple[()]:
    """Replace a method by one that yields no candidates."""
    return ()


#: By name: the attributes that are replaced to switch a fallback off, and their replacements.
FALLBACKS: dict[str, dict[str, Any]] = {
    "one nonzero": {
        f"{module}.one_nonzero": no_candidates
        for module in ("working_set", "operators.matrix_free", "operators.by_products")
    },
    "exact path": {"working_set.signs_at_radius": nothing},
    "programs": {"working_set.fits_program": no},
    "cones": {"working_set.fits_cones": no, "operators.matrix_free.fits_cones": no},
    "splitting": {"operators.search.OperatorSearch._split": nothing},
    "lengths": {"operators.search.OperatorSearch._scale_steps": nothing},
    "reading operators": {"operators.by_products._readable": nothing},
    "columns of operators": {"operators.matrix_free._reads_columns": no},
    "programs for penalties": {"working_set.improve_penalised": no_candidates},
    "equations for the square root": {"working_set._at_equations": no_candidates},
    "end of blocks": {"blocks.search.BlockSearch._try_to_end": nothing},
}  # fmt: skip

#: Words in the names of classes that take too long here.
LARGE = ("20000x200000", "2^16", "image", "MRI", "50 right", "1000x5000")


def instances() -> Iterator[tuple[str, Callable[[], Any]]]:
    """Yield names and calls that solve an instance."""
    yield from INSTANCES.items()
    for name, make in CLASSES.items():
        if not any(word in name for word in LARGE):
            yield name, lambda name=name, make=make: lopro.bpdn(*make(0), joint="rows" in name)
    for decades in (6.0, 9.0):
        yield (
            f"ill-conditioned 60x240, {decades:.0f}",
            lambda decades=decades: lopro.bpdn(*ill_conditioned(60, 240, decades, 1e-4, 1)),
        )
    yield "close to y, 1e-9", lambda: lopro.bpdn(*close_to_y(100, 400, 1e-9, 0))
    yield "cosine, dense 16384", lambda: lopro.bpdn(*cosine(16384, 8000, 3600, 1e-3, 0))


def solved(run: Callable[[], Any], seconds: float) -> tuple[str, int]:
    """Return the statuses and products of a run."""
    with Deadline(seconds).active():
        rows = list(rows_of(run()))
    states = " ".join(sorted({row["status"] for row in rows}))
    return states, sum(row["matvecs"] + row["rmatvecs"] for row in rows)


def changes(name: str, words: list[str], seconds: float) -> Iterator[str]:
    """Yield a line for each instance whose status or products change without a fallback."""
    for instance, run in instances():
        if words and not any(word in instance for word in words):
            continue
        state, products = solved(run, seconds)
        with ExitStack() as off:
            for place, stand_in in FALLBACKS[name].items():
                off.enter_context(patch(PACKAGE + place, stand_in))
            other, more = solved(run, seconds)
        if other != state or abs(more - products) > 0.1 * products:
            yield f"{instance}: {state} {products} -> {other} {more} products"


def main() -> None:
    """Print what each fallback gains."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("names", nargs="*", choices=[*FALLBACKS, []], help="of fallbacks")
    parser.add_argument("--only", nargs="*", default=[], help="words in the names of instances")
    parser.add_argument("--seconds", type=float, default=20.0)
    options = parser.parse_args()
    for name in options.names or FALLBACKS:
        print(f"without {name}", flush=True)
        for line in changes(name, options.only, options.seconds):
            print(f"  {line}", flush=True)


if __name__ == "__main__":
    main()
