"""Constants of both splitting methods."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["SETTINGS", "SplittingSettings"]


@dataclass(frozen=True)
class SplittingSettings:
    """Constants of `ADMM` and `AlternatingDirections`."""

    #: Variables from which on ADMM comes first for operators, of which Newton's method knows products only.
    many_of_operator: int = 64
    #: A norm of so many times as many rows as variables is a loss of samples: Newton's systems are small.
    samples: int = 4
    #: Products of one linear system at most.
    products: int = 30
    #: Residual of a linear system, relative to the change of the last step.
    accuracy: float = 0.1
    #: The factor by which a penalty changes at most, to make both relative residuals of its term equal.
    change: float = 5.0
    #: Penalties for a bound, as a share of those for a point: small ones make multipliers that are nearly
    #: stationary.
    softening: float = 0.01
    #: Steps from one certificate to the next, as a share of those made: ADMM.
    certificate_share: float = 0.5
    #: Steps with the penalties for a bound, as a share of those made.
    bound_share: float = 0.125
    #: Rounds of projections to a feasible point. Near a smooth boundary each squares the violation.
    rounds: int = 30
    #: Products of the least-squares step of a bound at most.
    bound_products: int = 500
    #: The residual of a bound, as a share of what the gap allows.
    residual_share: float = 1e-2
    #: Multipliers are shortened by this share more than their computed size asks for: more than its rounding.
    inside: float = 1e-12
    #: Rounding of a product with an operator, in units of its norm times that of the vector.
    roundings: float = 64.0
    #: Steps from one certificate to the next, as a share of those made: alternating directions.
    check_share: float = 0.125
    #: The first step of the prox, as a share of the dual norm of the nearest point of the set to the start.
    first_step: float = 1.0 / 3.0


SETTINGS = SplittingSettings()
