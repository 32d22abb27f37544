"""Norms of linear images: l1, groups, total variation."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, Self

import numpy as np
import scipy  # parts of it load when first used

from lopro.core.validation import check_count, check_number
from lopro.functions import Ball, Constant, atoms
from lopro.objectives.of_atom import NormOfImage

__all__ = ["GroupNorm", "RowNorms", "TotalVariation"]


class GroupNorm(NormOfImage):
    """``f(x) = sum of |(D x - b)_g|_2`` over groups of consecutive rows of ``D``.

    Groups of one row give the l1 norm of ``D x - b``. With a matrix it has no prox in x; `lopro.solve` uses
    the prox in the image, or the conic form.

    Parameters
    ----------
    D : array, scipy.sparse matrix or LinearMap of shape (groups * group_size, d), optional
        Real. Not copied. The identity by default: groups of consecutive entries of ``x - b``.
    group_size : int
        Rows in each group.
    b : array, optional
        Subtracted before the norms; zero if not given. Copied.

    Examples
    --------
    >>> import numpy as np
    >>> from lopro.objectives import GroupNorm
    >>> f = GroupNorm(np.eye(4), group_size=2)
    >>> f.value(np.array([3.0, 4.0, 0.0, -2.0]))
    7.0
    >>> f.subgradient(np.array([3.0, 4.0, 0.0, -2.0]))
    array([ 0.6,  0.8,  0. , -1. ])
    >>> GroupNorm(group_size=2).prox(np.array([3.0, 4.0, 0.0, -2.0]), 2.5)
    array([ 1.5,  2. ,  0. , -0. ])
    """

    def __init__(self, D: Any = None, group_size: int = 1, b: Any = None) -> None:
        if isinstance(D, int | np.integer):
            raise TypeError(f"D must be a matrix, or None for groups of x itself, got {D!r}")
        self.group_size = check_count("group_size", group_size)
        # Norms of single entries are absolute values, which are separable.
        single = self.group_size == 1
        super().__init__(atoms.L1() if single else atoms.GroupNorm(self.group_size), D, b)
        if self.D is not None:
            self._check_groups("D", "rows", self.D.shape[0])
        elif self.shape is not None:
            self._check_groups("b", "entries", self.shape[0])

    def _check_groups(self, name: str, parts: str, count: int) -> None:
        if count % self.group_size:
            raise ValueError(
                f"{name} must have a multiple of group_size={self.group_size} {parts}, got {count}"
            )

    def shaped(self, shape: tuple[int, ...]) -> Self:
        if self.D is None:
            self._check_groups("x", "entries", math.prod(shape))
        return super().shaped(shape)

    def lipschitz(self, ball: Ball | None = None) -> Constant | None:
        image = self.shape if self.D is None else self.D.shape[:1]
        if image is None:
            return None
        groups = math.prod(image) // self.group_size
        return self._times_map(math.sqrt(groups), "root of the number of groups")


class RowNorms(NormOfImage):
    """``f(A) = weight * sum_i |A_i|``, with the Euclidean norms of the rows, the diagonal included.

    Parameters
    ----------
    dim : int
        Number of rows, and of columns.
    weight : float
        Nonnegative.

    Examples
    --------
    >>> import numpy as np
    >>> from lopro.objectives.group_norm import RowNorms
    >>> f = RowNorms(2, 0.5)
    >>> f.value(np.array([[3.0, 4.0], [0.0, 0.0]]))
    2.5
    >>> f.prox(np.array([[3.0, 4.0], [0.1, 0.0]]), 2.0)
    array([[2.4, 3.2],
           [0. , 0. ]])
    """

    def __init__(self, dim: int, weight: Any) -> None:
        dim, weight = check_count("dim", dim), check_number("weight", weight, minimum=0.0)
        super().__init__(atoms.GroupNorm(dim, weight), shape=(dim, dim))
        self._steepness = weight * math.sqrt(dim)

    def lipschitz(self, ball: Ball | None = None) -> Constant:
        return self._times_map(self._steepness, "weight times root of the number of rows")


class TotalVariation(GroupNorm):
    """The total variation of a signal, an image or a volume.

    Parameters
    ----------
    shape : int or tuple of int
        Shape of the image. Points are vectors: the image row by row, as ``image.ravel()``.
    isotropic : bool
        Whether the differences of a pixel along all axes are combined, ``sum of |gradient|_2`` over the
        pixels, or taken separately, ``sum of |differences|``.

    Examples
    --------
    >>> import numpy as np
    >>> from lopro.objectives import TotalVariation
    >>> image = np.array([[0.0, 3.0], [4.0, 4.0]])
    >>> (
    ...     TotalVariation((2, 2)).value(image.ravel()),
    ...     TotalVariation((2, 2), isotropic=False).value(image.ravel()),
    ... )
    (6.0, 8.0)
    """

    def __init__(self, shape: int | Sequence[int], *, isotropic: bool = True) -> None:
        sizes = (shape,) if isinstance(shape, int | np.integer) else tuple(shape)
        self.image_shape = tuple(check_count("shape", size) for size in sizes)
        self.isotropic = bool(isotropic)
        d = math.prod(self.image_shape)
        if d < 2:
            raise ValueError(f"shape must have at least two pixels, got {self.image_shape}")
        axes = [axis for axis, size in enumerate(self.image_shape) if size > 1]
        differences = [_differences(self.image_shape, axis) for axis in axes]
        stacked = scipy.sparse.vstack(differences, format="csr")
        if not self.isotropic or len(axes) == 1:
            # The rows of zeros at the far boundary of the image are dropped: no group needs them.
            super().__init__(stacked[np.diff(stacked.indptr) > 0], 1)
        else:
            # The differences of each pixel become consecutive rows.
            order = np.arange(len(axes) * d).reshape(len(axes), d).T.ravel()
            super().__init__(stacked[order], len(axes))
        # The matrix is not data of the user, so that points may be of any library.
        self.like = None

    def __repr__(self) -> str:
        return f"TotalVariation({self.image_shape}, isotropic={self.isotropic})"


def _differences(shape: tuple[int, ...], axis: int) -> Any:
    """Return the matrix of differences to the next pixel along an axis, with zero rows at its end."""
    index = np.arange(math.prod(shape)).reshape(shape)
    here = np.take(index, np.arange(shape[axis] - 1), axis=axis).ravel()
    there = np.take(index, np.arange(1, shape[axis]), axis=axis).ravel()
    ones = np.ones(len(here))
    entries = np.concatenate([-ones, ones])
    places = np.concatenate([here, here]), np.concatenate([here, there])
    return scipy.sparse.csr_array((entries, places), shape=(index.size, index.size))
