"""Cone programs and their solvers: rows ``b - A x`` in cones, with no knowledge of our sets."""

from lopro.cones.cones import ConeRows
from lopro.cones.program import ConicAnswer, ConicProgram

__all__ = ["ConeRows", "ConicAnswer", "ConicProgram"]
