"""Methods for `lopro.solve`: the only rooms that may project."""

from lopro.schemes.auto import Auto
from lopro.schemes.lopgd import LoPGD
from lopro.schemes.lopnag import LoPNAG
from lopro.schemes.multipliers import MultiplierMethod
from lopro.schemes.one_projection import OneProjection

__all__ = ["Auto", "LoPGD", "LoPNAG", "MultiplierMethod", "OneProjection"]
