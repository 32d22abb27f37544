"""Problems in single precision: all data are rounded first, so that they are exact for the judge."""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np

from fuzz.general.model import Model

__all__ = ["in_single"]


def in_single(model: Model) -> Model:
    """Return the model with data that single precision holds exactly (in double precision arrays)."""
    return model.changed(
        objective=_rounded(model.objective),
        members=tuple(_rounded(m) for m in model.members),
    )


def _rounded(value: Any) -> Any:
    if isinstance(value, np.ndarray):
        with np.errstate(over="ignore"):
            return value.astype(np.float32).astype(np.float64)
    if isinstance(value, tuple):
        return tuple(_rounded(v) for v in value)
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        fields = {f.name: _rounded(getattr(value, f.name)) for f in dataclasses.fields(value)}
        return dataclasses.replace(value, **fields)
    return value
