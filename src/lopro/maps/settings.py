"""Sizes and costs of matrices in the memory of the host."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["SETTINGS", "Settings"]


@dataclass(frozen=True)
class Settings:
    """Limits of checks and blocks, and costs of columns."""

    #: Entries (8 MB of doubles, above most caches) from which on the check for NaN is made by the first
    #: product instead of at construction.
    many_entries: int = 2**20
    #: Bytes from which on a product is computed by slabs of rows. BLAS reads all rows several times, for some
    #: columns each, and 2^16 pages exceed the address caches of the processor.
    slab_bytes: int = 2**28
    #: Cost of an entry of contiguous single columns relative to one in a product, for a copy and a product:
    #: 1.3 to 2.0 with 1000 x 10000 to 500 x 50000 entries on one core.
    contiguous_column: int = 2
    #: The same for strided columns: each entry loads a cache line of 8 doubles, without prefetching. 8 to 21
    #: on one core; products use several cores, indexing does not.
    strided_column: int = 40


SETTINGS = Settings()
