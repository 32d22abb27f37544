"""Devices and cases for `benchmarks.scale.device_targets`."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch


@dataclass(frozen=True)
class Case:
    """A call to be timed, with its target; ``more`` describes the answer."""

    label: str
    goal: str
    call: Callable[[], Any]
    more: Callable[[Any, float], dict[str, Any]] | None = None


class Place:
    """A device of PyTorch, with arrays of PyTorch or of CuPy in its memory."""

    def __init__(self, device: str, library: str, small: bool) -> None:
        self.device, self.library, self.small = device, library, small
        self.cuda, self._base = device.startswith("cuda"), 0
        self.generator = torch.Generator(device).manual_seed(0)
        self.name = torch.cuda.get_device_name() if self.cuda else device

    def of(self, full: Any, small: Any) -> Any:
        """Return a size for the chosen scale."""
        return small if self.small else full

    def normal(self, *shape: int, dtype: Any = torch.float64) -> Any:
        """Return standard normal numbers, made row by row, without a second copy."""
        found = torch.empty(shape, dtype=dtype, device=self.device)
        for start in range(0, shape[0], 1000):
            found[start : start + 1000].normal_(generator=self.generator)
        return found

    def there(self, values: Any) -> Any:
        """Copy numbers of the host to the device."""
        return torch.asarray(values, device=self.device)

    def given(self, values: Any) -> Any:
        """Return a tensor as an array of the chosen library, without a copy."""
        if self.library == "torch":
            return values
        import cupy

        return cupy.from_dlpack(values)

    def wait(self) -> None:
        """Wait for the device."""
        if self.cuda:
            torch.cuda.synchronize()

    def forget_peak(self) -> None:
        """Measure memory from here on."""
        if self.cuda:
            torch.cuda.empty_cache()
            torch.cuda.reset_peak_memory_stats()
            self._base = torch.cuda.memory_allocated()

    def peak(self) -> int:
        """Return the peak memory since then."""
        return torch.cuda.max_memory_allocated() - self._base if self.cuda else 0
