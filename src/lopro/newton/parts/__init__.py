"""Parts of objectives with an easy prox: sets and norms."""

from lopro.newton.parts.base import Complement, Mask, Part, Steps
from lopro.newton.parts.interval import Interval

__all__ = ["Complement", "Interval", "Mask", "Part", "Steps"]
