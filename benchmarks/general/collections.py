"""Folders of the public collections of problems, given by an argument or by LOPRO_DATA."""

from __future__ import annotations

import os
from pathlib import Path

__all__ = ["folder_of"]


def folder_of(collection: str, given: str | None = None) -> Path:
    """Return the folder of a collection, or exit with a message that says how to name it."""
    home = os.environ.get("LOPRO_DATA")
    if given is None and home is None:
        raise SystemExit(
            f"where is {collection}? Give its folder, or set LOPRO_DATA to the folder that holds it"
        )
    folder = Path(given) if given is not None else Path(str(home)) / collection
    if not folder.is_dir():
        raise SystemExit(f"{folder} is not a folder")
    return folder
