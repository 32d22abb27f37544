"""Description of the machine and versions of packages, to accompany measurements."""

from __future__ import annotations

import os
import platform
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import lopro

__all__ = ["facts", "memory", "processor"]

_NEEDED = ("numpy", "scipy", "array-api-compat", "clarabel", "piqp", "rich", "threadpoolctl")
_OPTIONAL = (
    "scikit-learn",
    "matplotlib",
    "PyWavelets",
    "torch",
    "cupy",
    "spgl1",
    "celer",
    "cvxpy",
    "benchopt",
)


def facts() -> dict[str, Any]:
    """Return a description of the machine and the versions of packages.

    Examples
    --------
    >>> from lopro.cli.machine import facts
    >>> sorted(facts())[:5]
    ['cores', 'linear algebra', 'lopro', 'machine', 'memory']
    """
    import scipy.linalg  # noqa: F401  (its thread pool is only listed once it is loaded)
    from threadpoolctl import threadpool_info

    pools = [
        f"{pool['internal_api']} {pool['version']}, {pool['num_threads']} threads"
        for pool in threadpool_info()
    ]
    return {
        "lopro": lopro.__version__,
        "python": f"{platform.python_implementation()} {platform.python_version()}",
        "machine": f"{platform.system()} {platform.machine()}",
        "processor": processor(),
        "cores": os.cpu_count(),
        "memory": memory(),
        "linear algebra": pools,
        "packages": {name: _version(name) for name in _NEEDED},
        "optional": {name: _version(name) for name in _OPTIONAL},
    }


def processor() -> str:
    """Return the name of the processor, or its architecture if the name is not known."""
    cpuinfo = Path("/proc/cpuinfo")
    if cpuinfo.exists():
        for line in cpuinfo.read_text(encoding="utf-8").splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    return platform.processor() or platform.machine()


def memory() -> str:
    """Return the size of the memory, or "not known"."""
    try:
        size = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (AttributeError, ValueError, OSError):
        return "not known"
    return f"{size / 2**30:.1f} GiB"


def _version(package: str) -> str | None:
    try:
        return version(package)
    except PackageNotFoundError:
        return None
