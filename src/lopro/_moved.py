"""Modules that have moved: their old names work for one release, with a warning.

`PLACES` are names of rooms that users know from the package itself (`lopro.inner`, ...): they stay.
`MOVED` are modules that were imported by their path.
"""

from __future__ import annotations

import importlib
import sys
import warnings
from collections.abc import Sequence
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from types import ModuleType

__all__ = ["MOVED", "PLACES", "MovedFunction", "install"]

PLACES = {
    "lopro.adaptive": "lopro.methods.paper.adaptive",
    "lopro.baselines": "lopro.methods.baselines",
    "lopro.inner": "lopro.methods.inner",
    "lopro.restarts": "lopro.methods.paper.restarts",
    "lopro.schedules": "lopro.methods.paper.theorems",
    "lopro.stopping": "lopro.driver.stopping",
    "lopro.theorems": "lopro.methods.paper.theorems",
    "lopro.theory": "lopro.methods.theory",
}

MOVED = {
    "lopro.about": "lopro.methods.registry",
    "lopro.applications": "lopro",
    "lopro.applications.compressive_sensing": "lopro.basis_pursuit",
    "lopro.applications.metric_learning": "lopro.metric",
    "lopro.conic": "lopro.conic_forms",
    "lopro.epochs": "lopro.protocol",
    "lopro.linear": "lopro.maps",
    "lopro.oracles": "lopro.core.counting",
    "lopro.penalised": "lopro.penalties",
    "lopro.result": "lopro.driver.result",
    "lopro.schemes": "lopro",
}


class _Finder(MetaPathFinder, Loader):
    """Finds an old name and hands out the module that bears the new one."""

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        if fullname in PLACES or fullname in MOVED:
            return ModuleSpec(fullname, self)
        return None

    def create_module(self, spec: ModuleSpec) -> ModuleType:
        name = spec.name
        if name in MOVED:
            # Frames between here and the import statement belong to the import system; Python skips them.
            warnings.warn(
                f"{name} is now {MOVED[name]}; the old name goes with the next release",
                DeprecationWarning,
                stacklevel=2,
            )
        return importlib.import_module(PLACES.get(name) or MOVED[name])

    def exec_module(self, module: ModuleType) -> None:
        """Do nothing: the module has been executed under its own name."""


class MovedFunction:
    """A function that was a method: reading it warns, and gives the function."""

    def __init__(self, module: str, name: str) -> None:
        self.module, self.name = module, name

    def __get__(self, instance: object, owner: type) -> object:
        warnings.warn(
            f"{owner.__name__}.{self.name} is now {self.module}.{self.name}; the old name goes with "
            "the next release",
            DeprecationWarning,
            stacklevel=2,
        )
        return getattr(importlib.import_module(self.module), self.name)


def install() -> None:
    """Let the import system know the old names."""
    if not any(isinstance(finder, _Finder) for finder in sys.meta_path):
        sys.meta_path.append(_Finder())
