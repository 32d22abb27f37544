"""Shared by several solvers: the list of tolerances, and an operator that counts its products."""

from benchmark_utils.counting import Counted
from benchmark_utils.tolerances import next_tolerance, patient, usable

__all__ = ["Counted", "next_tolerance", "patient", "usable"]
