"""The tolerances, and the problem in the form of conic solvers, for several solvers."""

from benchmark_utils.conic import conic_problem
from benchmark_utils.tolerances import next_tolerance, patient, usable

__all__ = ["conic_problem", "next_tolerance", "patient", "usable"]
