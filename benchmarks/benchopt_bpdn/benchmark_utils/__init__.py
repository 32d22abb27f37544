"""The tolerances, and an operator that counts its products, for several solvers."""

from benchmark_utils.counting import Counted
from benchmark_utils.tolerances import next_tolerance, patient, usable

__all__ = ["Counted", "next_tolerance", "patient", "usable"]
