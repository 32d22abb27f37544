"""The tolerances at which every solver is run: 1, 0.1, 0.01, ... down to the smallest it accepts."""

from benchopt.stopping_criterion import SufficientProgressCriterion


def patient():
    """Return a rule that stops a solver when six smaller tolerances have changed nothing.

    A new object for each solver: benchopt stores its state in it.
    """
    return SufficientProgressCriterion(patience=6, strategy="tolerance")


def next_tolerance(tolerance):
    """Return the tolerance after this one; benchopt starts with an infinite one."""
    return min(1.0, max(0.1 * tolerance, 1e-12))


def usable(tolerance, lowest):
    """Return a tolerance that a solver accepts."""
    return min(1.0, max(tolerance, lowest))
