"""The scripts of the folder ``examples``, from a checkout or from an installed package."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from types import ModuleType

import lopro

__all__ = ["example"]


def example(name: str) -> ModuleType:
    """Return the example of this name as a module.

    Examples
    --------
    >>> from lopro.report.examples import example
    >>> example("ecg").WAVELET
    'db4'
    """
    path = _path(name)
    spec = importlib.util.spec_from_file_location(f"lopro_example_{name}", path)
    assert spec is not None and spec.loader is not None  # a Python file has both
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module  # a dataclass looks its module up by name
    spec.loader.exec_module(module)
    return module


def _path(name: str) -> Path:
    package = Path(lopro.__file__).parent
    # The wheel carries a copy; an installation in place leaves the scripts where they are.
    places = [package / "_examples", package.parents[1] / "examples"]
    for folder in places:
        if (folder / f"{name}.py").is_file():
            return folder / f"{name}.py"
    raise FileNotFoundError(f"there is no example {name!r} in {' or '.join(map(str, places))}")
