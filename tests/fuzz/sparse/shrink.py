"""Simpler calls of basis pursuit: fewer results, columns, rows, options, digits."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from fuzz.sparse.case import SparseCase

__all__ = ["chunks", "rounded", "simpler"]


def simpler(case: SparseCase) -> Iterator[SparseCase]:
    """Yield simpler cases, the largest reductions first."""
    yield from _fewer_results(case)
    for kept in chunks(case.A.shape[1]):
        yield _columns(case, kept)
    for kept in chunks(case.A.shape[0]):
        y = case.y[kept]
        yield case.with_changes(A=case.A[kept], y=y, planted=None)
    yield from _fewer_options(case)
    for digits in (1, 3):
        yield case.with_changes(A=rounded(case.A, digits))
        yield case.with_changes(y=rounded(case.y, digits))


def chunks(size: int) -> Iterator[Any]:
    """Yield index arrays that leave out halves, quarters, ..., single entries."""
    width = size // 2
    while width >= 1:
        for start in range(0, size, width):
            kept = np.r_[0:start, min(start + width, size) : size]
            if len(kept):
                yield kept
        width //= 2


def rounded(values: Any, digits: int) -> Any:
    """Return an array rounded to a number of significant digits, in its own dtype."""
    with np.errstate(all="ignore"):
        exponent = np.floor(np.log10(np.where(values == 0, 1.0, np.abs(values))))
        unit = 10.0 ** (exponent - digits + 1)
        return (np.round(values / unit) * unit).astype(values.dtype)


def _columns(case: SparseCase, kept: Any) -> SparseCase:
    def cut(values: Any) -> Any:
        return values[kept] if isinstance(values, np.ndarray) else values

    return case.with_changes(
        A=case.A[:, kept], weights=cut(case.weights), x0=cut(case.x0), planted=None
    )


def _fewer_results(case: SparseCase) -> Iterator[SparseCase]:
    if case.kind == "path" and isinstance(case.sigma, tuple):
        for sigma in case.sigma:
            yield case.with_changes(kind="bpdn", sigma=sigma)
        for kept in chunks(len(case.sigma)):
            yield case.with_changes(sigma=tuple(case.sigma[i] for i in kept))
    if case.kind == "many":
        for kept in chunks(case.y.shape[1]):
            radii: Any = case.sigma
            radii = tuple(radii[i] for i in kept) if isinstance(radii, tuple) else radii
            x0 = None if case.x0 is None else case.x0[:, kept]
            planted = None if case.planted is None else case.planted[:, kept]
            yield case.with_changes(y=case.y[:, kept], sigma=radii, x0=x0, planted=planted)


def _fewer_options(case: SparseCase) -> Iterator[SparseCase]:
    for name in set(case.options) - {"time_limit"}:
        yield case.with_changes(options={k: v for k, v in case.options.items() if k != name})
    for name, plain in (
        ("form", "dense"),
        ("weights", None),
        ("nonneg", False),
        ("x0", None),
        ("method", None),
        ("tol", None),
    ):
        value = getattr(case, name)
        if isinstance(value, np.ndarray) or value not in (plain, None):
            yield case.with_changes(**{name: plain})
