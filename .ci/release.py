"""Check that a tag and the files that state the version agree; print the notes of a release.

python .ci/release.py v0.2.0            check, with one line for each disagreement
python .ci/release.py v0.2.0 --notes    the section of CHANGELOG.md
"""

from __future__ import annotations

import argparse
import re
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent

#: Where the version is stated, and how.
STATED = {
    "src/lopro/__init__.py": r'^__version__ = "(.+)"$',
    "CITATION.cff": r"^version: (.+)$",
    "recipe/meta.yaml": r'^\{% set version = "(.+)" %\}$',
}
_HEADING = r"^## \[{version}\](?: - (?P<date>.+))?$"
_DATE = r"\d{4}-\d{2}-\d{2}"


def stated() -> dict[str, str]:
    """Return the version that each file states; "" where none is found."""
    found = {
        name: re.search(pattern, (ROOT / name).read_text(encoding="utf-8"), re.MULTILINE)
        for name, pattern in STATED.items()
    }
    return {name: "" if match is None else match[1] for name, match in found.items()}


def notes(version: str) -> tuple[str | None, str]:
    """Return the date and the text of the version's section of the changelog; (None, "") without one."""
    text = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    heading = re.search(_HEADING.format(version=re.escape(version)), text, re.MULTILINE)
    if heading is None:
        return None, ""
    rest = text[heading.end() :]
    following = re.search(r"^## \[", rest, re.MULTILINE)
    return heading["date"], rest[: following.start() if following else None].strip()


def complaints(tag: str) -> list[str]:
    """Return the reasons why the tag cannot be released."""
    version = tag.removeprefix("v")
    wrong = [
        f"{name} states {found or 'no version'}, not {version}"
        for name, found in stated().items()
        if found != version
    ]
    date, text = notes(version)
    if not text:
        wrong.append(f"CHANGELOG.md has no section [{version}]")
    elif not re.fullmatch(_DATE, date or ""):
        wrong.append(
            f"CHANGELOG.md: the section [{version}] has no date (## [{version}] - YYYY-MM-DD)"
        )
    return wrong


def main() -> None:
    """Check, or print the notes."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("tag", help="v0.2.0, say")
    parser.add_argument("--notes", action="store_true", help="print the section of the changelog")
    options = parser.parse_args()
    if options.notes:
        print(notes(options.tag.removeprefix("v"))[1])
        return
    wrong = complaints(options.tag)
    print("\n".join(wrong) if wrong else f"{options.tag}: all files agree")
    sys.exit(bool(wrong))


if __name__ == "__main__":
    main()
