"""The constants of both splitting methods."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["SETTINGS", "SplittingSettings"]


@dataclass(frozen=True)
class SplittingSettings:
    """Constants of `ADMM` and `AlternatingDirections`.

    ``python -m benchmarks.constants methods.splitting`` divides and multiplies each by ten and counts the
    products on nine problems of 24 x 24 pixels and 40 x 40 entries. "A, B" below are the products in all,
    relative to those with the value here, after a division and a multiplication; "lost" means that a problem
    is not proved within 20,000 steps. Limits and margins change nothing there: 1.00, 1.00. Of the options of
    both methods, ``every`` gives lost and 1.33 for `ADMM`, 1.00 and 1.01 for `AlternatingDirections`; ten
    times the ``patience`` of either changes nothing.
    """

    #: Least number of variables with which ADMM precedes Newton's method for operators, of which both have
    #: only products. Two pinball losses of 4 variables take Newton's method 36 and 253 products and ADMM
    #: 4,810 and 5,911; total variation of 64 x 64 is not proved by Newton's method in 5 s.
    many_of_operator: int = 64
    #: Least ratio of rows to variables at which a norm is a loss of samples, for which the systems of
    #: Newton's method are small.
    samples: int = 4
    #: Limit of the products of one linear system: 0.63, 1.00. Total variation of 128 x 128 over a ball to
    #: 1e-3 takes 8,778, 10,046, 11,102 and 11,102 products with 3, 5, 10 and 30; penalised 8,009, 7,097,
    #: 7,273 and 7,273; to 1e-4 over a ball 28,414 with 5 and 28,686 with 10 and 30.
    products: int = 30
    #: Residual of a linear system, relative to the change of the last step: lost, 0.89 (one signal 7.1).
    accuracy: float = 0.1
    #: Largest factor by which a penalty changes to make both relative residuals of its term equal: lost
    #: (penalties do not change), 1.00.
    change: float = 5.0
    #: Penalties for a bound, as a share of those for a point; with small penalties the multipliers become
    #: nearly stationary: 1.16, 0.87; on 128 x 128 pixels, where 263.62 is optimal, 50 steps after 400 prove
    #: 262.30, 262.31, 262.36, 263.15 and 263.57 with shares of 1, 0.3, 0.1, 0.03 and 0.01.
    softening: float = 0.01
    #: Steps of ADMM between two certificates, as a share of the steps before: lost, 1.50.
    certificate_share: float = 0.5
    #: Steps with the penalties for a bound, as a share of the steps before: 1.00, lost.
    bound_share: float = 0.125
    #: Limit of the rounds of projections to a feasible point. Near a smooth boundary each squares the
    #: violation.
    rounds: int = 30
    #: Limit of the products of the least-squares step of a bound.
    bound_products: int = 500
    #: Amount by which the residual may lower a bound, as a share of the required gap: 1 % of it is
    #: negligible.
    residual_share: float = 1e-2
    #: Relative margin by which multipliers are shortened beyond what their computed gauge requires. If
    #: rounding exceeds it, the conjugates are infinite, and there is no bound rather than a false one.
    inside: float = 1e-12
    #: Bound on the rounding error of a product with an operator, in units of the norm of the operator times
    #: that of the vector. Measured against long double on 2048 x 2048 pixels, a blur by fast Fourier
    #: transforms is off by 0.3 units, and a cosine transform by 1.7.
    roundings: float = 64.0
    #: Steps of alternating directions between two checks of the gap, as a share of the steps before: one
    #: completion takes 1.01 and 1.38 times as many iterations.
    check_share: float = 0.125
    #: The first step of the prox, as a share of the dual norm of the nearest point of the set to the start:
    #: one completion takes 1.39, another 1.26 times as many iterations.
    first_step: float = 1.0 / 3.0


SETTINGS = SplittingSettings()
