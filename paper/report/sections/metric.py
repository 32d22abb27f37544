"""The section on `lopro.learn_metric`; at full scale with all features of the paper."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from lopro.metric.api import MetricResult, learn_metric
from paper.experiments.table2_data import FULL, PAPER
from paper.report.blocks import Table
from paper.report.curves import Named, curves_figure
from paper.report.draft import Draft, Drawing
from paper.report.order import Order
from paper.report.sections.data import colon_data, data_key

__all__ = ["parameters", "run"]

_SHOWN = 8  # rows of the table
_NEGLIGIBLE = 1e-6  # entries below this share of the largest one count as zero


@dataclass(frozen=True)
class _Size:
    features: int
    tol: float
    seconds: float


def _size(order: Order) -> _Size:
    chosen: _Size = order.of(
        _Size(100, 1e-2, 10.0), _Size(FULL.features, 1e-2, 90.0), _Size(FULL.features, 1e-3, 1800.0)
    )
    return chosen


def parameters(order: Order) -> dict[str, Any]:
    """Return the parameters that determine the outcome."""
    return vars(_size(order)) | data_key(order)


def run(order: Order) -> Draft:
    """Learn one metric, and record it after every epoch."""
    size, data = _size(order), colon_data(order)
    order.say(f"lopro.learn_metric, {size.features} features, at most {size.seconds:g} s")
    X, labels = data.X[: FULL.samples, : size.features], data.labels[: FULL.samples]
    result = learn_metric(X, labels, l1=FULL.l1, tol=size.tol, time_limit=size.seconds)
    facts = {
        "data": data.name,
        "instance": f"first {FULL.samples} samples, {size.features} features",
        "tolerance": f"{100 * size.tol:g} %, within {size.seconds:g} s",
    }
    draft = Draft("Metric learning", facts)
    draft.paragraph(
        f"lopro.learn_metric on the problem of Table 2 with {size.features} features "
        f"({data.name}): no step size, no penalty weight. Objective {result.fun:.6g} in "
        f"{result.seconds:.1f} s, {_gap(result.fun, result.certificate.lower_bound)} "
        f"({result.status.value}). "
        f"{int((abs(result.x) > _NEGLIGIBLE * abs(result.x).max()).sum())} of the {result.x.size} entries of "
        "the matrix are not zero."
    )
    draft.table(_table(result, size))
    draft.pictures([_drawing(result)], most=1)
    return draft


def _gap(fun: float, bound: float) -> str:
    return f"certified gap {100 * (fun - max(bound, 0.0)) / fun:.2g} %"


def _table(result: MetricResult, size: _Size) -> Table:
    history = list(result.history)
    every = max(1, -(-len(history) // _SHOWN))
    kept = [row for k, row in enumerate(history) if k % every == 0 or k == len(history) - 1]
    rows = [
        (
            "lopro.learn_metric" if row is kept[0] else "",
            f"{row['seconds']:.1f} s",
            f"{row['projections']}",
            f"{row['fun']:.6f}",
            f"{max(row['lower_bound'], 0.0):.6f}",
        )
        for row in kept
    ]
    last = {method: n for method, n in sorted(PAPER)}
    for method, n in last.items():
        p = PAPER[method, n]
        name = f"{method} in the paper, {n} iterations"
        rows.append((name, f"{p.hours:.2f} h", "", f"{p.objective:.4f}", ""))
    return Table(
        f"Progress over time, {size.features} features; below, the last rows of the paper's Table 2",
        ("method", "time", "projections", "objective", "lower bound"),
        tuple(rows),
        note=f"The paper has {FULL.features} features; its start, examples and machine are not known, so "
        "only the order of magnitude compares.",
    )


def _drawing(result: MetricResult) -> Drawing:
    history = result.history
    early = next(row["seconds"] for row in history if row["fun"] <= 1.01 * result.fun)
    return Drawing(
        "metric",
        curves_figure(
            [
                Named("objective", history["seconds"], history["fun"]),
                Named("lower bound", history["seconds"], history["lower_bound"]),
            ],
            "lopro.learn_metric: value and bound",
            "seconds",
            "objective",
        ),
        "The objective of the points found, falling with time, and the proved lower bound, rising to it.",
        f"The value is within 1 % of the last one after {early:.1f} of {result.seconds:.1f} s; the optimal "
        "value lies between the curves.",
    )
