"""The constraints that every contract test runs on.

To put a new constraint under all contracts, add one line to ``CONSTRAINTS``: a name, a function
that builds it from a converter (NumPy data in, data of the library and dtype under test out), and a
function that draws a feasible point; if it defines `radius`, add the name to ``BOUNDED`` as well.
Boundary points are found on rays from feasible ones.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from support.catalogue_objectives import (
    COMPLEX,
    DEFICIENT,
    TALL,
    WIDE,
    Convert,
    operator,
    sparse,
)
from support.catalogue_rows import (
    BOUNDS,
    ODD_BOUNDS,
    ODD_ROWS,
    ROWS,
    affine,
    box,
    box_of_matrices,
    entries,
    ice_cream,
    inside,
    on_matrices,
    polyhedron,
    second_order,
)
from support.constraint_case import ConstraintCase

from lopro.constraints import (
    Affine,
    Constraint,
    Distance,
    FunctionConstraint,
    Intersection,
    KyFan,
    L1Ball,
    MaxForm,
    MinEigenvalue,
    NegativeSum,
    NormForm,
    Polyhedron,
    PSDCone,
    ResidualBall,
    ResidualNorm,
    Simplex,
    Spectrahedron,
    SquaredResidual,
)
from lopro.core.arrays import namespace

# Residual balls: wide, tall and rank-deficient matrices, complex ones, operators, no interior.


def _near(A: Any, slack: float) -> tuple[Any, Callable[[np.random.Generator], Any]]:
    """Return ``y = A z0`` and feasible points ``z0 + v`` with ``|A v| <= slack``."""
    d = A.shape[1]
    z0 = np.random.default_rng(d).standard_normal(d) * (1.0 + (1j if A.dtype.kind == "c" else 0.0))

    def draw(rng: np.random.Generator) -> Any:
        v = rng.standard_normal(d) * (1.0 + (1j if A.dtype.kind == "c" else 0.0))
        return z0 + v * (0.95 * slack * rng.random() / np.linalg.norm(A @ v))

    return A @ z0, draw


def _ball(name: str, A: Any, sigma: float, form: Any, wrap: Any = None) -> ConstraintCase:
    y, draw = _near(A, sigma)

    def build(of: Convert) -> Constraint:
        return ResidualBall(of(A) if wrap is None else wrap(of, A), of(y), sigma, form)

    return ConstraintCase(name, build, draw)


def _off_range() -> ConstraintCase:
    """A rank-deficient ball whose centre the map cannot reach: the least-squares residual counts."""
    U = np.linalg.svd(DEFICIENT)[0]
    y0, draw = _near(DEFICIENT, 0.8)
    y = y0 + 0.6 * U[:, -1]
    return ConstraintCase(
        "ball-off-range",
        lambda of: ResidualBall(of(DEFICIENT), of(y), 1.0, ResidualNorm()),
        draw,
    )


def _equations() -> ConstraintCase:
    y, _ = _near(WIDE, 0.0)
    start, null = np.linalg.lstsq(WIDE, y, rcond=None)[0], np.linalg.svd(WIDE)[2][len(WIDE) :]
    return ConstraintCase(
        "ball-equations",
        lambda of: ResidualBall(of(WIDE), of(y), 0.0, ResidualNorm()),
        lambda rng: start + null.T @ rng.standard_normal(len(null)),
        thin=True,
    )


# The cone.


def _psd(form: Any, dim: int = 5, is_complex: bool = False) -> ConstraintCase:
    def draw(rng: np.random.Generator) -> Any:
        B = rng.standard_normal((dim, dim))
        B = B + 1j * rng.standard_normal((dim, dim)) if is_complex else B
        return B @ B.conj().T / dim

    kind = "-complex" if is_complex else ""
    return ConstraintCase(
        f"psd-{type(form).__name__}{kind}", lambda of: PSDCone(dim, form), draw, symmetric=True
    )


# Sets over which linear functions are easy to minimise.


def _l1_ball() -> ConstraintCase:
    def draw(rng: np.random.Generator) -> Any:
        return 2.0 * rng.dirichlet(np.ones(5))[:4] * rng.choice([-1.0, 1.0], 4)

    return ConstraintCase("l1-ball", lambda of: L1Ball(4, 2.0), draw)


def _l1_ball_around() -> ConstraintCase:
    centre = np.array([3.0, -1.0, 0.0, 0.5])

    def draw(rng: np.random.Generator) -> Any:
        return centre + 2.0 * rng.dirichlet(np.ones(5))[:4] * rng.choice([-1.0, 1.0], 4)

    return ConstraintCase("l1-ball-around", lambda of: L1Ball(4, 2.0, center=of(centre)), draw)


def _simplex(equality: bool) -> ConstraintCase:
    def draw(rng: np.random.Generator) -> Any:
        return 2.0 * rng.dirichlet(np.ones(4 if equality else 5))[:4]

    return ConstraintCase(
        "simplex" if equality else "simplex-filled",
        lambda of: Simplex(4, 2.0, equality=equality),
        draw,
        thin=equality,
    )


def _spectrahedron(equality: bool, is_complex: bool) -> ConstraintCase:
    def draw(rng: np.random.Generator) -> Any:
        B = rng.standard_normal((4, 4)) + (1j * rng.standard_normal((4, 4)) if is_complex else 0.0)
        values = 2.0 * rng.dirichlet(np.ones(4 if equality else 5))[:4]
        Q = np.linalg.qr(B)[0]
        X = (Q * values) @ Q.conj().T
        return 0.5 * (X + X.conj().T)

    kind = ("-fixed" if equality else "") + ("-complex" if is_complex else "")
    return ConstraintCase(
        f"spectrahedron{kind}",
        lambda of: Spectrahedron(4, 2.0, equality=equality),
        draw,
        symmetric=True,
        thin=equality,
    )


# Functions and intersections.


def _log_sum_exp() -> ConstraintCase:
    def build(of: Convert) -> Constraint:
        C = of(ROWS)
        xp = namespace(C)

        def value(x: Any) -> float:
            a = C @ x
            top = float(xp.max(a))
            return top + float(xp.log(xp.sum(xp.exp(a - top)))) - 3.0

        def slope(x: Any) -> Any:
            a = C @ x
            w = xp.exp(a - float(xp.max(a)))
            return C.T @ (w / float(xp.sum(w)))

        longest = float(np.linalg.norm(ROWS, axis=1).max())
        return FunctionConstraint(
            value, slope, smooth=True, shape=(4,), lipschitz=longest, smoothness=longest**2
        )

    # log-sum-exp is at most the largest entry plus log 5.
    return ConstraintCase("function-smooth", build, inside(ROWS, np.ones(5)))


def _l1() -> ConstraintCase:
    def build(of: Convert) -> Constraint:
        xp = namespace(of(BOUNDS))
        return FunctionConstraint(
            lambda x: float(xp.sum(xp.abs(x))) - 1.0,
            lambda x: xp.sign(x),
            rho=1.0,
            shape=(4,),
            lipschitz=2.0,
            infimum=-1.0,
        )

    return ConstraintCase("function-kinked", build, lambda rng: rng.uniform(-0.24, 0.24, 4))


def _intersection() -> ConstraintCase:
    y, draw = _near(TALL, 1.0)
    z0 = np.linalg.lstsq(TALL, y, rcond=None)[0]
    b = ROWS @ z0 + 0.1

    def build(of: Convert) -> Constraint:
        ball = ResidualBall(of(TALL), of(y), 1.0, ResidualNorm())
        return Intersection(ball, Polyhedron(of(ROWS), of(b)))

    def both(rng: np.random.Generator) -> Any:
        u = draw(rng) - z0
        return z0 + u * min(1.0, 0.09 / max(float((ROWS @ u).max()), 1e-300))

    return ConstraintCase("intersection", build, both)


def _semidefinite(name: str, kind: int) -> ConstraintCase:
    """Positive semidefinite matrices with diagonal 1, or with bounds on the trace and on an entry."""

    def draw(rng: np.random.Generator) -> Any:
        B = rng.standard_normal((4, 6))
        X = B @ B.T
        scale = 1.0 / np.sqrt(X.diagonal())
        X = scale[:, None] * X * scale if kind == 1 else X * (rng.uniform(2.0, 4.0) / X.trace())
        X = 0.5 * (X + X.T)
        if kind == 2:
            X[0, 1] = X[1, 0] = min(0.3, X[0, 1])
        return X if np.linalg.eigvalsh(X)[0] > 0.0 else draw(rng)

    def build(of: Convert) -> Constraint:
        if kind == 1:
            ones, at = of(np.ones(4)), np.arange(4)
            return Intersection(PSDCone(4), Affine.entries((at, at), ones, ones, shape=(4, 4)))
        trace = Affine(of(np.eye(4).reshape(1, 16)), 2.0, 4.0, shape=(4, 4))
        entry = Affine.entries(([0], [1]), upper=of(np.array([0.3])), shape=(4, 4))
        return Intersection(PSDCone(4), trace, entry)

    return ConstraintCase(name, build, draw, symmetric=True, thin=kind == 1)


#: The cases whose sets state a radius.
BOUNDED = {
    "ball-tall",
    "ball-complex",
    "intersection",
    "l1-ball",
    "l1-ball-around",
    "simplex",
    "simplex-filled",
    "spectrahedron",
    "spectrahedron-fixed-complex",
}

CONSTRAINTS = [
    _ball("ball-wide-squared", WIDE, 1.0, SquaredResidual()),
    _ball("ball-wide-norm", WIDE, 1.0, ResidualNorm()),
    _ball("ball-tall", TALL, 0.7, SquaredResidual()),
    _ball("ball-deficient", DEFICIENT, 0.5, SquaredResidual()),
    _ball("ball-complex", COMPLEX, 0.8, ResidualNorm()),
    _ball("ball-sparse", WIDE, 1.0, SquaredResidual(), sparse),
    _ball("ball-operator", WIDE, 1.0, SquaredResidual(), operator),
    _off_range(),
    _equations(),
    polyhedron("polyhedron-max", ROWS, BOUNDS, MaxForm()),
    polyhedron("polyhedron-norm", ROWS, BOUNDS, NormForm()),
    polyhedron("polyhedron-odd-max", ODD_ROWS, ODD_BOUNDS, MaxForm()),
    polyhedron("polyhedron-odd-norm", ODD_ROWS, ODD_BOUNDS, NormForm()),
    polyhedron("polyhedron-sparse", ROWS, BOUNDS, MaxForm(), sparse),
    affine("affine-max", MaxForm()),
    affine("affine-norm", NormForm()),
    affine("affine-sparse", MaxForm(), sparse),
    on_matrices("affine-matrix"),
    on_matrices("affine-matrix-sparse", sparse),
    on_matrices("affine-operator", operator),
    entries(),
    box_of_matrices(),
    _semidefinite("semidefinite-diagonal", 1),
    _semidefinite("semidefinite-trace", 2),
    box(MaxForm()),
    box(NormForm()),
    second_order("cone-steep", [5.0, 0.5, -0.5, 0.2], d=0.0),
    second_order("cone-flat", [0.3, 0.0, 0.2, 0.0], b=[0.2, -0.1, 0.3]),
    second_order("cone-sparse", [0.3, 0.0, 0.2, 0.0], sparse),
    second_order("cone-operator", [0.3, 0.0, 0.2, 0.0], operator),
    ice_cream(),
    _psd(MinEigenvalue()),
    _psd(KyFan(2)),
    _psd(NegativeSum()),
    _psd(Distance()),
    _psd(KyFan(2), is_complex=True),
    _l1_ball(),
    _l1_ball_around(),
    _simplex(equality=True),
    _simplex(equality=False),
    _spectrahedron(equality=False, is_complex=False),
    _spectrahedron(equality=True, is_complex=True),
    _log_sum_exp(),
    _l1(),
    _intersection(),
]
