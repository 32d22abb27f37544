"""Methods to compare with: each projects as often as its authors say, on lopro's driver and counters."""

from lopro.baselines.nesta import NESTA

__all__ = ["NESTA"]
