"""The command line ``lopro``: one file per command, and the doors it uses for files and answers."""

from lopro.cli.main import main

__all__ = ["main"]
