"""Finished parts on disk, so that an interrupted job resumes where it stopped."""

from __future__ import annotations

import json
import os
import shutil
import tempfile
from dataclasses import dataclass
from datetime import UTC, datetime
from hashlib import sha256
from pathlib import Path
from typing import Any

from paper.report.blocks import Section
from paper.report.draft import Draft

__all__ = ["Finished", "Store"]

_RECORD = "part.json"


@dataclass(frozen=True)
class Finished:
    """A part that was run: its section, its time and date, and the folder of its figures."""

    section: Section
    seconds: float
    when: str
    folder: Path


@dataclass(frozen=True)
class Store:
    """A folder with one subfolder for each part and each set of parameters."""

    root: Path

    def load(self, part: str, key: dict[str, Any]) -> Finished | None:
        """Return the part with this key if it is finished."""
        folder = self._folder(part, key)
        try:
            data = json.loads((folder / _RECORD).read_text(encoding="utf-8"))
        except (OSError, ValueError):
            return None
        if data.get("key") != _plain(key):
            return None
        section = Section.from_dict(data["section"])
        return Finished(section, data["seconds"], data["when"], folder)

    def tidy(self) -> None:
        """Remove the remains of a `save` that was killed."""
        for partial in self.root.glob(".*-*"):
            shutil.rmtree(partial, ignore_errors=True)

    def save(self, part: str, key: dict[str, Any], draft: Draft, seconds: float) -> Finished:
        """Write a finished part atomically."""
        section, folder = draft.section(), self._folder(part, key)
        when = datetime.now(UTC).strftime("%Y-%m-%d %H:%M UTC")
        record = {
            "part": part,
            "key": _plain(key),
            "seconds": seconds,
            "when": when,
            "section": section.to_dict(),
        }
        self.root.mkdir(parents=True, exist_ok=True)
        partial = Path(tempfile.mkdtemp(prefix=f".{part}-", dir=self.root))
        try:
            for name, content in draft.files.items():
                (partial / name).write_bytes(content)
            text = json.dumps(record, indent=2, ensure_ascii=False, allow_nan=False)
            (partial / _RECORD).write_text(text + "\n", encoding="utf-8")
            partial.chmod(0o755)
            shutil.rmtree(folder, ignore_errors=True)
            os.replace(partial, folder)
        finally:
            shutil.rmtree(partial, ignore_errors=True)
        return Finished(section, seconds, when, folder)

    def _folder(self, part: str, key: dict[str, Any]) -> Path:
        text = json.dumps(_plain(key), sort_keys=True)
        return self.root / f"{part}-{sha256(text.encode()).hexdigest()[:10]}"


def _plain(key: dict[str, Any]) -> Any:
    """Return the key as it is read from a file."""
    return json.loads(json.dumps(key, sort_keys=True))
