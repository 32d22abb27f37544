"""Memory-mapped files: ``numpy.memmap``, also from ``numpy.load``."""

from __future__ import annotations

from typing import Any

import numpy as np

from lopro.maps.stored import StoredMap

__all__ = ["MemmapMap"]

#: Bytes of a block, 128 MB. Blocks are views and need no memory; a large one has fewer calls of BLAS.
BLOCK_BYTES = 2**27


class MemmapMap(StoredMap):
    """A ``numpy.memmap``, row by row or column by column, read-only or not.

    Blocks are views: the operating system reads them into its cache, without a copy.

    Parameters
    ----------
    source : numpy.memmap
        Not modified.
    name : str
        Its name in error messages.
    block_bytes : int
        Approximate size of a block.
    workers : int
        Threads, each with a block. The results do not depend on it.

    Examples
    --------
    >>> import tempfile, numpy as np
    >>> from lopro.maps import linear_map
    >>> with tempfile.TemporaryFile() as file:
    ...     stored = np.memmap(file, dtype=np.float32, shape=(2, 3), mode="w+")
    ...     stored[:] = [[1, 2, 3], [4, 5, 6]]
    ...     A = linear_map(stored)
    ...     print(A.adjoint(np.array([1.0, 10.0])), A)
    [41. 52. 63.] LinearMap(memmap of shape (2, 3))
    """

    def __init__(
        self,
        source: np.memmap[Any, Any],
        name: str = "A",
        *,
        block_bytes: int = BLOCK_BYTES,
        workers: int = 2,
    ) -> None:
        super().__init__(source, name, block_bytes=block_bytes, workers=workers)
        # Slices of a memmap are memmaps, which are slow to create; those of a plain view are not.
        self._view = source.view(np.ndarray)

    @staticmethod
    def fits(A: Any) -> bool:
        """Whether an object is a memmap of a file, and not an array in memory computed from one."""
        return isinstance(A, np.memmap) and getattr(A, "_mmap", None) is not None

    def fetch(self, place: tuple[slice, slice]) -> np.ndarray[Any, Any]:
        return self._view[place]
