"""What an engine answers, in one form for all of them."""

from __future__ import annotations

import enum
from dataclasses import dataclass

import numpy as np

from lopro.newton.arrays import Array

__all__ = ["Answer", "AnswerStatus"]


class AnswerStatus(enum.Enum):
    """What the engine says; nothing of it is believed before it is proved."""

    SOLVED = "solved"
    INACCURATE = "solved to less than was asked for"
    EMPTY = "primal infeasible"
    UNBOUNDED = "dual infeasible"
    TIME = "time or iterations used up"
    FAILED = "numerical trouble"


@dataclass(frozen=True)
class Answer:
    """A point and multipliers: ``P x + q + A' rows + box = 0``, positive at upper bounds.

    For a program without points the multipliers are the certificate, for one without least value ``x`` is
    the ray, where the engine gives one.
    """

    status: AnswerStatus
    x: Array
    rows: Array
    box: Array
    iterations: int

    @property
    def finite(self) -> bool:
        """Whether every number is one."""
        return all(bool(np.all(np.isfinite(a))) for a in (self.x, self.rows, self.box))
