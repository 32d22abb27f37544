"""The state of a search on stored or distributed data, in a file: a run that was killed resumes from it.

A few numbers per column and row: correlations with ``y``, which columns are held and in use, and their signs.
The columns themselves are read again; the same pass multiplies with ``y``, which tells another matrix.
"""

from __future__ import annotations

import contextlib
import os
import warnings
import zipfile
import zlib
from pathlib import Path
from typing import Any

import numpy as np

from lopro.basis_pursuit.column_search import ColumnSearch
from lopro.basis_pursuit.pool import Asking, Pool

__all__ = ["Checkpoint"]

#: What NumPy raises for a file that is no archive, is cut off, or lacks an array.
_UNREADABLE = (zipfile.BadZipFile, zlib.error, EOFError, KeyError, TypeError, ValueError)

#: Of the largest correlation: products of the same data agree to this, in single precision too.
_SAME = 1e-6


class Checkpoint:
    """A file with the state of one search; the file of another problem is refused.

    Parameters
    ----------
    path : str or Path
        It is replaced as a whole, so that there is a complete one at any time.
    search : ColumnSearch
        The search, on a pool.
    """

    def __init__(self, path: Any, search: ColumnSearch) -> None:
        self._search = search
        self.path = Path(path)
        self._rows, self._columns = search.A.shape
        self._failed = False
        weights = search.sparse.weights
        self._problem = np.concatenate(
            [
                [*search.A.shape, search.sigma, float(search.sparse.nonneg)],
                [float(weights @ np.cos(np.arange(weights.size)))],
                search.y,
            ]
        )

    def load(self) -> dict[str, Any] | None:
        """Return what was saved; None if nothing was."""
        if not self.path.exists():
            return None
        try:
            # Opened here: NumPy leaves a file open that it cannot read.
            with open(self.path, "rb") as file, np.load(file, allow_pickle=False) as saved:
                state = {name: saved[name] for name in saved.files}
            problem = state.pop("problem")
            whole = self._is_whole(state)
        except _UNREADABLE as error:
            raise ValueError(
                f"checkpoint {str(self.path)!r} cannot be read ({error}); remove it, or name another "
                "file"
            ) from error
        if not np.array_equal(problem, self._problem):
            raise self._of_another_problem
        if not whole:
            raise ValueError(
                f"checkpoint {str(self.path)!r} does not hold a state of this search; remove it, or "
                "name another file"
            )
        return state

    def _is_whole(self, state: dict[str, Any]) -> bool:
        """Whether the arrays have the sizes, and the indices the range, of this search."""
        indices = np.concatenate([state["held"], state["in_use"]])
        return bool(
            state["correlations"].shape == (self._columns,)
            and state["signs"].shape == state["in_use"].shape
            and state["path"].shape == (2,)
            and indices.dtype.kind == "i"
            and ((indices >= 0) & (indices < self._columns)).all()
        )

    @property
    def _of_another_problem(self) -> ValueError:
        """What refuses the file of another problem."""
        return ValueError(
            f"checkpoint {str(self.path)!r} belongs to another problem: other A, y, sigma, weights or "
            "signs; remove it, or name another file"
        )

    def _state(self) -> dict[str, Any]:
        """Return what has to be known to go on: small beside the columns, which are not in it."""
        search = self._search
        assert isinstance(search.pool, Pool)
        return {
            "correlations": search.correlations,
            "held": search.pool.indices,
            "in_use": search.columns.indices,
            "signs": search.signs,
            "path": np.array([search.floor, search.descent]),
        }

    def go_on_from(self, state: dict[str, Any]) -> Asking:
        """Ask for the columns that were held, and resume the search there.

        The same pass multiplies ``y``; a state of another matrix, which has other products, is refused.
        """
        search = self._search
        yield from search.multiply_y(np.union1d(state["held"], state["in_use"]))
        size = float(np.abs(search.correlations).max(initial=0.0))
        apart = np.abs(state["correlations"] - search.correlations).max(initial=0.0)
        # Products of the same data differ by the order of their sums: by some roundings.
        if not apart <= _SAME * size:
            raise self._of_another_problem
        search.floor, search.descent = (float(number) for number in state["path"])
        search.resume_with_columns(state["in_use"], state["signs"])

    def save(self) -> None:
        """Replace what was saved; a disk that takes nothing more is warned of once, and the run goes on."""
        if self._failed:
            return
        beside = self.path.with_name(self.path.name + ".new")
        try:
            with open(beside, "wb") as file:
                np.savez(file, problem=self._problem, **self._state())
                file.flush()
                os.fsync(file.fileno())
            beside.replace(self.path)
        except OSError as error:
            self._failed = True
            with contextlib.suppress(OSError):
                beside.unlink(missing_ok=True)
            warnings.warn(
                f"checkpoint {str(self.path)!r} cannot be written ({error}); the run goes on without it",
                RuntimeWarning,
                stacklevel=2,
            )
