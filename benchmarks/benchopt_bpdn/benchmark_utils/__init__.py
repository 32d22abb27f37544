"""What several solvers share: the list of tolerances, and an operator that counts."""

from benchmark_utils.counting import Counted
from benchmark_utils.tolerances import next_tolerance, patient, usable

__all__ = ["Counted", "next_tolerance", "patient", "usable"]
