"""One matrix in every kind of storage, and plain reads of it."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

#: Bytes written and read at a time.
PIECE = 2**25


@dataclass(frozen=True)
class Stored:
    """A matrix in storage: the object that a linear map is made of, and its files (none: in memory)."""

    name: str
    source: Any
    files: tuple[Path, ...]

    def read_plainly(self) -> None:
        """Read all bytes in order without using them."""
        if not self.files:
            float(self.source.sum())
            return
        buffer = memoryview(bytearray(PIECE))
        for path in self.files:
            with open(path, "rb", buffering=0) as file:
                while file.readinto(buffer):
                    pass

    def forget(self) -> None:
        """Drop the files from the cache of the operating system."""
        for path in self.files:
            handle = os.open(path, os.O_RDONLY)
            os.fsync(handle)
            os.posix_fadvise(handle, 0, 0, os.POSIX_FADV_DONTNEED)
            os.close(handle)


def _filled(target: Any, shape: tuple[int, int], dtype: Any) -> None:
    """Write random numbers, a few rows at a time."""
    rng = np.random.default_rng(0)
    step = max(1, PIECE // (shape[1] * np.dtype(dtype).itemsize))
    for start in range(0, shape[0], step):
        stop = min(start + step, shape[0])
        target[start:stop] = rng.standard_normal((stop - start, shape[1]), dtype=np.float32)


def in_memory(folder: Path, shape: tuple[int, int], dtype: Any) -> list[Stored]:
    matrix = np.empty(shape, dtype=dtype)
    _filled(matrix, shape, dtype)
    return [Stored("numpy", matrix, ())]


def on_a_gpu(folder: Path, shape: tuple[int, int], dtype: Any) -> list[Stored]:
    import torch

    matrix = torch.randn(shape, dtype=getattr(torch, dtype), device="cuda")
    return [Stored("torch, gpu", matrix, ())]


def memmaps(folder: Path, shape: tuple[int, int], dtype: Any) -> list[Stored]:
    """One file, read as rows and read as columns."""
    path = folder / "matrix.raw"
    made = np.memmap(path, dtype=dtype, mode="w+", shape=shape)
    _filled(made, shape, dtype)
    made.flush()
    rows, columns = (
        np.memmap(path, dtype=dtype, mode="r", shape=shape, order=order) for order in "CF"
    )
    return [Stored("memmap, rows", rows, (path,)), Stored("memmap, columns", columns, (path,))]


def dask_arrays(folder: Path, shape: tuple[int, int], dtype: Any) -> list[Stored]:
    """The file of the memmaps once more, in blocks for dask's threads."""
    import dask.array

    (rows, columns) = memmaps(folder, shape, dtype)
    height = max(1, PIECE // (shape[1] * np.dtype(dtype).itemsize))
    width = max(1, PIECE // (shape[0] * np.dtype(dtype).itemsize))
    return [
        Stored("dask, rows", dask.array.from_array(rows.source, (height, -1)), rows.files),
        Stored("dask, columns", dask.array.from_array(columns.source, (-1, width)), columns.files),
    ]


def zarr_arrays(folder: Path, shape: tuple[int, int], dtype: Any) -> list[Stored]:
    import zarr

    found = []
    itemsize = np.dtype(dtype).itemsize
    for name, chunks in (
        ("zarr, rows", (max(1, 2**22 // (shape[1] * itemsize)), shape[1])),
        ("zarr, columns", (shape[0], max(1, 2**22 // (shape[0] * itemsize)))),
    ):
        path = folder / f"{name}.zarr"
        made = zarr.create_array(
            str(path), shape=shape, chunks=chunks, dtype=dtype, compressors=None
        )
        _filled_by_chunks(made, shape, chunks, dtype)
        files = tuple(sorted(p for p in path.rglob("*") if p.is_file()))
        found.append(Stored(name, zarr.open_array(str(path), mode="r"), files))
    return found


def hdf5_arrays(folder: Path, shape: tuple[int, int], dtype: Any) -> list[Stored]:
    import h5py

    found = []
    width = max(1, 2**20 // (shape[0] * np.dtype(dtype).itemsize))
    for name, chunks in (("hdf5, rows", None), ("hdf5, columns", (shape[0], width))):
        path = folder / f"{name}.h5"
        with h5py.File(path, "w") as file:
            made = file.create_dataset("A", shape, dtype, chunks=chunks)
            _filled_by_chunks(made, shape, chunks or (1, shape[1]), dtype)
        found.append(Stored(name, h5py.File(path, "r")["A"], (path,)))
    return found


def _filled_by_chunks(target: Any, shape: tuple[int, int], chunks: Any, dtype: Any) -> None:
    if chunks[0] < shape[0]:
        _filled(target, shape, dtype)
        return
    rng = np.random.default_rng(0)
    for start in range(0, shape[1], chunks[1]):
        stop = min(start + chunks[1], shape[1])
        target[:, start:stop] = rng.standard_normal((shape[0], stop - start), dtype=np.float32)


KINDS: dict[str, Callable[[Path, tuple[int, int], Any], list[Stored]]] = {
    "numpy": in_memory,
    "memmap": memmaps,
    "zarr": zarr_arrays,
    "hdf5": hdf5_arrays,
    "dask": dask_arrays,
    "torch": on_a_gpu,
}
