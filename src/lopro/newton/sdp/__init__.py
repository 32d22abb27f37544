"""Semidefinite programs."""

from lopro.newton.sdp.program import Block, SemidefiniteProgram
from lopro.newton.sdp.sdpa import read_sdpa

__all__ = ["Block", "SemidefiniteProgram", "read_sdpa"]
