"""Methods with second derivatives, for problems with data in memory."""

from lopro.methods.second_order.forms import composite, quadratic_program
from lopro.methods.second_order.newton_multipliers import NewtonMultipliers
from lopro.methods.second_order.program_engines import ProgramEngines

__all__ = ["NewtonMultipliers", "ProgramEngines", "composite", "quadratic_program"]
