"""A call as a program: the same text is run by the fuzzer and printed as a reproducer."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

__all__ = ["Script"]

_HEAD = "import numpy as np\nimport scipy\nimport scipy.optimize\nimport scipy.sparse.linalg\n"
_LIBRARY = "import lopro\nimport lopro.constraints as lc\nimport lopro.objectives as lo\n"

#: Arrays with more numbers than this go to a file beside the program.
_INLINE = 400


@dataclass
class Script:
    """Arrays by name, lines that prepare the input, lines that use the library, and the call.

    ``data`` needs NumPy and SciPy alone; the call must not change the variables it defines.
    ``setup`` makes objects of the library; ``call`` assigns ``result`` and is timed.
    """

    arrays: dict[str, Any] = field(default_factory=dict)
    data: list[str] = field(default_factory=list)
    setup: list[str] = field(default_factory=list)
    call: str = ""
    #: The dtype in which floating arrays are passed; it must hold their numbers.
    dtype: str = "float64"

    def array(self, values: Any, name: str | None = None) -> str:
        """Store an array and return its name."""
        name = f"a{len(self.arrays)}" if name is None else name
        array = np.asarray(values)
        self.arrays[name] = array.astype(self.dtype) if array.dtype == np.float64 else array
        return name

    def text(self, folder: Path | None = None, stem: str = "case") -> str:
        """Return the program; large arrays are written to ``folder``, or left to the reader."""
        large = {k: v for k, v in self.arrays.items() if v.size > _INLINE}
        lines = [_HEAD + _LIBRARY]
        if large:
            if folder is not None:
                np.savez(folder / f"{stem}.npz", **large)
            lines.append(f"stored = np.load({stem + '.npz'!r})  # beside this file")
        lines += [
            f'{name} = stored["{name}"]' if name in large else f"{name} = {_literal(values)}"
            for name, values in self.arrays.items()
        ]
        lines += [*self.data, *self.setup, self.call, "print(result)"]
        return "\n".join(lines) + "\n"


def _literal(values: Any) -> str:
    """Return an expression that makes this very array: ``repr`` of a float is exact."""
    text = repr(values.tolist()).replace("inf", "np.inf").replace("nan", "np.nan")
    return f"np.array({text}, dtype=np.{values.dtype.name})"
