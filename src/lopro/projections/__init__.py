"""Projections as pure functions of arrays and descriptions of sets, without constraints and methods."""

from lopro.projections.cuts import Cut, project_by_cuts
from lopro.projections.dykstra import dykstra
from lopro.projections.generic import project_sublevel
from lopro.projections.halfspaces import HalfSpaces
from lopro.projections.polyhedron import project_polyhedron
from lopro.projections.psd import project_psd, smallest_eigenpairs
from lopro.projections.residual_ball import project_residual_ball

__all__ = [
    "Cut",
    "HalfSpaces",
    "dykstra",
    "project_by_cuts",
    "project_polyhedron",
    "project_psd",
    "project_residual_ball",
    "project_sublevel",
    "smallest_eigenpairs",
]
