"""Norms of blocks: the sum of the lengths of groups of entries, and the map of several right-hand sides."""

from __future__ import annotations

import math
from typing import Any, TypeAlias

import numpy as np
import scipy  # parts of it load when first used

from lopro.core.arrays import Array, to_numpy
from lopro.core.deadline import current_deadline
from lopro.core.validation import check_array
from lopro.errors import MissingCapabilityError
from lopro.functions import Ball, Constant, Source
from lopro.functions.atoms import Opaque
from lopro.functions.cone_program import ConeBuilder, RealImage, place_rows
from lopro.functions.term import Term
from lopro.maps import LinearMap
from lopro.maps.algebra import dense
from lopro.objectives import Objective

__all__ = ["BlockNorm", "Repeated"]

Vector: TypeAlias = "np.ndarray[Any, Any]"


class BlockNorm(Objective):
    """``f(x) = sum_g w_g |x_g|_2`` over blocks of a vector; blocks of one entry make the l1 norm.

    Parameters
    ----------
    labels : array of length d
        The block of each entry: entries with equal labels form a block. Blocks are sorted by label.
    weights : float or array, optional
        Positive; one number for all blocks (default 1) or one for each.

    Examples
    --------
    >>> import numpy as np
    >>> from lopro.basis_pursuit.block_norm import BlockNorm
    >>> f = BlockNorm([0, 1, 0], weights=[1.0, 2.0])
    >>> x = np.array([3.0, -1.0, 4.0])
    >>> f.value(x), f.prox(x, 1.0) + 0.0
    (7.0, array([2.4, 0. , 3.2]))
    """

    proximable = True

    def __init__(self, labels: Any, weights: Any = None) -> None:
        found = to_numpy(check_array("groups", labels, ndim=1, allow_complex=False))
        names, places = np.unique(found, return_inverse=True)
        #: The block of each entry, numbered from 0.
        self.labels: Vector = places.ravel()
        each = (
            np.float64(1.0)
            if weights is None
            else to_numpy(check_array("weights", weights, allow_complex=False))
        )
        if each.shape not in ((), names.shape):
            raise ValueError(
                f"weights must be a number or {len(names)} of them, one for each group, "
                f"got shape {each.shape}"
            )
        #: The weight of each block.
        self.of_blocks: Vector = np.broadcast_to(each.astype(np.float64), names.shape)
        if self.least_weight < 0.0:
            raise ValueError(
                f"weights must be nonnegative, but one of them is {self.least_weight:g}"
            )
        self.shape = (len(self.labels),)

    @property
    def least_weight(self) -> float:
        """The smallest weight."""
        return float(self.of_blocks.min())

    @property
    def terms(self) -> tuple[Term, ...]:
        return (Term(Blocks(self)),)

    def lengths(self, x: Array) -> Vector:
        """Return the length of each block, in double precision."""
        _check_on_host(x)
        squares = np.square(x.real, dtype=np.float64)
        if np.iscomplexobj(x):
            squares += np.square(x.imag, dtype=np.float64)
        return np.sqrt(np.bincount(self.labels, weights=squares, minlength=len(self.of_blocks)))

    def _everywhere(self, of_blocks: Vector, like: Array) -> Vector:
        """Return for each entry the value of its block, in the precision of ``like``."""
        _check_on_host(like)
        return of_blocks[self.labels].astype(like.real.dtype, copy=False)

    def moduli(self, x: Array) -> Vector:
        """Return for each entry the length of its block."""
        return self._everywhere(self.lengths(x), x)

    def weights_like(self, x: Array) -> Array:
        """Return for each entry the weight of its block, in the precision of ``x``."""
        return self._everywhere(self.of_blocks, x)

    def value(self, x: Array) -> float:
        return float(self.of_blocks @ self.lengths(x))

    def subgradient(self, x: Array) -> Array:
        lengths = self.lengths(x)
        factors = self.of_blocks / np.where(lengths > 0.0, lengths, 1.0)
        return x * self._everywhere(factors, x)

    def prox(self, x: Array, step: float) -> Array:
        return x - self._clipped(x, float(step) * self.of_blocks)

    def _clipped(self, x: Array, bounds: Vector) -> Array:
        """Return ``x`` with every block shortened to its bound."""
        lengths = self.lengths(x)
        beyond = lengths > bounds
        factors = np.where(beyond, bounds / np.where(beyond, lengths, 1.0), 1.0)
        return x * self._everywhere(factors, x)

    def minorant(self, x: Array, target: Array) -> tuple[float, Array]:
        return 0.0, self._clipped(target, self.of_blocks)

    def scale_into_domain(self, v: Array) -> float:
        lengths = self.lengths(v)
        beyond = lengths > self.of_blocks
        return float((self.of_blocks[beyond] / lengths[beyond]).min(initial=1.0))

    def lipschitz(self, ball: Ball | None = None) -> Constant | None:
        value = math.sqrt(float(self.of_blocks @ self.of_blocks))
        return Constant(value, Source.DERIVED, "Euclidean norm of the weights of blocks")

    def infimum(self) -> Constant:
        return Constant(0.0, Source.DERIVED, "a norm")

    def sublevel_radius(self, level: float) -> Constant | None:
        if self.least_weight == 0.0:
            return None
        radius = max(level, 0.0) / self.least_weight
        return Constant(radius, Source.DERIVED, "the length is below the sum of those of blocks")


def _check_on_host(x: Array) -> None:
    if not isinstance(x, np.ndarray):
        raise MissingCapabilityError(
            "groups and joint sparsity need data on the host: pass NumPy arrays"
        )


class Blocks(Opaque):
    """The sum of the lengths of blocks as an atom that has a cone program, for interior-point methods."""

    function: BlockNorm

    def add_to_cone_program(self, program: ConeBuilder, image: RealImage, scale: float) -> None:
        f, D = self.function, scipy.sparse.csr_array(image.D)
        d, sizes = len(f.labels), np.bincount(f.labels)
        order, firsts = np.argsort(f.labels, kind="stable"), np.cumsum(sizes) - sizes
        for size in np.unique(sizes):
            (blocks,) = np.nonzero(sizes == size)
            entries = order[firsts[blocks][:, None] + np.arange(size)]
            if image.is_complex:
                entries = np.hstack([entries, entries + d])
            places = np.arange(len(blocks) * (1 + entries.shape[1])).reshape(len(blocks), -1)
            inside, count = places[:, 1:].ravel(), places.size
            t = program.new_variables(len(blocks))
            program.add_linear(scale * f.of_blocks[blocks], t)
            bounds = np.zeros(count)
            bounds[inside] = -image.b[entries.ravel()]
            heads = place_rows(-scipy.sparse.eye_array(len(blocks)), places[:, 0], count)
            rows = place_rows(-D[entries.ravel()], inside, count)
            program.add_second_order(places.shape[1], bounds, (heads, t), (rows, 0))


class Repeated(LinearMap):
    """``X -> A X`` on the entries of ``X``, row by row, as a vector.

    Parameters
    ----------
    base : LinearMap
        The map of one vector.
    copies : int
        The number of columns of ``X``.

    Examples
    --------
    >>> import numpy as np
    >>> from lopro.basis_pursuit.block_norm import Repeated
    >>> from lopro.maps import linear_map
    >>> A = Repeated(linear_map(np.array([[1.0, 2.0]])), 2)
    >>> A.shape, A.forward(np.array([1.0, 0.0, 10.0, 1.0]))
    ((2, 4), array([21.,  2.]))
    """

    def __init__(self, base: LinearMap, copies: int) -> None:
        rows, columns = base.shape
        super().__init__(
            base.source, (rows * copies, columns * copies), base.like, base.name, base.nbytes
        )
        self.base, self.copies = base, copies

    def _as_block(self, v: Array) -> Array:
        return v.reshape(-1, self.copies)

    # The base counts the products: one for each column of X, in one pass.

    def forward(self, x: Array) -> Array:
        return self.base.forward(self._as_block(x)).reshape(-1)

    def adjoint(self, y: Array) -> Array:
        return self.base.adjoint(self._as_block(y)).reshape(-1)

    def least_squares_rest(self, y: Any) -> Any:
        """Return the least-squares residual of the entries of ``Y``; the base has a matrix."""
        matrix, rest = np.asarray(self.base.toarray()), y.reshape(-1, self.copies)
        rows, columns = matrix.shape
        current_deadline().need(8.0 * rows * columns * min(rows, columns))
        # Twice: a short residual is orthogonal only up to the rounding of the right-hand side.
        for _ in range(2):
            rest = rest - matrix @ np.linalg.lstsq(matrix, rest, rcond=None)[0]
        return rest.ravel()

    @property
    def has_columns(self) -> bool:
        return self.base.has_columns

    @property
    def in_memory(self) -> bool:
        return self.base.in_memory

    def read_columns(self, indices: Any) -> Any:
        """Return columns: those of the base, in the rows of their right-hand side."""
        which, side = np.divmod(indices, self.copies)
        block = dense(self.base.columns(which))
        spread = np.zeros((self.base.shape[0], self.copies, len(which)), dtype=block.dtype)
        spread[:, side, np.arange(len(which))] = block
        return spread.reshape(self.shape[0], len(which))

    def adjoint_exactly(self, y: Array) -> Array:
        return self.base.adjoint_exactly(self._as_block(y)).reshape(-1)
