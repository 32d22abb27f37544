"""Import of the scripts in the folder ``examples``."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from types import ModuleType

__all__ = ["example"]


def example(name: str) -> ModuleType:
    """Return the example of this name as a module.

    Examples
    --------
    >>> from paper.report.examples import example
    >>> example("ecg").WAVELET
    'db4'
    """
    path = _path(name)
    spec = importlib.util.spec_from_file_location(f"lopro_example_{name}", path)
    assert spec is not None and spec.loader is not None  # a Python file has both
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module  # dataclasses look up their module by name
    spec.loader.exec_module(module)
    return module


def _path(name: str) -> Path:
    path = Path(__file__).parents[2] / "examples" / f"{name}.py"
    if not path.is_file():
        raise FileNotFoundError(f"there is no example {name!r}: {path} is missing")
    return path
