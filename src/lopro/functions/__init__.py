"""What objectives and constraints share: values, slopes, images under linear maps, and constants."""

from lopro.functions.base import Function, Image, Linearization, MappedFunction
from lopro.functions.constants import Ball, Constant, Source

__all__ = ["Ball", "Constant", "Function", "Image", "Linearization", "MappedFunction", "Source"]
