"""The command line ``lopro``: one file per command, and modules for files and output."""

from lopro.cli.main import main

__all__ = ["main"]
