"""What an engine says, in one form for all of them."""

from __future__ import annotations

import enum
from dataclasses import dataclass, field

import numpy as np

from lopro.core.real_vectors import Vector
from lopro.errors import MissingCapabilityError

__all__ = ["Answer", "AnswerStatus", "EngineUnavailable"]


class EngineUnavailable(MissingCapabilityError):
    """An engine cannot take a program: its package is not installed, or the program exceeds the memory."""


class AnswerStatus(enum.Enum):
    """How the engine ended, in its own opinion; nothing of it is relied on before it is proved."""

    SOLVED = "solved"
    INACCURATE = "solved to less than was asked for"
    EMPTY = "primal infeasible"
    NEARLY_EMPTY = "primal infeasible to less than was asked for"
    UNBOUNDED = "dual infeasible"
    NEARLY_UNBOUNDED = "dual infeasible to less than was asked for"
    TIME = "time or iterations used up"
    FAILED = "numerical trouble"

    @property
    def empty(self) -> bool:
        """Whether the engine takes the program for one without feasible points."""
        return self in (AnswerStatus.EMPTY, AnswerStatus.NEARLY_EMPTY)

    @property
    def unbounded(self) -> bool:
        """Whether the engine takes the objective for one without a lower bound."""
        return self in (AnswerStatus.UNBOUNDED, AnswerStatus.NEARLY_UNBOUNDED)


@dataclass(frozen=True, eq=False)
class Answer:
    """A point and multipliers with ``P x + q + A' rows + box = 0`` at a solution.

    Attributes
    ----------
    status : AnswerStatus
        How the engine ended.
    x : array
        The point; the ray of an unbounded program, where the engine gives one. NaN where there is none.
    rows : array
        Multipliers of the rows. Of a quadratic program: positive at upper sides, negative at lower ones. Of a
        cone program: in the dual cone. They contradict the rows of an empty program, where the engine gives
        such multipliers.
    box : array
        Multipliers of the bounds of a quadratic program, positive at upper ones; empty for cone programs.
    iterations : int
        Of the engine.
    seconds : float
        What the engine took, with the translation of the program.
    slacks : array
        ``b - A x`` of a cone program, as the engine has it inside its cones; empty for quadratic programs.
    message : str
        The status in the words of the engine, for error messages.
    """

    status: AnswerStatus
    x: Vector
    rows: Vector
    box: Vector
    iterations: int
    seconds: float = 0.0
    slacks: Vector = field(default_factory=lambda: np.zeros(0))
    message: str = ""

    @property
    def finite(self) -> bool:
        """Whether the point and all multipliers are finite."""
        return all(bool(np.all(np.isfinite(a))) for a in (self.x, self.rows, self.box))
