"""The first section: three problems, each with a certified answer."""

from __future__ import annotations

from typing import Any

from paper.experiments import demo
from paper.report.blocks import Table
from paper.report.draft import Draft, Drawing
from paper.report.order import Order

__all__ = ["parameters", "run"]


def parameters(order: Order) -> dict[str, Any]:
    """Return the parameters that determine the outcome: none, it is always the same."""
    return {}


def run(order: Order) -> Draft:
    """Solve the cases of `paper.experiments.demo`."""
    outcomes = demo.run_all(order.say)
    draft = Draft("Certified answers and their projections", {"seed": "0 (all instances)"})
    draft.paragraph(
        "Three problems whose projection is expensive. Each answer comes with a lower bound on the optimal "
        "value, which bounds its error; a theorem's schedule claims such a bound from the constants of the "
        "problem. A method that projects at each step would make one projection per iteration."
    )
    draft.table(_table(outcomes))
    draft.pictures(
        [
            Drawing(
                "demo",
                demo.figure(outcomes),
                "Five curves of the certified relative gap, falling with the inner iterations.",
                "Each marker is a certified point, projected first unless it was feasible.",
            )
        ],
        most=1,
    )
    for outcome in outcomes:
        if not outcome.reached:
            draft.failures.append(f"{outcome.case.name}: {outcome.result.message}")
    return draft


def _table(outcomes: list[demo.Outcome]) -> Table:
    return Table(
        "Three problems, five runs",
        ("problem", "method", "value", "certified gap", "projections", "theory", "iterations", "s"),
        tuple(outcome.cells for outcome in outcomes),
        words=2,
        note="Gap: the relative gap, (value − lower bound) / value where all terms are positive, as here; "
        "or as claimed by the theorem. Theory: the paper's ⌈log₂(ε₀/ε)⌉ projections "
        "(Theorems 2 and 3) for an error of 2ε equal to that gap, from the same start.",
    )
