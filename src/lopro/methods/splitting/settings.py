"""Constants of both splitting methods."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["SETTINGS", "SplittingSettings"]


@dataclass(frozen=True)
class SplittingSettings:
    """Constants of `ADMM` and `AlternatingDirections`.

    ``python -m benchmarks.constants methods.splitting`` divides and multiplies each by ten and counts the
    products on nine problems of 24 x 24 pixels and 40 x 40 entries. "A, B" below are the products in all,
    relative to those with the value here, after a division and a multiplication; "lost" means that a problem
    is not proved within 20,000 steps. Limits and margins change nothing there: 1.00, 1.00.
    """

    #: Variables from which on ADMM comes first for operators, of which Newton's method has only products.
    #: Pinball losses of 4 variables take it 36 and 253 products, and ADMM 4,810 and 5,911; total variation of
    #: 64 x 64 is not proved by it in 5 s.
    many_of_operator: int = 64
    #: A norm of so many times as many rows as variables is a loss of samples: Newton's systems are small.
    samples: int = 4
    #: Products of one linear system at most: 0.63, 1.00. Total variation of 128 x 128 over a ball to 1e-3
    #: takes 8,778, 10,046, 11,102 and 11,102 products with 3, 5, 10 and 30; penalised 8,009, 7,097, 7,273 and
    #: 7,273; to 1e-4 over a ball 28,414 with 5 and 28,686 with 10 and 30.
    products: int = 30
    #: Residual of a linear system, relative to the change of the last step: lost, 0.89 (one signal 7.1).
    accuracy: float = 0.1
    #: The factor by which a penalty changes at most, to make both relative residuals of its term equal: lost
    #: (penalties stay what they are), 1.00.
    change: float = 5.0
    #: Penalties for a bound, as a share of those for a point: small ones make multipliers that are nearly
    #: stationary. 1.16, 0.87; on 128 x 128 pixels, where 263.62 is optimal, 50 steps after 400 prove 262.30,
    #: 262.31, 262.36, 263.15 and 263.57 with shares of 1, 0.3, 0.1, 0.03 and 0.01.
    softening: float = 0.01
    #: Steps of ADMM from one certificate to the next, as a share of those made: lost, 1.50.
    certificate_share: float = 0.5
    #: Steps with the penalties for a bound, as a share of those made: 1.00, lost.
    bound_share: float = 0.125
    #: Rounds of projections to a feasible point: a limit. Near a smooth boundary each squares the violation.
    rounds: int = 30
    #: Products of the least-squares step of a bound: a limit.
    bound_products: int = 500
    #: What the residual of a bound may cost, as a share of the gap: 1 % of it is not missed.
    residual_share: float = 1e-2
    #: The margin by which multipliers are shortened more than their computed size requires. Where rounding
    #: exceeds it, the conjugates are infinite, and the bound is missed rather than false.
    inside: float = 1e-12
    #: Rounding of a product with an operator, in units of its norm times that of the vector: a margin.
    #: Measured against long double on 2048 x 2048 pixels, a blur by fast Fourier transforms is off by 0.3
    #: units, and a cosine transform by 1.7.
    roundings: float = 64.0
    #: Steps of alternating directions from one check of the gap to the next, as a share of those made: one
    #: completion takes 1.01 and 1.38 times as many iterations.
    check_share: float = 0.125
    #: The first step of the prox, as a share of the dual norm of the nearest point of the set to the start:
    #: one completion takes 1.39, another 1.26 times as many iterations.
    first_step: float = 1.0 / 3.0


SETTINGS = SplittingSettings()
