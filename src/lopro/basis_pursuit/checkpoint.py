"""What a search on data far away knows, in a file: a run that was killed goes on where it stopped.

A few numbers per column and row: correlations with ``y``, which columns are held and in use, and their signs.
The columns themselves are read again.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import numpy as np

from lopro.basis_pursuit.search import Search

__all__ = ["Checkpoint"]


class Checkpoint:
    """A file with the state of one search; another problem's file is refused.

    Parameters
    ----------
    path : str or Path
        It is replaced as a whole, so that there is a good one at any time.
    search : Search
        Whose problem it belongs to.
    """

    def __init__(self, path: Any, search: Search) -> None:
        self.path = Path(path)
        weights = search.sparse.weights
        self._problem = np.concatenate(
            [
                [*search.A.shape, search.ball.sigma, float(search.sparse.nonneg)],
                [float(weights @ np.cos(np.arange(weights.size)))],
                search.y,
            ]
        )

    def load(self) -> dict[str, Any] | None:
        """Return what was saved; None if nothing was."""
        if not self.path.exists():
            return None
        with np.load(self.path, allow_pickle=False) as saved:
            state = {name: saved[name] for name in saved.files}
        if not np.array_equal(state.pop("problem"), self._problem):
            raise ValueError(
                f"checkpoint {str(self.path)!r} belongs to another problem: other A, y, sigma, weights or "
                "signs; remove it, or name another file"
            )
        return state

    def save(self, state: dict[str, Any]) -> None:
        """Replace what was saved."""
        beside = self.path.with_name(self.path.name + ".new")
        with open(beside, "wb") as file:
            np.savez(file, problem=self._problem, **state)
            file.flush()
            os.fsync(file.fileno())
        beside.replace(self.path)
