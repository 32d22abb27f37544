"""The colon-cancer data of the report: from a file if there is one, without the network."""

from __future__ import annotations

from hashlib import sha256
from typing import Any

from paper.experiments.colon import Samples, load_colon
from paper.report.order import Order

__all__ = ["colon_data", "data_key"]


def colon_data(order: Order) -> Samples:
    """Return the data that `load_colon` finds without the network, or its random replacement."""
    return load_colon(order.colon, download=False)


def data_key(order: Order) -> dict[str, Any]:
    """Return the name of the data and a digest of the numbers."""
    data = colon_data(order)
    return {"data": data.name, "digest": sha256(data.X.tobytes()).hexdigest()[:16]}
