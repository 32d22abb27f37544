"""Where a run must stop."""

from __future__ import annotations

from dataclasses import dataclass

from lopro._util.validation import check_count, check_number

__all__ = ["Budget"]


@dataclass(frozen=True)
class Budget:
    """Where a run must stop: accuracy, iterations, projections, seconds."""

    tol: float = 1e-6
    max_iter: int | None = None
    max_projections: int | None = None
    time_limit: float | None = None

    def __post_init__(self) -> None:
        check_number("tol", self.tol, minimum=0.0)
        if self.max_iter is not None:
            check_count("max_iter", self.max_iter)
        if self.max_projections is not None:
            check_count("max_projections", self.max_projections)
        if self.time_limit is not None:
            check_number("time_limit", self.time_limit, minimum=0.0, exclusive=True)
