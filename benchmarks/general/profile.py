"""A table and performance profiles of the results that the benchmarks of this folder have written.

A profile shows, for each solver, the share of problems solved within a factor of the least time.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

__all__ = ["Entry", "draw", "entries_of", "profile", "table"]

#: The relative gap up to which a problem of a collection counts as solved; 1e-6 for the others. The
#: violation may be as large: other solvers do not end with a projection.
GAPS = {"general_sdplib": 1e-4}
#: Statuses of runs whose benchmark has judged them itself.
SOLVED = ("CONVERGED", "INFEASIBLE", "UNBOUNDED")
#: Kernels of lopro that are measured by themselves; they are in the table and not in the figure.
OURS, KERNELS = "lopro", ("newton", "kernel")
#: One colour for each solver, in every panel.
COLOURS = ("piqp", "clarabel", "scs", "highs", "osqp", "proxqp")
_ACROSS = 4  # panels in a row of the figure
_WORST = 1e3  # the largest ratio shown


@dataclass(frozen=True)
class Entry:
    """One run: the collection, the problem, the solver, its seconds, and whether it solved the problem."""

    collection: str
    problem: str
    peer: str
    seconds: float
    solved: bool


def entries_of(folder: Path) -> list[Entry]:
    """Read every ``general_*.json``, without the runs of solvers that were not installed."""
    found: list[Entry] = []
    for path in sorted(folder.glob("general_*.json")):
        for row in json.loads(path.read_text(encoding="utf-8"))["runs"]:
            if str(row.get("note")).startswith(ModuleNotFoundError.__name__):
                continue
            name = row.get("problem") or row.get("file") or f"{row.get('kind')} {row.get('n')}"
            done = is_solved(row, GAPS.get(path.stem, 1e-6))
            found.append(Entry(path.stem, name, row["peer"], float(row["seconds"]), done))
    return found


def is_solved(row: Mapping[str, Any], tol: float) -> bool:
    """Return whether a run has a feasible point with this gap; a run with a status is judged by that."""
    if "status" in row:
        return str(row["status"]).startswith(SOLVED)
    judged = row.get("judged") or row
    gap, violation = judged.get("gap"), judged.get("violation", judged.get("diagonal"))
    return gap is not None and violation is not None and abs(gap) <= tol and violation <= tol


def profile(entries: Iterable[Entry]) -> dict[str, list[float]]:
    """Return for each solver its times over the least, sorted; infinite for problems that it has not solved.

    Problems that no solver has solved are left out.

    Examples
    --------
    >>> from benchmarks.general.profile import Entry, profile
    >>> runs = [Entry("c", "p", "a", 1.0, True), Entry("c", "p", "b", 3.0, True)]
    >>> profile(runs)
    {'a': [1.0], 'b': [3.0]}
    """
    runs = list(entries)
    best: dict[str, float] = {}
    for run in runs:
        if run.solved:
            best[run.problem] = min(run.seconds, best.get(run.problem, math.inf))
    peers = dict.fromkeys(run.peer for run in runs)
    ratios: dict[str, list[float]] = {}
    for peer in peers:
        mine = {run.problem: run for run in runs if run.peer == peer}
        ratios[peer] = sorted(
            mine[name].seconds / least if name in mine and mine[name].solved else math.inf
            for name, least in best.items()
        )
    return ratios


def table(entries: Sequence[Entry]) -> str:
    """Return a line for each solver of each collection: solved, fastest, within factors of 2 and 10."""
    lines = [f"{'collection':22s}{'peer':12s}{'solved':>8s}{'best':>6s}{'<= 2':>6s}{'<= 10':>6s}"]
    for collection in dict.fromkeys(entry.collection for entry in entries):
        mine = [entry for entry in entries if entry.collection == collection]
        for peer, ratios in profile(mine).items():
            counts = [sum(r <= factor for r in ratios) for factor in (1e300, 1.0, 2.0, 10.0)]
            shown = "".join(f"{count:6d}" for count in counts[1:])
            label = collection.removeprefix("general_")
            lines.append(f"{label:22s}{peer:12s}{counts[0]:5d}/{len(ratios):<3d}{shown}")
    return "\n".join(lines)


def draw(entries: Sequence[Entry]) -> Any:
    """Return a figure with one panel for each collection."""
    import matplotlib.pyplot as plt

    collections = list(dict.fromkeys(entry.collection for entry in entries))
    across = min(_ACROSS, len(collections))
    down = -(-len(collections) // across)
    size = 4.2 * across, 3.4 * down
    figure, axes = plt.subplots(
        down, across, figsize=size, squeeze=False, sharey=True, layout="constrained"
    )
    for axis in axes.ravel()[len(collections) :]:
        axis.set_visible(False)
    for axis, collection in zip(axes.ravel(), collections, strict=False):
        mine = [e for e in entries if e.collection == collection and e.peer not in KERNELS]
        for peer, ratios in profile(mine).items():
            known = [r for r in ratios if math.isfinite(r)]
            shares = [(k + 1) / len(ratios) for k in range(len(known))]
            axis.step(
                [1.0, *known, _WORST],
                [0.0, *shares, shares[-1] if shares else 0.0],
                where="post",
                label=peer,
                linewidth=2.2 if peer == OURS else 1.2,
                color="C0"
                if peer == OURS
                else f"C{1 + COLOURS.index(peer)}"
                if peer in COLOURS
                else None,
            )
        axis.set_xscale("log")
        axis.set_xlim(1.0, _WORST)
        axis.set_ylim(0.0, 1.02)
        axis.set_title(collection.removeprefix("general_"))
        axis.set_xlabel("time over the fastest")
        axis.legend(loc="upper center", bbox_to_anchor=(0.5, -0.22), ncols=3, fontsize=8)
    for axis in axes[:, 0]:
        axis.set_ylabel("share of problems solved")
    return figure
