"""The folder of results, and the description of the machine that is stored with them."""

from __future__ import annotations

import json
import math
import os
import platform
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import scipy

import lopro
from lopro.cli.machine import processor

# `python benchmarks/script.py` has this folder on its path, and not the one with `paper` and `benchmarks`.
sys.path.append(str(Path(__file__).resolve().parent.parent))

RESULTS = Path(__file__).parent / "results"
DOCS_IMAGES = Path(__file__).parent.parent / "docs" / "images"


def environment() -> dict[str, Any]:
    """Return the machine, the versions and the command of a measurement."""
    return {
        "command": " ".join(["python", *sys.argv]),
        "python": platform.python_version(),
        "numpy": np.__version__,
        "scipy": scipy.__version__,
        "lopro": lopro.__version__,
        "processor": processor(),
        "cores": os.cpu_count(),
        "load_average": os.getloadavg()[0] if hasattr(os, "getloadavg") else None,
    }


def finite(data: Any) -> Any:
    """Return plain data with infinities and NaN replaced by None, which JSON does not have."""
    if isinstance(data, dict):
        return {key: finite(value) for key, value in data.items()}
    if isinstance(data, list | tuple):
        return [finite(value) for value in data]
    return None if isinstance(data, float) and not math.isfinite(data) else data


def write_entry(
    path: Path, name: str, entry: Mapping[str, Any], settings: Mapping[str, Any]
) -> None:
    """Replace one entry of a file of results, with the environment it was measured in."""
    content = json.loads(path.read_text(encoding="utf-8")) if path.exists() else {}
    content[name] = {"environment": environment(), "settings": settings, **entry}
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(finite(content), indent=2, allow_nan=False) + "\n", encoding="utf-8")


def write_json(name: str, content: Mapping[str, Any]) -> Path:
    """Write ``content`` with the environment it was measured in; return the path."""
    RESULTS.mkdir(exist_ok=True)
    path = RESULTS / f"{name}.json"
    path.write_text(
        json.dumps({"environment": environment(), **content}, indent=2) + "\n", encoding="utf-8"
    )
    return path
