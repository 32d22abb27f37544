"""Penalties: functions of the constraint that are added to the objective."""

from lopro.penalties.base import Penalty, ScalarPenalty
from lopro.penalties.centred import CentredHinge, CentredSoftplus, MemberPenalties, SetPenalty
from lopro.penalties.penalised import Penalised
from lopro.penalties.scalar import Hinge, QuadraticHinge, Softplus

__all__ = [
    "CentredHinge",
    "CentredSoftplus",
    "Hinge",
    "MemberPenalties",
    "Penalised",
    "Penalty",
    "QuadraticHinge",
    "ScalarPenalty",
    "SetPenalty",
    "Softplus",
]
