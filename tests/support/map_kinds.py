"""Every kind of linear map: how to make one of a NumPy matrix, and the counts to expect.

To put a new kind under all contracts, add one line to ``KINDS``.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import array_api_strict
import numpy as np
import pytest
import scipy.sparse
import scipy.sparse.linalg

from lopro.maps import LinearMap, StoredMap, linear_map

Matrix = Any


@dataclass(frozen=True)
class Kind:
    """One kind of map: ``make`` returns an object that `linear_map` takes."""

    name: str
    make: Callable[[Matrix, Path], Any]
    #: Packages that it needs; tests are skipped where they are missing.
    needs: tuple[str, ...] = ()
    #: Converts NumPy vectors into the library of the map.
    of: Callable[[Matrix], Any] = np.asarray
    #: Whether data are double precision behind the map, whatever they are in front of it.
    wide: bool = False
    #: Whether requests that are put together share a pass.
    shares: bool = False
    #: Whether there are columns, rows and norms.
    entries: bool = True
    #: Passes that a product with k vectors takes.
    passes: Callable[[int], int] = lambda k: 1

    def map(self, matrix: Matrix, folder: Path) -> LinearMap:
        """Return the map of a matrix, or skip the test with the reason."""
        for package in self.needs:
            pytest.importorskip(package, reason=f"{package} is not installed")
        self.prepare()
        return linear_map(self.make(matrix, folder))

    def prepare(self) -> None:
        """Set what a library needs to be set."""
        if "jax" in self.needs:
            import jax

            jax.config.update("jax_enable_x64", True)
        if self.name == "torch-cuda":
            import torch

            if not torch.cuda.is_available():
                pytest.skip("PyTorch finds no GPU")
        if "cupy" in self.needs:
            import cupy

            if not cupy.cuda.is_available():
                pytest.skip("CuPy finds no GPU")

    def nbytes(self, matrix: Matrix, A: LinearMap) -> int:
        """Return the bytes that a pass reads."""
        if not self.entries:
            return 0
        return A.nbytes if self.name.startswith("cs") else int(matrix.nbytes)

    def __str__(self) -> str:
        return self.name


def memmap(order: str, mode: str = "r") -> Callable[[Matrix, Path], Any]:
    """Return a function that writes a matrix to a file and maps it."""

    def make(matrix: Matrix, folder: Path) -> Any:
        path = folder / f"matrix-{order}-{mode}"
        shape = matrix.shape
        written = np.memmap(path, dtype=matrix.dtype, shape=shape, mode="w+", order=order)
        written[:] = matrix
        written.flush()
        return np.memmap(path, dtype=matrix.dtype, shape=shape, mode=mode, order=order)

    return make


def npy(matrix: Matrix, folder: Path) -> Any:
    np.save(folder / "matrix.npy", matrix)
    return np.load(folder / "matrix.npy", mmap_mode="r")


def zarr_array(chunks: tuple[int, int]) -> Callable[[Matrix, Path], Any]:
    def make(matrix: Matrix, folder: Path) -> Any:
        import zarr

        path = str(folder / f"matrix-{chunks[0]}-{chunks[1]}.zarr")
        array = zarr.open_array(
            path, mode="w", shape=matrix.shape, chunks=chunks, dtype=matrix.dtype
        )
        array[:] = matrix
        return zarr.open_array(path, mode="r")

    return make


def hdf5(**options: Any) -> Callable[[Matrix, Path], Any]:
    def make(matrix: Matrix, folder: Path) -> Any:
        import h5py

        # Left open on purpose: a dataset lives as long as its file does; it is closed with the test.
        file = h5py.File(folder / "matrix.h5", "w")
        return file.create_dataset("A", data=matrix, **options)

    return make


class Sliced:
    """A class of a user's own: a shape, a dtype and slicing, and nothing else."""

    def __init__(self, matrix: Matrix) -> None:
        self._matrix, self.shape, self.dtype = matrix, matrix.shape, matrix.dtype

    def __getitem__(self, place: Any) -> Matrix:
        return self._matrix[place].copy()


def tiled(matrix: Matrix, folder: Path) -> StoredMap:
    """Small blocks in both directions, none of which fits evenly."""
    return StoredMap(Sliced(matrix), chunks=(3, 2), block_bytes=6 * matrix.dtype.itemsize)


def dask_array(chunks: Any) -> Callable[[Matrix, Path], Any]:
    def make(matrix: Matrix, folder: Path) -> Any:
        import dask.array

        return dask.array.from_array(matrix, chunks=chunks)

    return make


def torch_of(matrix: Matrix) -> Any:
    import torch

    return torch.asarray(np.array(matrix))


def cuda_of(matrix: Matrix) -> Any:
    return torch_of(matrix).to("cuda")


def jax_of(matrix: Matrix) -> Any:
    import jax.numpy

    return jax.numpy.asarray(matrix)


def cupy_of(matrix: Matrix) -> Any:
    import cupy

    return cupy.asarray(matrix)


class Products:
    """An operator of a user's own, with products of blocks."""

    def __init__(self, A: Matrix) -> None:
        self.A, self.shape, self.dtype = A, A.shape, A.dtype

    def matvec(self, x: Matrix) -> Matrix:
        return self.A @ x

    def rmatvec(self, y: Matrix) -> Matrix:
        return self.A.conj().T @ y

    matmat, rmatmat = matvec, rmatvec


class Dictionary(Products):
    """An operator that also gives its columns and rows."""

    @property
    def nbytes(self) -> int:
        return int(self.A.nbytes)

    def columns(self, indices: Matrix) -> Matrix:
        return self.A[:, indices]

    def rows(self, indices: Matrix) -> Matrix:
        return self.A[indices]


def alone(function: Callable[[Matrix], Any]) -> Callable[[Matrix, Path], Any]:
    return lambda matrix, folder: function(matrix)


STREAMED: dict[str, Any] = {"wide": True, "shares": True}


def torch_csr_of(matrix: Matrix) -> Any:
    """Return a sparse tensor of PyTorch, which calls its layouts a beta version."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return torch_of(matrix).to_sparse_csr()


KINDS = [
    Kind("numpy", alone(np.array)),
    Kind("fortran", alone(np.asfortranarray)),
    Kind("csr", alone(scipy.sparse.csr_array)),
    Kind("csc", alone(scipy.sparse.csc_array)),
    Kind("strict", alone(array_api_strict.asarray), of=array_api_strict.asarray),
    Kind("torch", alone(torch_of), ("torch",), of=torch_of),
    Kind("csr-torch", alone(torch_csr_of), ("torch",), of=torch_of),
    Kind("torch-cuda", alone(cuda_of), ("torch",), of=cuda_of),
    Kind("jax", alone(jax_of), ("jax",), of=jax_of),
    Kind("cupy", alone(cupy_of), ("cupy",), of=cupy_of),
    Kind(
        "LinearOperator",
        alone(scipy.sparse.linalg.aslinearoperator),
        entries=False,
        passes=lambda k: k,
    ),
    Kind("operator", alone(Products), entries=False),
    Kind("dictionary", alone(Dictionary)),
    Kind("memmap-rows", memmap("C"), **STREAMED),
    Kind("memmap-columns", memmap("F"), **STREAMED),
    Kind("memmap-writable", memmap("C", "r+"), **STREAMED),
    Kind("npy", npy, **STREAMED),
    Kind("sliced", alone(Sliced), **STREAMED),
    Kind("tiled", tiled, **STREAMED),
    Kind("zarr-rows", zarr_array((2, 100)), ("zarr",), **STREAMED),
    Kind("zarr-columns", zarr_array((100, 3)), ("zarr",), **STREAMED),
    Kind("zarr-tiles", zarr_array((4, 5)), ("zarr",), **STREAMED),
    Kind("hdf5", hdf5(), ("h5py",), **STREAMED),
    Kind("hdf5-chunks", hdf5(chunks=(4, 3), compression="gzip"), ("h5py",), **STREAMED),
    Kind("dask-rows", dask_array((3, -1)), ("dask.array",), **STREAMED),
    Kind("dask-columns", dask_array((-1, 4)), ("dask.array",), **STREAMED),
    Kind("dask-tiles", dask_array(((4, 0, 4, 1), (5, 5, 3))), ("dask.array",), **STREAMED),
]
