"""Histories made by hand, for tests of mixing."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from lopro.basis_pursuit.operators.history import History, Point

__all__ = ["history_of"]


def history_of(pairs: Iterable[tuple[Point, Any]]) -> History:
    """Return a history of points, each with its residual."""
    pairs = list(pairs)
    history = History(len(pairs))
    for point, residual in pairs:
        history.add(point, residual, beside=history.points)
    return history
