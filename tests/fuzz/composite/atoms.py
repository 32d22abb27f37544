"""Functions of an image in plain NumPy: a value, and one of the slopes, at random where there are many."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

__all__ = ["ATOMS", "Array", "Atom"]

Array = np.ndarray[Any, Any]
Rng = np.random.Generator


@dataclass(frozen=True)
class Atom:
    """``g(D x, b)``: the text for the library, with D and b in its place, value and slope at ``z = D x``."""

    text: str
    value: Callable[[Array, Array], Any]
    slope: Callable[[Rng, Array, Array], Array]
    #: What b is: numbers, signs or counts.
    data: str = "numbers"


def _between(rng: Rng, sizes: Array) -> Array:
    """Return numbers between -1 and 1, at times the ends."""
    return np.asarray(np.clip(rng.uniform(-1.3, 1.3, sizes.shape), -1.0, 1.0))


def _sign(rng: Rng, z: Array) -> Array:
    return np.where(z == 0.0, _between(rng, z), np.sign(z))


def _of_largest(rng: Rng, z: Array) -> Array:
    """Return a slope of the largest modulus: signs of the largest entries, with weights that sum to 1."""
    top = np.abs(z) == np.abs(z).max()
    weights = rng.random(len(z)) * top
    signs = np.where(z == 0.0, rng.choice([-1.0, 1.0], len(z)), np.sign(z))
    return np.asarray(weights / weights.sum() * signs)


def _pairs(rng: Rng, z: Array) -> Array:
    """Return a slope of the sum of the lengths of pairs."""
    w = z.reshape(-1, 2)
    length = np.linalg.norm(w, axis=1, keepdims=True)
    other = rng.standard_normal(w.shape)
    other *= rng.random((len(w), 1)) / np.linalg.norm(other, axis=1, keepdims=True)
    return np.where(length > 0.0, w / np.where(length > 0.0, length, 1.0), other).ravel()


def _step(rng: Rng, z: Array) -> Array:
    """Return a slope of the positive part."""
    return np.where(z == 0.0, 0.5 * (1.0 + _between(rng, z)), (z > 0.0).astype(float))


def _huber(r: Array) -> Any:
    near = np.minimum(np.abs(r), 0.5)
    return np.sum(near * (np.abs(r) - 0.5 * near))


ATOMS: dict[str, Atom] = {
    "squares": Atom(
        "lo.LeastSquares({D}, {b})",
        lambda z, b: 0.5 * np.sum((z - b) ** 2),
        lambda rng, z, b: z - b,
    ),
    "l1": Atom(
        "lo.L1Norm(D={D}, b={b})",
        lambda z, b: np.sum(np.abs(z - b)),
        lambda rng, z, b: _sign(rng, z - b),
    ),
    "linf": Atom(
        "lo.LInfNorm({D}, b={b})",
        lambda z, b: np.max(np.abs(z - b)),
        lambda rng, z, b: _of_largest(rng, z - b),
    ),
    "groups": Atom(
        "lo.GroupNorm({D}, 2, b={b})",
        lambda z, b: np.sum(np.linalg.norm((z - b).reshape(-1, 2), axis=1)),
        lambda rng, z, b: _pairs(rng, z - b),
    ),
    "huber": Atom(
        "lo.Huber({D}, {b}, 0.5)",
        lambda z, b: _huber(z - b),
        lambda rng, z, b: np.clip(z - b, -0.5, 0.5),
    ),
    "hinge": Atom(
        "lo.HingeLoss({D}, {b})",
        lambda z, b: np.mean(np.maximum(0.0, 1.0 - b * z)),
        lambda rng, z, b: -b * _step(rng, 1.0 - b * z) / len(z),
        "signs",
    ),
    "squared hinge": Atom(
        "lo.SquaredHingeLoss({D}, {b})",
        lambda z, b: np.mean(np.maximum(0.0, 1.0 - b * z) ** 2),
        lambda rng, z, b: -2.0 * b * np.maximum(0.0, 1.0 - b * z) / len(z),
        "signs",
    ),
    "pinball": Atom(
        "lo.PinballLoss({D}, {b}, 0.25)",
        lambda z, b: np.mean(np.maximum(0.25 * (b - z), 0.75 * (z - b))),
        lambda rng, z, b: (_step(rng, z - b) - 0.25) / len(z),
    ),
    "logistic": Atom(
        "lo.Logistic({D}, {b})",
        lambda z, b: np.mean(np.logaddexp(0.0, -b * z)),
        lambda rng, z, b: -b / (1.0 + np.exp(b * z)) / len(z),
        "signs",
    ),
    "poisson": Atom(
        "lo.Poisson({D}, {b})",
        lambda z, b: np.mean(np.exp(z) - b * z),
        lambda rng, z, b: (np.exp(z) - b) / len(z),
        "counts",
    ),
}
