"""Penalties with a multiplier, which are exact for every smoothing if the multiplier is optimal.

Minimising ``f + h`` with one of these is a step of a proximal method on the dual (entropic for
`CentredSoftplus`, quadratic for the others), and the slope at the minimiser is the next multiplier.
"""

from __future__ import annotations

import functools
import math
import operator
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from lopro.constraints.base import Constraint, ValidInequality
from lopro.constraints.pulled_back import pulled_back
from lopro.core.arrays import Array, inner
from lopro.core.validation import check_number
from lopro.functions import Image, Linearization
from lopro.penalties.base import ScalarPenalty
from lopro.penalties.scalar import expit, softplus

__all__ = ["CentredHinge", "CentredSoftplus", "MemberPenalties", "SetPenalty"]


@dataclass(frozen=True)
class CentredSettings:
    """Constants of `CentredSoftplus.recentred`."""

    #: Multiplier, as a share of lam, above which lam is doubled: the slope of the penalty is bounded by lam.
    #: With 0.09 four of eight runs of `Recentring` change, one to 0.57 of the steps, and with 9 none
    #: (``python -m benchmarks.constants penalties``).
    largest_share: float = 0.9
    #: Distance of the multiplier from 0 and from lam, as a share of lam: at both the shift is infinite.
    margin: float = 1e-12


SETTINGS = CentredSettings()


@dataclass(frozen=True)
class CentredSoftplus(ScalarPenalty):
    """Softplus shifted so that its slope at the boundary ``c = 0`` is the multiplier (P7).

    Minimising ``f + h`` is one step of the entropic proximal point method on the dual; the next
    multiplier is the slope at its minimiser. With the optimal one the bias is 0 for every ``gamma`` (R4).

    Examples
    --------
    >>> from lopro.penalties import CentredSoftplus
    >>> h = CentredSoftplus(lam=4.0, gamma=0.1, multiplier=1.5)
    >>> h.phi(0.0), round(h.slope(0.0), 12)
    (0.0, 1.5)
    """

    lam: float
    gamma: float
    multiplier: float

    def __post_init__(self) -> None:
        check_number("gamma", self.gamma, minimum=0.0, exclusive=True)
        check_number("lam", self.lam, minimum=0.0, exclusive=True)
        check_number("multiplier", self.multiplier, minimum=0.0, maximum=self.lam, exclusive=True)

    @property
    def weight(self) -> float:
        """``lam``, for the history."""
        return self.lam

    @property
    def shift(self) -> float:
        """``gamma logit(multiplier / lam)``."""
        q = self.multiplier / self.lam
        return self.gamma * (math.log(q) - math.log1p(-q))

    @property
    def above(self) -> float:
        """The largest value on the feasible set: 0, at the boundary."""
        return 0.0

    @property
    def below(self) -> float:
        """The largest amount by which the penalty is below ``lam [c]_+``."""
        return self.gamma * softplus(self.shift / self.gamma) - min(self.shift, 0.0)

    def phi(self, c: float) -> float:
        s = self.shift / self.gamma
        return self.gamma * (softplus(self.lam * c / self.gamma + s) - softplus(s))

    def slope(self, c: float) -> float:
        return self.lam * expit((self.lam * c + self.shift) / self.gamma)

    def curvature(self, squared_slope: float) -> float:
        """Return the contribution to the smoothness constant of F if ``|grad c|^2 <= squared_slope``."""
        return self.lam**2 * squared_slope / (4.0 * self.gamma)

    def recentred(self, constraint: Constraint, image: Image) -> CentredSoftplus:
        """Return the penalty of the next step: the slope at the point becomes the multiplier.

        A multiplier above ``0.9 lam`` doubles ``lam``.
        """
        slope = self.slope(constraint.linearize_at(image)[0])
        multiplier = max(slope, SETTINGS.margin * self.lam)
        lam = 2.0 * self.lam if multiplier > SETTINGS.largest_share * self.lam else self.lam
        return replace(self, lam=lam, multiplier=min(multiplier, (1.0 - SETTINGS.margin) * lam))


@dataclass(frozen=True)
class CentredHinge(ScalarPenalty):
    """``([u + beta c]_+^2 - u^2) / (2 beta)``: the augmented Lagrangian term of one constraint.

    The quadratic counterpart of `CentredSoftplus`; its multiplier has no upper limit.

    Examples
    --------
    >>> from lopro.penalties import CentredHinge
    >>> h = CentredHinge(beta=2.0, multiplier=1.5)
    >>> h.phi(0.0), h.slope(0.0), h.slope(0.25)
    (0.0, 1.5, 2.0)
    """

    beta: float
    multiplier: float = 0.0

    def __post_init__(self) -> None:
        check_number("beta", self.beta, minimum=0.0, exclusive=True)
        check_number("multiplier", self.multiplier, minimum=0.0)

    @property
    def weight(self) -> float:
        """The stiffness, for the history."""
        return self.beta

    def phi(self, c: float) -> float:
        return (self.slope(c) ** 2 - self.multiplier**2) / (2.0 * self.beta)

    def slope(self, c: float) -> float:
        return max(0.0, self.multiplier + self.beta * c)

    def recentred(self, constraint: Constraint, image: Image) -> CentredHinge:
        """Return the penalty of the next step: the slope at the point becomes the multiplier."""
        return replace(self, multiplier=self.slope(constraint.linearize_at(image)[0]))

    def stiffened(self, factor: float) -> CentredHinge:
        """Return the penalty with the same multiplier and ``factor`` times the stiffness."""
        return replace(self, beta=factor * self.beta)


@dataclass(frozen=True)
class SetPenalty:
    """``beta/2 dist(M x + u/beta, Q)^2 - |u|^2/(2 beta)`` for a set ``{x : M x in Q}``.

    The augmented Lagrangian term with a multiplier for every row (or eigenvalue), where `CentredHinge` has
    one for ``c(x)``. ``u`` is normal to ``Q``, so it defines a lower bound.

    Examples
    --------
    >>> import numpy as np
    >>> from lopro.constraints import Polyhedron
    >>> from lopro.penalties import SetPenalty
    >>> half_line = Polyhedron(np.array([[1.0]]), np.array([2.0]))
    >>> h, gradient = SetPenalty(beta=4.0).linearize_at(half_line, (np.array([3.0]),))
    >>> h, gradient()
    (2.0, array([4.]))
    """

    beta: float
    multiplier: Image | None = None

    def __post_init__(self) -> None:
        check_number("beta", self.beta, minimum=0.0, exclusive=True)

    @property
    def above(self) -> float | None:
        """None: no method uses the largest value on the feasible set."""
        return None

    @property
    def weight(self) -> float:
        """The stiffness, for the history."""
        return self.beta

    def image(self, constraint: Constraint, x: Array) -> Image:
        return constraint.image(x)

    def dual(self, constraint: Constraint, image: Image) -> Image:
        """Return the multiplier of the next step, from the point with this image."""
        u, beta = self.multiplier, self.beta
        w = image if u is None else tuple(z + v / beta for z, v in zip(image, u, strict=True))
        nearest = constraint.project_image(w)
        return tuple(beta * (a - b) for a, b in zip(w, nearest, strict=True))

    def linearize_at(self, constraint: Constraint, image: Image) -> Linearization:
        dual = self.dual(constraint, image)
        square = sum(inner(v, v) for v in dual)
        if self.multiplier is not None:
            square -= sum(inner(v, v) for v in self.multiplier)
        return square / (2.0 * self.beta), lambda: constraint.pullback(dual)

    def valid_inequality(self, constraint: Constraint, x: Array) -> ValidInequality:
        image = constraint.image(x)
        return pulled_back(
            constraint, constraint.into_domain(self.dual(constraint, image)), x, image
        )

    def recentred(self, constraint: Constraint, image: Image) -> SetPenalty:
        """Return the penalty of the next step."""
        return replace(self, multiplier=self.dual(constraint, image))

    def stiffened(self, factor: float) -> SetPenalty:
        """Return the penalty with the same multiplier and ``factor`` times the stiffness."""
        return replace(self, beta=factor * self.beta)


@dataclass(frozen=True)
class MemberPenalties:
    """The sum of one centred penalty for each member of an intersection."""

    parts: tuple[CentredHinge | SetPenalty, ...]

    @property
    def above(self) -> float | None:
        """None: no method uses the largest value on the feasible set."""
        return None

    @property
    def weight(self) -> float:
        """NaN: each part has its own stiffness."""
        return math.nan

    @staticmethod
    def of(
        constraint: Constraint, stiffness: float | Sequence[float], dual: Image | None = None
    ) -> MemberPenalties:
        """Return a `SetPenalty` for each member of the form ``M x in Q``, a `CentredHinge` for the others.

        ``stiffness`` is a number for all members, or one for each. The multipliers are zero, or ``dual`` if
        all members are of the form ``M x in Q``.
        """
        members = constraint.members()
        betas = (stiffness,) * len(members) if isinstance(stiffness, (int, float)) else stiffness
        penalties = MemberPenalties(
            tuple(
                SetPenalty(beta) if member.has_image_set else CentredHinge(beta)
                for member, beta in zip(members, betas, strict=True)
            )
        )
        if dual is None:
            return penalties
        shares = penalties._shares(constraint, dual)
        return MemberPenalties(tuple(SetPenalty(part.weight, share) for part, _, share in shares))

    def image(self, constraint: Constraint, x: Array) -> Image:
        return constraint.image(x)

    def _shares(
        self, constraint: Constraint, image: Image
    ) -> Iterator[tuple[CentredHinge | SetPenalty, Constraint, Image]]:
        """Yield each penalty with its member of the constraint and that member's part of the image."""
        start = 0
        for part, member in zip(self.parts, constraint.members(), strict=True):
            stop = start + member.image_length
            yield part, member, image[start:stop]
            start = stop

    def linearize_at(self, constraint: Constraint, image: Image) -> Linearization:
        terms = [
            p.linearize_at(member, share) for p, member, share in self._shares(constraint, image)
        ]

        def gradient() -> Array | None:
            gradients = [g for g in (term[1]() for term in terms) if g is not None]
            return functools.reduce(operator.add, gradients) if gradients else None

        return sum(term[0] for term in terms), gradient

    def valid_inequality(self, constraint: Constraint, x: Array) -> ValidInequality:
        members = zip(self.parts, constraint.members(), strict=True)
        inequalities = [part.valid_inequality(member, x) for part, member in members]
        if not inequalities:
            return ValidInequality.trivial(x)
        duals = [each.dual for each in inequalities if each.dual is not None]
        return ValidInequality(
            functools.reduce(operator.add, (each.direction for each in inequalities)),
            sum(each.support for each in inequalities),
            tuple(v for dual in duals for v in dual) if len(duals) == len(inequalities) else None,
            sum(each.blur for each in inequalities),
        )

    def recentred(self, constraint: Constraint, image: Image) -> MemberPenalties:
        """Return the penalties of the next step."""
        shares = self._shares(constraint, image)
        return MemberPenalties(tuple(p.recentred(member, share) for p, member, share in shares))

    def stiffened(self, factor: float) -> MemberPenalties:
        """Return the penalties with the same multipliers and ``factor`` times the stiffness."""
        return MemberPenalties(tuple(p.stiffened(factor) for p in self.parts))
