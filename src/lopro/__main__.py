"""``python -m lopro`` is the command ``lopro``."""

from __future__ import annotations

import sys

from lopro.cli import main

if __name__ == "__main__":
    sys.exit(main())
