"""The process that the tests interrupt: it runs one call and prints its status."""

from __future__ import annotations

import json
import sys

from deadline.calls import CALLS


def main(name: str) -> None:
    """Print that the call begins, make it, and print the statuses of its results."""
    import lopro  # what is imported now does not delay the call

    call = CALLS[name]()
    print("begin", flush=True)
    found = call()
    results = found if isinstance(found, list) else [found]
    assert all(isinstance(r, lopro.Result) for r in results)
    print(json.dumps([r.status.name for r in results]), flush=True)


if __name__ == "__main__":
    main(sys.argv[1])
