"""Imports of packages that only some functions need, with an error that says what to install."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

__all__ = ["needing"]


@contextmanager
def needing(user: str, package: str, install: str) -> Iterator[None]:
    """Run the imports of the block; if one fails, say what needs the package and how to install it.

    Examples
    --------
    >>> from lopro.core.optional import needing
    >>> with needing("to_pandas", "pandas", "pandas"):
    ...     import no_such_package
    Traceback (most recent call last):
    ImportError: to_pandas needs pandas: pip install "pandas"
    """
    try:
        yield
    except ImportError as error:
        raise ImportError(f'{user} needs {package}: pip install "{install}"') from error
