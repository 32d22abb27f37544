"""Methods that use second derivatives, for problems with their data in memory."""

from lopro.methods.second_order.forms import composite
from lopro.methods.second_order.newton_multipliers import NewtonMultipliers
from lopro.methods.second_order.program_engines import ProgramEngines

__all__ = ["NewtonMultipliers", "ProgramEngines", "composite"]
