"""Parameter-free restarts, for problems with a local error bound of unknown constants.

`LogScaleGrid` and `ApproximateSharpness` are schedules, for ``lopro.LoPGD(schedule)`` and, with
`AcceleratedSolver`, for ``lopro.LoPNAG(schedule)``. `ParallelRestarts`, which interleaves several runs, is a
method.
"""

from lopro.methods.paper.restarts.approximate_sharpness import ApproximateSharpness
from lopro.methods.paper.restarts.log_scale_grid import LogScaleGrid
from lopro.methods.paper.restarts.parallel import ParallelRestarts
from lopro.methods.paper.restarts.subproblem_solvers import AcceleratedSolver, SubgradientSolver

__all__ = [
    "AcceleratedSolver",
    "ApproximateSharpness",
    "LogScaleGrid",
    "ParallelRestarts",
    "SubgradientSolver",
]
