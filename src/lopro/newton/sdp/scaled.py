"""Semidefinite programs in units in which rows, costs and right-hand sides have about size 1."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import scipy  # parts of it load when first used

from lopro.core.units import power_of_two
from lopro.newton.arrays import Array, norm
from lopro.newton.sdp.program import Block, SemidefiniteProgram

__all__ = ["ScaledProgram"]


@dataclass(frozen=True)
class ScaledProgram:
    """A program with rows, ``b`` and ``C`` divided by powers of two, and the way back."""

    program: SemidefiniteProgram
    rows: Array
    x: float
    cost: float

    @staticmethod
    def plain(program: SemidefiniteProgram) -> ScaledProgram:
        """Leave everything as it is."""
        return ScaledProgram(program, np.ones(len(program.b)), 1.0, 1.0)

    @staticmethod
    def of(program: SemidefiniteProgram) -> ScaledProgram:
        """Scale each row to about norm 1, then ``b`` and ``C``."""
        squares = np.zeros(len(program.b))
        for block in program.blocks:
            squares += np.asarray(block.A.multiply(block.A).sum(axis=1)).ravel()
        rows = np.array([power_of_two(s) for s in np.sqrt(squares)])
        x = power_of_two(norm(program.b / rows))
        cost = power_of_two(float(np.sqrt(sum(float(np.sum(p.C**2)) for p in program.blocks))))
        scale = scipy.sparse.diags_array(1.0 / rows)
        blocks = tuple(
            Block(p.size, p.diagonal, p.C / cost, scipy.sparse.csr_array(scale @ p.A))
            for p in program.blocks
        )
        return ScaledProgram(SemidefiniteProgram(program.b / (rows * x), blocks), rows, x, cost)

    def multipliers(self, y: Array) -> Array:
        """Return multipliers in the user's units."""
        return y * (self.cost / self.rows)

    def matrices(self, X: tuple[Array, ...]) -> tuple[Array, ...]:
        """Return a primal point in the user's units."""
        return tuple(x * self.x for x in X)
