"""The colon-cancer data of the paper's second experiment: read, downloaded, or replaced by random data.

62 tissue samples with 2000 gene expressions each (Alon et al., 1999), as LIBSVM's page publishes them:
every sample and then every feature shifted and scaled to mean 0 and variance 1. The file is not part of
this package. `load_colon` looks for it in four places and otherwise makes random data of the same shape
whose name says so.
"""

from __future__ import annotations

import bz2
import hashlib
import os
import sys
from collections.abc import Iterable
from dataclasses import dataclass
from http.client import HTTPException
from pathlib import Path
from typing import Any
from urllib.request import urlopen

import numpy as np

__all__ = ["ENVIRONMENT_VARIABLE", "URL", "Samples", "load_colon", "parse_libsvm", "stand_in"]

URL = "https://www.csie.ntu.edu.tw/~cjlin/libsvmtools/datasets/binary/colon-cancer.bz2"
#: Of the published file after decompression.
SHA256 = "647eb57da9d5df273c8728a19033d80cf09bca70f4d35d1a2de5a281036bf35b"
#: May hold the path of the file.
ENVIRONMENT_VARIABLE = "LOPRO_COLON"

SHAPE = (62, 2000)
_FILE_NAME = "colon-cancer.libsvm"
_TIMEOUT = 15.0  # seconds for a server that does not answer

Numbers = np.ndarray[Any, np.dtype[np.float64]]


@dataclass(frozen=True, eq=False)
class Samples:
    """Samples in rows with their labels, name and source."""

    X: Numbers
    labels: Numbers
    name: str
    origin: str


def load_colon(path: str | Path | None = None, *, download: bool = True) -> Samples:
    """Return the colon-cancer data, or random data that are named as such.

    It is looked for at ``path``, at the path in the environment variable ``LOPRO_COLON``, in the cache
    folder, and on LIBSVM's page, from where it goes into the cache folder.

    Parameters
    ----------
    path : str or Path, optional
        The file in LIBSVM's text format, plain or compressed by bzip2. A path that is given, here or in
        the environment, must be valid: it is not replaced by another source.
    download : bool
        Whether the network may be used.

    Examples
    --------
    >>> from paper.experiments.colon import load_colon
    >>> load_colon(download=False).X.shape
    (62, 2000)
    """
    given = path if path is not None else os.environ.get(ENVIRONMENT_VARIABLE) or None
    if given is not None:
        return _from_file(Path(given))
    cached = cache_folder() / _FILE_NAME
    if cached.is_file() and _published(cached.read_bytes()):
        return _from_file(cached)
    if not download:
        return stand_in("no file was given, and downloads are off")
    try:
        text = _fetch()
    except (OSError, HTTPException, ValueError) as error:
        return stand_in(f"there is no file, and {URL} could not be had: {error}")
    _keep(text, cached)
    return _samples(text, "colon-cancer", f"downloaded from {URL}")


def stand_in(reason: str = "chosen", seed: int = 0) -> Samples:
    """Return random samples of the same shape, class sizes and scaling, named as a stand-in.

    Twelve common factors make the features correlated as genes are; one of them carries the class.

    Examples
    --------
    >>> from paper.experiments.colon import stand_in
    >>> made = stand_in()
    >>> made.X.shape, made.name
    ((62, 2000), 'STAND-IN for colon-cancer (random, seed 0)')
    """
    rng = np.random.default_rng(seed)
    rows, columns = SHAPE
    labels = rng.permutation(np.repeat([-1.0, 1.0], [40, 22]))
    factors = rng.standard_normal((rows, 12))
    factors[:, 0] += 1.5 * labels
    X = factors @ rng.standard_normal((12, columns)) + 2.0 * rng.standard_normal(SHAPE)
    for axis in (1, 0):
        X = (X - X.mean(axis=axis, keepdims=True)) / X.std(axis=axis, keepdims=True)
    advice = (
        f"{reason}. Put the file anywhere and give its path, or set {ENVIRONMENT_VARIABLE} to it, "
        f"or copy it to {cache_folder() / _FILE_NAME}"
    )
    return Samples(X, labels, f"STAND-IN for colon-cancer (random, seed {seed})", advice)


def parse_libsvm(lines: Iterable[str], columns: int | None = None) -> tuple[Numbers, Numbers]:
    """Return the matrix and the labels that lines ``label index:value ...`` describe.

    Parameters
    ----------
    lines : iterable of str
        Indices count from 1; entries that are not named are 0; what follows ``#`` is ignored.
    columns : int, optional
        Number of features; by default the largest index.

    Examples
    --------
    >>> from paper.experiments.colon import parse_libsvm
    >>> parse_libsvm(["-1 1:0.5 3:2", "+1 2:1"])[0]
    array([[0.5, 0. , 2. ],
           [0. , 1. , 0. ]])
    """
    rows = []
    for number, line in enumerate(lines, start=1):
        words = line.split("#")[0].split()
        if words:
            rows.append(_parsed(words, number))
    if not rows:
        raise ValueError("there is no sample in the file")
    width = max(max(entries, default=0) for _, entries in rows) if columns is None else columns
    if width == 0:
        raise ValueError("there is no entry index:value in the file")
    X = np.zeros((len(rows), width))
    for row, (_, entries) in zip(X, rows, strict=True):
        if max(entries, default=0) > width:
            raise ValueError(f"a feature has index {max(entries)}, but there are {width} columns")
        row[np.array(list(entries), dtype=np.int64) - 1] = list(entries.values())
    return X, np.array([label for label, _ in rows])


def _parsed(words: list[str], number: int) -> tuple[float, dict[int, float]]:
    try:
        pairs = [word.split(":") for word in words[1:]]
        entries = {int(index): float(value) for index, value in pairs}
        label = float(words[0])
    except ValueError:
        raise ValueError(f"line {number} is not of the form 'label index:value ...'") from None
    if len(entries) < len(pairs) or min(entries, default=1) < 1:
        raise ValueError(f"line {number} names a feature twice, or one below 1")
    return label, entries


def cache_folder() -> Path:
    """Return the cache folder of this package, by the convention of the operating system."""
    home = Path.home()
    if sys.platform == "win32":
        base = Path(os.environ.get("LOCALAPPDATA") or home / "AppData" / "Local")
    elif sys.platform == "darwin":
        base = home / "Library" / "Caches"
    else:
        base = Path(os.environ.get("XDG_CACHE_HOME") or home / ".cache")
    return base / "lopro"


def _from_file(path: Path) -> Samples:
    text = path.read_bytes()
    if text.startswith(b"BZh"):
        text = bz2.decompress(text)
    # Another file of the user is used, but reported under its own name.
    name = "colon-cancer" if _published(text) else f"{path.name} (NOT the published colon-cancer)"
    return _samples(text, name, f"file {path}")


def _published(text: bytes) -> bool:
    return hashlib.sha256(text).hexdigest() == SHA256


def _samples(text: bytes, name: str, origin: str) -> Samples:
    X, labels = parse_libsvm(text.decode("ascii").splitlines())
    return Samples(X, labels, name, origin)


def _fetch() -> bytes:
    """Download and decompress; raise unless it is the file that was published."""
    with urlopen(URL, timeout=_TIMEOUT) as answer:
        text = bz2.decompress(answer.read())
    if not _published(text):
        raise ValueError("its checksum is not the published one")
    return text


def _keep(text: bytes, path: Path) -> None:
    """Put the file into the cache in one move, so that no other process reads half of it."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        partial = path.with_suffix(f".{os.getpid()}")
        partial.write_bytes(text)
        partial.replace(path)
    except OSError:
        return  # without a cache the file is downloaded again next time
