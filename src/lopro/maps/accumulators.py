"""Accumulators, one for each request, which assemble its answer block by block."""

from __future__ import annotations

from typing import Any

import numpy as np

from lopro.core.arrays import Matrix
from lopro.maps.algebra import within
from lopro.maps.double import adjoint_product, product, squares, wide_dtype
from lopro.maps.requests import (
    Adjoint,
    Columns,
    Forward,
    Norms,
    Request,
    Rows,
)

__all__ = ["Accumulator", "accumulator_for"]


class Accumulator:
    """Assembles the answer to a request from the parts of the blocks, in the order of the blocks.

    Blocks are ordered by columns, then by rows.
    """

    def contribution(self, block: Matrix, rows: slice, columns: slice) -> Any:
        """Return the contribution of a block; called for several blocks at the same time."""
        raise NotImplementedError

    def add(self, share: Any, rows: slice, columns: slice) -> None:
        """Add the contribution of a block."""
        raise NotImplementedError

    def answer(self) -> Any:
        """Return the answer."""
        raise NotImplementedError


class _Forward(Accumulator):
    def __init__(self, request: Forward, shape: tuple[int, int], dtype: np.dtype[Any]) -> None:
        self._X = request.points
        wide = np.result_type(dtype, wide_dtype(self._X.dtype))
        self._total = np.zeros((shape[0], *self._X.shape[1:]), dtype=wide)

    def contribution(self, block: Matrix, rows: slice, columns: slice) -> Matrix:
        return product(block, self._X[columns])

    def add(self, share: Matrix, rows: slice, columns: slice) -> None:
        self._total[rows] += share

    def answer(self) -> Matrix:
        return self._total


class _Adjoint(Accumulator):
    def __init__(self, request: Adjoint, shape: tuple[int, int], dtype: np.dtype[Any]) -> None:
        self._Y = request.duals
        wide = np.result_type(dtype, wide_dtype(self._Y.dtype))
        self._total = np.zeros((shape[1], *self._Y.shape[1:]), dtype=wide)

    def contribution(self, block: Matrix, rows: slice, columns: slice) -> Matrix:
        return adjoint_product(block, self._Y[rows])

    def add(self, share: Matrix, rows: slice, columns: slice) -> None:
        self._total[columns] += share

    def answer(self) -> Matrix:
        return self._total


class _Columns(Accumulator):
    def __init__(self, request: Columns, shape: tuple[int, int], dtype: np.dtype[Any]) -> None:
        self._indices = request.indices
        self._block = np.empty((shape[0], len(self._indices)), dtype=dtype, order="F")

    def contribution(self, block: Matrix, rows: slice, columns: slice) -> Matrix:
        return np.asarray(block[:, within(self._indices, columns)[1]])

    def add(self, share: Matrix, rows: slice, columns: slice) -> None:
        self._block[rows, within(self._indices, columns)[0]] = share

    def answer(self) -> Matrix:
        return self._block


class _Rows(Accumulator):
    def __init__(self, request: Rows, shape: tuple[int, int], dtype: np.dtype[Any]) -> None:
        self._indices = request.indices
        self._block = np.empty((len(self._indices), shape[1]), dtype=dtype)

    def contribution(self, block: Matrix, rows: slice, columns: slice) -> Matrix:
        return np.asarray(block[within(self._indices, rows)[1]])

    def add(self, share: Matrix, rows: slice, columns: slice) -> None:
        self._block[within(self._indices, rows)[0], columns] = share

    def answer(self) -> Matrix:
        return self._block


class _Norms(Accumulator):
    def __init__(self, request: Norms, shape: tuple[int, int], dtype: np.dtype[Any]) -> None:
        self._axis = request.axis
        self._squares = np.zeros(shape[1 - self._axis])

    def contribution(self, block: Matrix, rows: slice, columns: slice) -> Matrix:
        return squares(block, self._axis)

    def add(self, share: Matrix, rows: slice, columns: slice) -> None:
        self._squares[columns if self._axis == 0 else rows] += share

    def answer(self) -> Matrix:
        return np.sqrt(self._squares)


def accumulator_for(request: Request, shape: tuple[int, int], dtype: np.dtype[Any]) -> Accumulator:
    """Return the accumulator of a checked request for a matrix of this shape and (double precision) dtype."""
    kinds: dict[type[Request], Any] = {
        Forward: _Forward,
        Adjoint: _Adjoint,
        Columns: _Columns,
        Rows: _Rows,
        Norms: _Norms,
    }
    found: Accumulator = kinds[type(request)](request, shape, dtype)
    return found
