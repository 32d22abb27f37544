"""Which problems ADMM is the method for."""

from __future__ import annotations

import math

from lopro.errors import MissingCapabilityError
from lopro.functions.term import Term
from lopro.methods.splitting.parts import Parts
from lopro.problem import Problem

__all__ = ["admm_reason"]

#: Variables from which on norms of images are for ADMM though matrices are at hand. Total variation over a
#: sparse residual ball to 1e-6, seconds of ADMM and of an interior point method: 0.36 and 0.02 for 16 x 16,
#: 0.78 and 0.40 for 32 x 32; for 64 x 64 the latter has no point after 5 s, and ADMM 1e-3 after 0.7 s.
_MANY = 1500
#: The same for operators, of which Newton's method knows products only. Pinball losses of 4 variables take it
#: 36 and 253 products, and ADMM 4,810 and 5,911; total variation of 64 x 64 is not proved by it in 5 s.
_MANY_OF_OPERATOR = 64
#: A norm of so many times as many rows as variables is a loss of samples: Newton's systems are small.
_SAMPLES = 4


def admm_reason(problem: Problem, first: bool = True) -> str | None:
    """Return why ADMM should be tried, first or after other methods; None where it should not.

    Examples
    --------
    >>> import numpy as np, lopro
    >>> from lopro.methods.splitting import admm_reason
    >>> noisy = np.zeros(64 * 64)
    >>> f = lopro.objectives.SquaredDistance(noisy) + lopro.objectives.TotalVariation((64, 64))
    >>> admm_reason(lopro.Problem(f))
    'norms of an image of 4096 variables: products and proxes'
    """
    if problem.shape is None or not any(_is_norm_of_image(term) for term in problem.terms):
        return None
    size = math.prod(problem.shape)
    explicit = all(t.is_identity or t.D.explicit for t in problem.terms)
    if first and size < (_MANY if explicit else _MANY_OF_OPERATOR):
        return None
    try:
        Parts.of(problem, problem.shape)
    except MissingCapabilityError:
        return None
    return f"norms of an image of {size} variables: products and proxes"


def _is_norm_of_image(term: Term) -> bool:
    if term.is_set or term.atom.smooth or term.is_identity:
        return False
    rows, columns = term.D.shape
    return rows < _SAMPLES * columns
