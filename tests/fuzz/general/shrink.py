"""Simpler problems: fewer sets, fewer coordinates, fewer rows, a plainer objective."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from fuzz.general.model import Model
from fuzz.sparse.shrink import chunks

__all__ = ["simpler_models"]


def simpler_models(model: Model) -> Iterator[tuple[Model, Any]]:
    """Yield simpler models, each with the coordinates it keeps (None for all)."""
    members = model.members
    if len(members) > 1:
        for i in range(len(members)):
            yield model.changed(members=members[:i] + members[i + 1 :], empty=False), None
    for kept in chunks(model.shape[0]):
        yield _restricted(model, kept), kept
    for objective in model.objective.simpler():
        yield model.changed(objective=objective), None
    for i, member in enumerate(members):
        for other in member.simpler():
            changed = (*members[:i], other, *members[i + 1 :])
            yield model.changed(members=changed, empty=False), None


def _restricted(model: Model, kept: Any) -> Model:
    def cut(x: Any) -> Any:
        return None if x is None else x[np.ix_(*[kept] * x.ndim)]

    return model.changed(
        objective=model.objective.restricted(kept),
        members=tuple(m.restricted(kept) for m in model.members),
        shape=(len(kept),) * len(model.shape),
        inside=cut(model.inside),
        ray=cut(model.ray),
    )
