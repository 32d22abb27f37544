"""The common base of objectives and constraints: values, slopes, images under linear maps, constants."""

from lopro.core.constants import Ball, Constant, Source
from lopro.functions.base import Function, Image, Linearization, MappedFunction

__all__ = ["Ball", "Constant", "Function", "Image", "Linearization", "MappedFunction", "Source"]
