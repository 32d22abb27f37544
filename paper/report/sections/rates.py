"""The section of the rates: every theorem's bound above its measured error."""

from __future__ import annotations

from typing import Any

from paper.experiments.rates import Curve, Rates, measure_rates, slope
from paper.report.blocks import Table
from paper.report.draft import Draft, Drawing
from paper.report.order import Order, Scale
from paper.report.rate_figures import rate_figures

__all__ = ["parameters", "run"]

_WORDS = {
    "rate_cor1": ("Error of two one-projection methods falling like 1/T.", "Both rates are 1/T."),
    "rate_cor2a": (
        "Error with two smooth penalties, falling at least like 1/T.",
        "Smooth penalties.",
    ),
    "rate_cor2b_p4": (
        "Error of Corollary 2b for three exponents, and of the balanced choice P4.",
        "Balancing smoothing and horizon (P4) gives T⁻² up to log without a trade-off.",
    ),
    "rate_thm2_sharp": ("The error of LoPGD halving with every epoch.", "A sharp minimum."),
    "rate_thm2_curved": ("Error of LoPGD for several accuracies.", "A curved minimum."),
    "rate_thm3": ("Error of LoPNAG for several accuracies.", "A curved minimum, smooth functions."),
    "projections": (
        "Projections against halvings of the error: the theorems' schedules on the proved line, and Auto.",
        "The theorems' schedules make one projection for each halving, as proved; Auto as many as a "
        "certified gap took.",
    ),
}


def parameters(order: Order) -> dict[str, Any]:
    """Return the parameters that determine the outcome."""
    return {"quick": order.scale is Scale.SHORT}


def run(order: Order) -> Draft:
    """Measure all rates; a measured error above its bound ends the job."""
    rates = measure_rates(order.scale is Scale.SHORT, order.say)
    draft = Draft("Rates", {"seeds": "4, 5 and 6", "problems": "10 variables, optimum known"})
    draft.paragraph(
        "Each theorem run with its own constants on a problem whose optimal value is known in closed "
        "form. Solid lines are measured errors, dashed lines what is proved; a single error above its "
        "bound would have ended the run. C1', P3 and P4 are sharper results than the printed ones."
    )
    figures = rate_figures(rates)
    order_of_show = ["projections", *(name for name in figures if name != "projections")]
    draft.pictures([Drawing(name, figures[name], *_WORDS[name]) for name in order_of_show])
    draft.table(_table(rates))
    return draft


def _table(rates: Rates) -> Table:
    return Table(
        "Rates, measured and proved",
        ("curve", "iterations", "projections", "error", "bound", "slope", "slope of the bound"),
        tuple(_row(curve) for curve in rates.curves),
        note="Slopes on logarithmic axes over the second half of each curve.",
    )


def _row(curve: Curve) -> tuple[str, ...]:
    return (
        curve.label,
        f"{curve.iterations[-1]}",
        f"{curve.projections[-1]}",
        f"{curve.error[-1]:.1e}",
        f"{curve.bound[-1]:.1e}",
        f"{slope(curve.iterations, curve.error):.2f}",
        f"{slope(curve.iterations, curve.bound):.2f}",
    )
