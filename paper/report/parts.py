"""The parts of the report in the order of the page."""

from __future__ import annotations

from importlib import import_module
from typing import cast

from paper.report.order import Part

__all__ = ["TITLES", "part"]

#: The titles of the parts.
TITLES = {
    "demo": "Certified answers",
    "table1": "Table 1",
    "table2": "Table 2",
    "metric": "Metric learning",
    "convergence": "Convergence",
    "rates": "Rates",
    "ecg": "Electrocardiogram",
    "image": "Image",
}


def part(name: str) -> Part:
    """Return a part; its imports happen on this call.

    Examples
    --------
    >>> from paper.report.order import Order
    >>> from paper.report.parts import part
    >>> part("rates").parameters(Order())
    {'quick': False}
    """
    return cast(Part, import_module(f"paper.report.sections.{name}"))
