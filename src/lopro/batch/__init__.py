"""Batches: many problems of one shape, solved together."""

from lopro.batch.programs import QuadraticPrograms
from lopro.batch.results import Results
from lopro.batch.solve_many import solve_many

__all__ = ["QuadraticPrograms", "Results", "solve_many"]
