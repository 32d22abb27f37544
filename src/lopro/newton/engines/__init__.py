"""Quadratic and linear programs solved by an engine and proved by us."""

from lopro.newton.engines.certified import NotConvex, program_composite, solve_program

__all__ = ["NotConvex", "program_composite", "solve_program"]
