"""Cones, rows with slacks in cones, and proofs for cone programs."""

from lopro.cones.cones import ConeRows

__all__ = ["ConeRows"]
