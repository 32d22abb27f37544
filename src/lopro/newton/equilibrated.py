"""Scaling of variables to comparable units, in which norms of points and gradients are meaningful.

Newton's steps do not depend on the units of the variables, but tests of convergence, proximal terms and line
searches compare norms. Where the units given by the data differ widely, the problem is solved for
``y_j = x_j / s_j`` with powers of two ``s_j``, which round nothing: a proof for y is one for x.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, cast

import numpy as np
import scipy  # parts of it load when first used

from lopro.certificates import Emptiness, Units
from lopro.certificates.certificate import Outcome
from lopro.functions.atoms import Interval
from lopro.functions.term import Term
from lopro.linalg.dense import Array
from lopro.maps import LinearMap, NumPyMap, SparseMap
from lopro.maps.host import host_matrix
from lopro.newton.bounds.lower import bounds_variables, reach_units
from lopro.newton.losses import Loss, SquaredLoss
from lopro.newton.problem import Composite
from lopro.newton.quadratic_form import QuadraticForm
from lopro.newton.smooth import Smooth, SmoothSum

__all__ = ["Equilibrated", "scaling_factors"]

#: Ratio of units above which variables are scaled. Of a gradient known to 1e-8 of its norm, half of the
#: digits, entries 1e4 times smaller have fewer than four. 1e3 and 1e5 change nothing in
#: ``python -m benchmarks.constants newton``, where the columns of one problem differ by 1e12.
_SPREAD = 1e4


def scaling_factors(units: Array) -> Array | None:
    """Return units of variables rounded to powers of two, the median for unknown ones (0); None if close.

    Examples
    --------
    >>> import numpy as np
    >>> from lopro.newton.equilibrated import scaling_factors
    >>> scaling_factors(np.array([0.0, 1.0, 3.0, 1e6]))
    array([4.000000e+00, 1.000000e+00, 4.000000e+00, 1.048576e+06])
    """
    known = units[units > 0.0]
    if not len(known) or known.max() <= _SPREAD * known.min():
        return None
    return np.exp2(np.rint(np.log2(np.where(units > 0.0, units, np.median(known)))))


class _NotExplicit(Exception):
    """The entries of a map are not on the host, or a part of f is a callable."""


@dataclass(frozen=True, eq=False)
class Equilibrated:
    """The problem for ``y = x / sizes``.

    Attributes
    ----------
    problem : Composite
        The problem in y.
    sizes : array
        The units, powers of two.
    given : Composite
        The problem in x.
    """

    problem: Composite
    sizes: Array
    given: Composite

    @staticmethod
    def of(problem: Composite) -> Equilibrated | None:
        """Return the scaled problem; None where the units are close or the entries of a map are not known.

        Examples
        --------
        >>> import numpy as np
        >>> from lopro.functions.atoms import HalfSquare
        >>> from lopro.functions.term import Term
        >>> from lopro.maps import linear_map
        >>> from lopro.newton import Composite
        >>> from lopro.newton.equilibrated import Equilibrated
        >>> square = Term(HalfSquare(), linear_map(np.diag([1.0, 2.0**-40])), np.array([2.0, 0.0]))
        >>> sizes = Equilibrated.of(
        ...     Composite.of([square], 2)
        ... ).sizes  # about 2 / sqrt(2) over the columns
        >>> np.log2(sizes)
        array([ 0., 40.])
        """
        sizes = scaling_factors(reach_units(problem).known)
        if sizes is None:
            return None
        try:
            smooth = [_smooth(part, sizes) for part in problem.parts]
            terms = [_term(term, sizes) for term in problem.terms]
        except _NotExplicit:
            return None
        scaled = Composite(smooth[0] if len(smooth) == 1 else SmoothSum(smooth), terms)
        return Equilibrated(scaled, sizes, problem)

    def multipliers(self, given: Sequence[Array]) -> list[Array]:
        """Return multipliers for y: those of bounds of variables are scaled."""
        pairs = zip(self.given.terms, given, strict=True)
        return [v * self.sizes if bounds_variables(term) else v for term, v in pairs]

    def back(self, outcome: Outcome) -> Outcome:
        """Convert an outcome for y to one for x."""
        s, bound, certificate = self.sizes, outcome.bound, outcome.certificate
        if not bound.holds_everywhere:
            units = bound.units
            if units is not None:
                units = Units(units.known * s, units.ratios * s, units.groups)
            bound = dataclasses.replace(
                bound, slopes=bound.slopes / s, centre=bound.centre * s, units=units
            )
        ray = outcome.ray
        if isinstance(certificate, Emptiness):
            # |r_j / s_j| <= |r_j| / min s: the smaller radius holds for x.
            certificate = dataclasses.replace(
                certificate, residual=certificate.residual / float(s.min())
            )
            sets = [term for term in self.given.terms if term.is_set]
            ray = self._back(sets, cast("Sequence[Array]", ray))
        elif isinstance(ray, np.ndarray):
            ray = ray * s
        v = self._back(self.given.terms, outcome.multipliers)
        return dataclasses.replace(
            outcome, x=outcome.x * s, multipliers=v, bound=bound, certificate=certificate, ray=ray
        )

    def _back(self, terms: Sequence[Term], multipliers: Sequence[Array]) -> tuple[Array, ...]:
        pairs = zip(terms, multipliers, strict=True)
        return tuple(v / self.sizes if bounds_variables(term) else v for term, v in pairs)


def _smooth(part: Smooth, sizes: Array) -> Smooth:
    if isinstance(part, Loss):
        kind = SquaredLoss if isinstance(part, SquaredLoss) else Loss
        return kind(dataclasses.replace(part.term, map=_scaled(part.map, sizes)))
    if not isinstance(part, QuadraticForm):
        raise _NotExplicit
    P = None
    if part.map is not None:
        P = host_matrix(_scaled(part.map, sizes))
        P = sizes[:, None] * P if isinstance(P, np.ndarray) else scipy.sparse.diags_array(sizes) @ P
    return QuadraticForm(P, sizes * part.q, part.constant)


def _term(term: Term, sizes: Array) -> Term:
    atom = term.atom
    if term.is_identity and isinstance(atom, Interval):
        return dataclasses.replace(term, atom=Interval(atom.lower / sizes, atom.upper / sizes))
    return dataclasses.replace(term, map=_scaled(term.D, sizes))


def _scaled(D: LinearMap, sizes: Array) -> LinearMap:
    """Return ``D diag(sizes)``."""
    if D.is_identity:
        return SparseMap(scipy.sparse.diags_array(sizes, format="csr"), "D")
    entries: Any = host_matrix(D)
    if entries is None:
        raise _NotExplicit
    if scipy.sparse.issparse(entries):
        return SparseMap((entries @ scipy.sparse.diags_array(sizes)).tocsr(), D.name)
    return NumPyMap(entries * sizes, D.name)
