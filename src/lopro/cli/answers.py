"""Output of results: a few lines of text, or strict JSON."""

from __future__ import annotations

import json
import math
import sys
from dataclasses import asdict
from typing import Any

import numpy as np
from rich.console import Console

from lopro.core.arrays import to_numpy
from lopro.driver.result import Result

__all__ = ["as_data", "console", "print_json", "progress_wanted", "summary"]


def console() -> Console:
    """Return the console for tables: of the width of the terminal, or 118 columns in a pipe."""
    return Console(width=None if sys.stdout.isatty() else 118, highlight=False, markup=False)


def progress_wanted(quiet: bool) -> bool:
    """Whether to show progress: on a terminal, unless the option ``--quiet`` is given."""
    return not quiet and sys.stderr.isatty()


def summary(result: Result) -> dict[str, Any]:
    """Return a result without its point as plain data.

    Examples
    --------
    >>> import lopro
    >>> from lopro.cli.answers import summary
    >>> summary(lopro.bpdn([[2.0, 1.0]], [2.0], sigma=1.0))["status"]
    'CONVERGED'
    """
    return {
        "status": result.status.name,
        "success": result.success,
        "message": result.message,
        "fun": result.fun,
        "certificate": asdict(result.certificate),
        "counts": result.counts.to_dict(),
        "certificate_counts": result.certificate_counts.to_dict(),
        "iterations": result.iterations,
        "seconds": result.seconds,
        "method": result.method,
        "warnings": list(result.warnings),
    }


def as_data(value: Any) -> Any:
    """Return ``value`` as JSON data: lists for arrays, two for complex ones, None for NaN and infinity."""
    if isinstance(value, dict):
        return {str(key): as_data(entry) for key, entry in value.items()}
    if isinstance(value, (list, tuple)):
        return [as_data(entry) for entry in value]
    if isinstance(value, (np.ndarray, np.generic)):
        array = to_numpy(value)
        if np.iscomplexobj(array):
            return {"real": as_data(array.real), "imag": as_data(array.imag)}
        return as_data(array.tolist())
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value


def print_json(value: Any) -> None:
    """Print ``value`` as a JSON document on standard output."""
    print(json.dumps(as_data(value), indent=2, allow_nan=False))
