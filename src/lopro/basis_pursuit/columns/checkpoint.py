"""The file from which a search on stored or distributed data resumes."""

from __future__ import annotations

import contextlib
import os
import warnings
import zipfile
import zlib
from pathlib import Path
from typing import Any

import numpy as np

from lopro.basis_pursuit.columns.pool import PassRequests
from lopro.basis_pursuit.columns.pooled_search import PooledSearch
from lopro.core.arrays import Array

__all__ = ["Checkpoint", "begin"]

#: The errors of NumPy for a file that is not an archive, is truncated, or lacks an array.
_UNREADABLE = (zipfile.BadZipFile, zlib.error, EOFError, KeyError, TypeError, ValueError)

#: Products of the same data, summed in another order, agree to this share of the largest correlation: ten
#: roundings of single precision.
_SAME = 1e-6


class Checkpoint:
    """A file with the state of one search on stored or distributed data, from which a killed run resumes.

    It has a few numbers per column and row: correlations with ``y``, the indices of the columns that are held
    and in use, and their signs. The columns are read again; the same pass multiplies ``y``, to detect another
    matrix. The file of another problem is refused.

    Parameters
    ----------
    path : str or Path
        It is replaced atomically, so that there is a complete file at any time.
    search : PooledSearch
    """

    def __init__(self, path: Any, search: PooledSearch) -> None:
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
        """Return the saved state; None if there is none."""
        if not self.path.exists():
            return None
        try:
            # NumPy does not close a file that it cannot read.
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
        """Whether the sizes of the arrays and the range of the indices are those of this search."""
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
        """The error for the file of another problem."""
        return ValueError(
            f"checkpoint {str(self.path)!r} belongs to another problem: other A, y, sigma, weights or "
            "signs; remove it, or name another file"
        )

    def _state(self) -> dict[str, Any]:
        """Return the state from which the search resumes, without the columns, which are large."""
        search = self._search
        return {
            "correlations": search.correlations,
            "held": search.pool.indices,
            "in_use": search.columns.indices,
            "signs": search.signs,
            "path": np.array([search.floor, search.descent]),
        }

    def resume_from(self, state: dict[str, Any]) -> PassRequests:
        """Request the columns that were held, and resume the search.

        The same pass multiplies ``y``; a state with other products is of another matrix, and refused.
        """
        search = self._search
        yield from search.multiply_y(np.union1d(state["held"], state["in_use"]))
        size = float(np.abs(search.correlations).max(initial=0.0))
        apart = np.abs(state["correlations"] - search.correlations).max(initial=0.0)
        if not apart <= _SAME * size:
            raise self._of_another_problem
        search.floor, search.descent = (float(number) for number in state["path"])
        search.extend(state["in_use"], state["signs"])

    def save(self) -> None:
        """Replace the file; if it cannot be written, warn once and continue without."""
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


def begin(search: PooledSearch, x0: Array, first: int | None, path: str | Path | None) -> None:
    """Fetch the first columns, or those of a checkpoint, which is updated from then on."""
    if path is None:
        search.serve(search.begin(x0, first))
        return
    checkpoint = Checkpoint(path, search)
    saved = checkpoint.load()
    search.serve(search.begin(x0, first) if saved is None else checkpoint.resume_from(saved))
    search.after_round = checkpoint.save
    search.after_round()
