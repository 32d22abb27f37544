"""The split of a problem into quadratic terms, which enter a linear system, and terms with a prox."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property

from lopro.core.arrays import Array, asarray_like, is_complex, namespace
from lopro.core.deadline import current_deadline
from lopro.errors import MissingCapabilityError
from lopro.functions.atoms import HalfSquare, Linear, Opaque, Quadratic
from lopro.functions.atoms.base import Atom
from lopro.functions.term import Term
from lopro.linalg.conjugate_gradients import conjugate_gradients
from lopro.linalg.dense import SingularSystem
from lopro.maps.base import LinearMap
from lopro.problem import Problem

__all__ = ["Images", "SplitTerms"]

#: One array for each split term.
Images = tuple[Array, ...]


@dataclass(frozen=True, eq=False)
class SplitTerms:
    """The terms of a problem ``q(x) + sum_i g_i(D_i x)`` with a quadratic ``q``.

    The method solves systems with ``Q + sum_i rho_i D_i'D_i``, where ``Q`` is the Hessian of ``q``,
    by conjugate gradients: only products with maps are used.
    """

    quadratic: tuple[Term, ...]
    split: tuple[Term, ...]
    shape: tuple[int, ...]

    @staticmethod
    def of(problem: Problem, shape: tuple[int, ...]) -> SplitTerms:
        """Split the terms of a problem.

        Raises
        ------
        MissingCapabilityError
            If a term is not quadratic and has no prox, if there is no term with a prox, or for complex
            points.
        """
        quadratic, split = [], []
        for term in problem.terms:
            if _is_quadratic(term):
                quadratic.append(term)
            elif has_prox(term.atom):
                split.append(term)
            else:
                raise MissingCapabilityError(
                    f"ADMM needs a prox of every term, {term.atom!r} has none"
                )
        likes = (problem.objective.like, problem.constraint.like)
        if any(like is not None and is_complex(like) for like in likes):
            raise MissingCapabilityError("ADMM needs real points")
        if not split:
            raise MissingCapabilityError("ADMM needs a norm or a set to split off")
        return SplitTerms(tuple(quadratic), tuple(split), shape)

    def in_double(self) -> SplitTerms:
        """Return the same terms for NumPy arrays of doubles."""
        size = math.prod(self.shape)
        return SplitTerms(
            tuple(term.on_host(size) for term in self.quadratic),
            tuple(term.on_host(size) for term in self.split),
            self.shape,
        )

    # Products.

    @cached_property
    def _groups(self) -> list[tuple[LinearMap | None, list[int]]]:
        """The distinct maps, each with the indices of its terms."""
        groups: dict[int, tuple[LinearMap | None, list[int]]] = {}
        for i, term in enumerate(self.split):
            key = 0 if term.is_identity else id(term.map)
            groups.setdefault(key, (None if term.is_identity else term.map, []))[1].append(i)
        return list(groups.values())

    def images(self, x: Array) -> Images:
        """Return ``D_i x`` for every split term."""
        images: list[Array] = [x] * len(self.split)
        for D, members in self._groups:
            image = x if D is None else _alike(D.forward(self._flat(x)), x)
            for i in members:
                images[i] = image
        return tuple(images)

    def pullback(self, v: Sequence[Array]) -> Array:
        """Return ``sum_i D_i' v_i``."""
        total: Array = 0.0
        for D, members in self._groups:
            added = v[members[0]]
            for i in members[1:]:
                added = added + v[i]
            total = total + (added if D is None else self._shaped(_alike(D.adjoint(added), added)))
        return total

    def gradient(self, x: Array) -> Array:
        """Return the gradient of the quadratic terms."""
        return self._sum(x, lambda term, z: term.slope(z))

    def hessian(self, p: Array) -> Array:
        """Return ``Q p``."""
        return self._sum(p, _curved)

    def _sum(self, x: Array, of_image: Callable[[Term, Array], Array]) -> Array:
        total = 0.0 * x
        for term in self.quadratic:
            slope = of_image(term, self.image_of(term, x))
            if not term.is_identity:
                slope = self._shaped(_alike(term.D.adjoint(slope), x))
            total = total + slope
        return total

    def image_of(self, term: Term, x: Array) -> Array:
        """Return the image of a point under the map of one term; maps act on vectors."""
        return x if term.is_identity else _alike(term.D.forward(self._flat(x)), x)

    def _flat(self, x: Array) -> Array:
        return x if len(self.shape) == 1 else namespace(x).reshape(x, (-1,))

    def _shaped(self, x: Array) -> Array:
        return x if len(self.shape) == 1 else namespace(x).reshape(x, self.shape)

    # The system.

    def solve(
        self, rho: Sequence[float], rhs: Array, accuracy: float, products: int
    ) -> tuple[Array, int]:
        """Return an approximate solution of ``(Q + sum rho_i D_i'D_i) x = rhs``, and the product count."""

        def product(p: Array) -> Array:
            weighted = [r * z for r, z in zip(rho, self.images(p), strict=True)]
            return self.hessian(p) + self.pullback(weighted)

        try:
            return conjugate_gradients(
                product, rhs, accuracy, None, products, lambda: current_deadline().passed
            )
        except SingularSystem:
            return 0.0 * rhs, 1


def has_prox(atom: Atom) -> bool:
    """Whether an atom has a prox of its own; functions and sets of users have none."""
    return type(atom).prox is not Atom.prox and not isinstance(atom, Opaque)


def _is_quadratic(term: Term) -> bool:
    if isinstance(term.atom, Quadratic):
        return term.is_identity and term.offset is None
    # Squares of images are split: with the small penalties of a bound the system would have about the
    # condition number of their Hessian.
    return isinstance(term.atom, Linear) or (isinstance(term.atom, HalfSquare) and term.is_identity)


def _curved(term: Term, z: Array) -> Array:
    """Return the second derivative of a quadratic term times an image."""
    if isinstance(term.atom, Linear):
        return 0.0 * z
    return term.scale * (term.atom.P.forward(z) if isinstance(term.atom, Quadratic) else z)


def _alike(product: Array, x: Array) -> Array:
    """Return a product in the precision of the points; maps of differences return double precision."""
    return product if product.dtype == x.dtype else asarray_like(product, x)
