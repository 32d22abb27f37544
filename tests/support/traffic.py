"""Count kernels and memory traffic of calls with tensors of PyTorch's CPU, which stand in for a GPU's."""

from __future__ import annotations

from typing import Any

import pytest

torch = pytest.importorskip("torch")
overrides = pytest.importorskip("torch.utils._python_dispatch")

__all__ = ["Traffic"]

#: Operations that return a view of their argument, without a kernel.
VIEWS = (
    *("view", "reshape", "t", "transpose", "permute", "slice", "select", "unsqueeze", "squeeze"),
    *("expand", "detach", "alias", "diagonal", "as_strided", "_unsafe_view"),
)


class Traffic(overrides.TorchDispatchMode):
    """Counts kernels, the bytes of their arguments and results, and reads of single numbers."""

    def __init__(self) -> None:
        super().__init__()
        self.kernels = self.bytes = self.reads = 0

    def __torch_dispatch__(
        self, function: Any, types: Any, args: Any = (), kwargs: Any = None
    ) -> Any:
        found = function(*args, **(kwargs or {}))
        name = function._schema.name.partition("::")[2]
        if name == "_local_scalar_dense":
            self.reads += 1
        elif name not in VIEWS:
            self.kernels += 1
            tensors = [x for x in (*args, found) if isinstance(x, torch.Tensor)]
            self.bytes += sum(x.numel() * x.element_size() for x in tensors)
        return found
