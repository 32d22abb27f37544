"""Times relative to SPGL1 for classes of problems, in one process and in turns.

``OPENBLAS_NUM_THREADS=1 python -m benchmarks.bpdn.who_wins`` measures and stores the numbers as JSON beside
this file; ``--write`` puts their table into the documentation. lopro proves gaps of 1e-6; SPGL1 runs with all
its tolerances at 1e-6 and with its defaults. Times are processor time, the least of several runs for each
instance, of up to fifty where they are milliseconds. Ratios are medians over instances; where the median is
below 1 and the largest is above, the largest is given too. The accuracy of SPGL1 is the amount by which the
value at the nearest feasible point exceeds the bound that lopro has proved. For sigma = 0, HiGHS is measured
as well.
"""

from __future__ import annotations

import argparse
import json
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import scipy.optimize

import lopro
from benchmarks.bpdn.classes import CLASSES, Instance
from lopro.constraints import ResidualBall

__all__ = ["KEPT", "PAGE", "measure", "table", "with_table"]

KEPT = Path(__file__).with_name("who_wins.json")
PAGE = Path(__file__).parents[2] / "docs" / "guide" / "coming_from_spgl1.md"
BEGIN, END = "<!-- who wins: begin -->", "<!-- who wins: end -->"
PEERS = ("spgl1 1e-6", "spgl1 default", "highs")
HEAD = (
    "| class | ours, ms | certified | nonzeros | products | SPGL1's "
    "| to SPGL1 1e-6 | its excess | default | its excess | HiGHS |\n"
    "| --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: |"
)


def by_spgl1(
    instance: Instance, tol: float | None, *, rows: bool = False
) -> tuple[int, bool, list[np.ndarray]]:
    """Solve by SPGL1 with all tolerances at one value, or with its defaults.

    Return the number of products, whether its point is near the ball, and its points.
    """
    try:
        return _by_spgl1(instance, tol, rows)
    except IndexError:  # the length of its records
        return 0, False, []


def _by_spgl1(
    instance: Instance, tol: float | None, rows: bool
) -> tuple[int, bool, list[np.ndarray]]:
    import spgl1

    A, y, sigma = instance
    names = ("bp_tol", "ls_tol", "opt_tol", "dec_tol")
    options: dict[str, Any] = {} if tol is None else dict.fromkeys(names, tol)
    options["iter_lim"] = 20000
    if rows:
        _, r, _, info = spgl1.spg_mmv(A, y, sigma, **options)
        return int(info["nprodA"]) + int(info["nprodAt"]), near(r, y, sigma), []
    total, all_near, points = 0, True, []
    for right, radius in [(y, sigma)] if y.ndim == 1 else zip(y.T, sigma, strict=True):
        x, r, _, info = spgl1.spg_bpdn(
            A, right, radius, iscomplex=bool(np.iscomplexobj(y)), **options
        )
        total += int(info["nprodA"]) + int(info["nprodAt"])
        all_near = all_near and near(r, right, radius)
        points.append(x)
    return total, all_near, points


def near(r: np.ndarray, y: np.ndarray, sigma: float) -> bool:
    """Return whether a residual is within the radius, with a generous tolerance."""
    return bool(np.linalg.norm(r) <= 1.05 * sigma + 1e-3 * np.linalg.norm(y))


def excess(instance: Instance, point: np.ndarray, bound: float) -> float:
    """Return the relative excess of the value at the nearest feasible point over a proved bound."""
    A, y, sigma = instance
    if np.linalg.norm(A @ point - y) > sigma:
        point = ResidualBall(A, y, sigma).project(point)
    return float(np.abs(point).sum()) / bound - 1.0


def by_highs(instance: Instance) -> None:
    """Solve equations as a linear program."""
    A, y, _ = instance
    both = np.hstack([A, -A])
    scipy.optimize.linprog(np.ones(both.shape[1]), A_eq=both, b_eq=y, method="highs")


def calls_for(name: str, instance: Instance, limit: float) -> dict[str, Callable[[], Any]]:
    """Return the solvers, by name."""
    A, y, sigma = instance
    rows = name.startswith("rows")
    calls: dict[str, Callable[[], Any]] = {
        "ours": lambda: lopro.bpdn(A, y, sigma, joint=rows, **_limit(y, rows, limit)),
        "spgl1 1e-6": lambda: by_spgl1(instance, 1e-6, rows=rows),
        "spgl1 default": lambda: by_spgl1(instance, None, rows=rows),
    }
    small = isinstance(A, np.ndarray) and np.isrealobj(A) and A.size <= 2e5
    if small and np.ndim(sigma) == 0 and sigma == 0.0:
        calls["highs"] = lambda: by_highs(instance)
    return calls


def _limit(y: np.ndarray, rows: bool, limit: float) -> dict[str, float]:
    """A limit, except for many right-hand sides: with one they do not share their work."""
    return {} if y.ndim == 2 and not rows else {"time_limit": limit}


def measure(name: str, instances: int, turns: int, limit: float) -> dict[str, Any]:
    """Time one class: all solvers solve the same instances, in turns."""
    least: dict[str, list[float]] = {}
    row: dict[str, Any] = {"class": name, "instances": instances, "certified": 0}
    row |= {"nonzeros": 0, "products": 0, "spgl1 products": 0, "failed": [], "excess": {}}
    for seed in range(instances):
        instance = CLASSES[name](seed)
        calls = calls_for(name, instance, limit)
        seconds = {who: float("inf") for who in calls}
        answers: dict[str, list[np.ndarray]] = {}
        for _ in range(turns_for(calls, turns)):
            for who, call in calls.items():
                start = time.process_time()
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore")  # SPGL1 sometimes divides by zero
                    answer = call()
                seconds[who] = min(seconds[who], time.process_time() - start)
                if who == "ours":
                    results = answer if isinstance(answer, list) else [answer]
                elif who.startswith("spgl1"):
                    products, solved, points = answer
                    answers[who] = points
                    if who == "spgl1 1e-6":
                        row["spgl1 products"] = max(row["spgl1 products"], products)
                    if not solved and who not in row["failed"]:
                        row["failed"].append(who)
        row["certified"] += all(r.success for r in results)
        row["nonzeros"] = max(row["nonzeros"], *(len(r.support) for r in results))
        products = sum(r.counts.matvecs + r.counts.rmatvecs for r in results)
        row["products"] = max(row["products"], products)
        for who, points in answers.items():
            if len(points) == 1:
                above = excess(instance, points[0], results[0].certificate.lower_bound)
                # A negative excess would mean that the bound is wrong, so it is not clipped.
                row["excess"][who] = max(row["excess"].get(who, above), above)
        for who, took in seconds.items():
            least.setdefault(who, []).append(took)
    row["seconds"] = {who: float(np.median(times)) for who, times in least.items()}
    ratios = {who: np.divide(least["ours"], times) for who, times in least.items() if who != "ours"}
    row["ratio"] = {who: float(np.median(found)) for who, found in ratios.items()}
    row["worst"] = {who: float(found.max()) for who, found in ratios.items()}
    return row


def turns_for(calls: dict[str, Callable[[], Any]], least: int) -> int:
    """Return the number of repetitions: more for calls of a few milliseconds."""
    start = time.process_time()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        calls["ours"]()
    return max(least, min(50, int(0.1 / max(1e-6, time.process_time() - start))))


def table(rows: list[dict[str, Any]]) -> str:
    """Return the table of some rows, in Markdown."""
    lines = [HEAD]
    for row in rows:
        cells = [
            row["class"],
            f"{1e3 * row['seconds']['ours']:.1f}",
            f"{row['certified']}/{row['instances']}",
            *(str(row[key]) for key in ("nonzeros", "products", "spgl1 products")),
            *(
                text
                for who in PEERS
                for text in (
                    (cell(row, who),) if who == "highs" else (cell(row, who), worth(row, who))
                )
            ),
        ]
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines)


def cell(row: dict[str, Any], who: str) -> str:
    """Return a ratio as text, with the largest one where that is above 1 and the median is not.

    Empty for solvers that did not run; "unproved" where lopro proves no gap in time, "fails" where the
    point of the other solver is far from the ball.
    """
    if who not in row["ratio"]:
        return ""
    if row["certified"] < row["instances"]:
        return "unproved"
    if who in row["failed"]:
        return "fails"
    ratio, worst = row["ratio"][who], row.get("worst", {}).get(who, 0.0)
    return f"{ratio:.2f} (worst {worst:.2f})" if ratio <= 1.0 < worst else f"{ratio:.2f}"


def worth(row: dict[str, Any], who: str) -> str:
    """Return the largest excess as text; empty where it was not computed."""
    found = row.get("excess", {}).get(who)
    return "" if found is None or who in row["failed"] else f"{found:.0e}"


def with_table(page: str, rows: list[dict[str, Any]]) -> str:
    """Return a page with its table replaced."""
    before, _, rest = page.partition(BEGIN)
    _, _, after = rest.partition(END)
    return f"{before}{BEGIN}\n\n{table(rows)}\n\n{END}{after}"


def main() -> None:
    """Measure all classes, or those whose name contains a word; other records are kept."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--instances", type=int, default=3)
    parser.add_argument("--turns", type=int, default=3)
    parser.add_argument("--limit", type=float, default=30.0, help="seconds for each of our calls")
    parser.add_argument("--only", default="", help="part of a name")
    parser.add_argument("--json", type=Path, default=KEPT)
    parser.add_argument(
        "--write",
        action="store_true",
        help="write the table of all records into the documentation page",
    )
    options = parser.parse_args()
    kept = json.loads(options.json.read_text(encoding="utf-8")) if options.json.exists() else []
    found = {row["class"]: row for row in kept}
    if options.write:
        PAGE.write_text(with_table(PAGE.read_text(encoding="utf-8"), kept), encoding="utf-8")
        return
    for name in [name for name in CLASSES if options.only in name]:
        found[name] = measure(name, options.instances, options.turns, options.limit)
        print(table([found[name]]).splitlines()[-1], flush=True)
        rows = [found[name] for name in CLASSES if name in found]
        options.json.write_text(json.dumps(rows, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
