"""What every method says of itself."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["Card"]

PAPER = "Yang, Lin, Zhang (ICML 2017)"


@dataclass(frozen=True)
class Card:
    """A method's own declaration: a line for each question one asks before choosing it.

    A method has it as the class attribute ``card``; the table of methods in the documentation and on
    the command line is made from these declarations.

    Parameters
    ----------
    assumptions : str
        What must be true of the problem.
    oracles : str
        What it asks of the objective and of the constraint.
    rate : str
        Iterations for an ``eps``-optimal point, or the error after ``T`` of them.
    projections : str
        How often it projects.
    reference : str
        Where it comes from.

    Examples
    --------
    >>> import lopro
    >>> lopro.LoPGD.card.projections
    'O(log 1/eps): one per epoch'
    """

    assumptions: str
    oracles: str
    rate: str
    projections: str
    reference: str = PAPER
