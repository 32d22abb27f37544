"""Problems T1 to T9 of docs/theory.md, with every constant of the theory in closed form.

Starts are off the axes and spectra are spread: on balls and boxes a projection repairs almost any
mistake, so a test there proves little.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import scipy.optimize
from support.known_problem import Known, Vector
from support.theory_sparse_problems import t7, t8

from lopro.constraints import (
    Box,
    Constraint,
    FunctionConstraint,
    Polyhedron,
    PSDCone,
    ResidualBall,
    ResidualNorm,
    SquaredResidual,
)
from lopro.functions import Ball
from lopro.objectives import L1Norm, Linear, SquaredDistance


def rotation(d: int, seed: int = 3) -> Vector:
    """Return an orthogonal matrix without zeros."""
    return np.linalg.qr(np.random.default_rng(seed).standard_normal((d, d)))[0]


def t1(start: float = -1.3) -> Known:
    """T1: ``min -x`` for ``x <= 0``; the simplest kink, on which Prop 2 is tight."""
    half_line = FunctionConstraint(
        lambda x: float(x[0]),
        lambda x: np.ones(1),
        project=lambda x: np.minimum(x, 0.0),
        rho=1.0,
        smooth=True,
        shape=(1,),
        lipschitz=1.0,
        smoothness=0.0,
    )
    return Known(
        name="T1",
        objective=Linear(np.array([-1.0])),
        constraint=half_line,
        x0=np.array([start]),
        solution=np.zeros(1),
        optimum=0.0,
        zeta=1.0,
        G=1.0,
        Gc=1.0,
        rho=1.0,
        Lf=0.0,
        Lc=0.0,
        sigma=1.0,
    )


def t2(d: int = 5) -> Known:
    """T2: a linear function over a box, ``c = max |x_i| - 1``."""
    a = np.linspace(0.4, 1.3, d) * (-1.0) ** np.arange(d)
    return Known(
        name="T2",
        objective=Linear(a),
        constraint=Box(-np.ones(d), np.ones(d)),
        x0=0.7 * np.cos(1.0 + np.arange(d)),
        solution=-np.sign(a),
        optimum=-float(np.abs(a).sum()),
        zeta=float(np.abs(a).sum()),
        G=float(np.linalg.norm(a)),
        Gc=1.0,
        rho=1.0 / math.sqrt(d),
        Lf=0.0,
        sigma=1.0 / float(np.abs(a).min()),
        directions=(np.ones(d) / math.sqrt(d),),
    )


def t3(*, smooth: bool = False) -> Known:
    """T3: ``min |x|_1`` for ``a x >= b``; the best problem for negative controls.

    A polyhedron of one row is not declared smooth: ``smooth`` gives the same set by callables.
    """
    a, b = np.array([0.6, 1.5, 2.0, 0.9]), 1.5
    M, m = 2.0, 1.5
    length = float(np.linalg.norm(a))
    constraint: Constraint = Polyhedron(-a[None, :], np.array([-b]))
    if smooth:
        constraint = FunctionConstraint(
            lambda x: b - float(a @ x),
            lambda x: -a,
            project=lambda x: x + max(0.0, b - float(a @ x)) / length**2 * a,
            rho=length,
            smooth=True,
            shape=(4,),
            lipschitz=length,
            smoothness=0.0,
        )
    return Known(
        name="T3",
        objective=L1Norm(shape=(4,)),
        constraint=constraint,
        x0=b * a / length**2,
        solution=np.array([0.0, 0.0, b / M, 0.0]),
        optimum=b / M,
        zeta=1.0 / M,
        G=2.0,
        Gc=length,
        rho=length,
        Lf=0.0,  # handled by its prox
        Lc=0.0,
        sigma=math.hypot(M / (M - m), max(1.0, m / (M - m))),
        directions=(-a / length,),
    )


def ellipsoid(spectrum: Vector) -> tuple[Vector, Vector, Vector]:
    """Return ``Q`` with these eigenvalues in a tilted basis, a root of it, and the basis."""
    V = rotation(len(spectrum))
    return (V * spectrum) @ V.T, np.sqrt(spectrum)[:, None] * V.T, V


def t4(d: int = 5, *, form: SquaredResidual | ResidualNorm | None = None) -> Known:
    """T4: a linear function over an ellipsoid, as ``x'Qx - 1`` or as ``sqrt(x'Qx) - 1``."""
    spectrum = np.geomspace(0.5, 4.0, d)
    Q, root, V = ellipsoid(spectrum)
    a = V @ np.linspace(1.0, 0.6, d)
    w = math.sqrt(float(a @ np.linalg.solve(Q, a)))
    squared = not isinstance(form, ResidualNorm)
    low, high = float(spectrum[0]), float(spectrum[-1])
    start = V @ np.cos(2.0 + 3.0 * np.arange(d))
    return Known(
        name="T4" if squared else "T4 norm",
        objective=Linear(a),
        constraint=ResidualBall(root, np.zeros(d), 1.0, form),
        x0=0.8 * start / math.sqrt(float(start @ Q @ start)),
        solution=-np.linalg.solve(Q, a) / w,
        optimum=-w,
        zeta=w / 2.0 if squared else w,
        G=float(np.linalg.norm(a)),
        Gc=math.inf if squared else math.sqrt(high),
        rho=2.0 * math.sqrt(low) if squared else math.sqrt(low),
        Lf=0.0,
        Lc=2.0 * high if squared else math.inf,
        c_min=-1.0,
        theta=0.5,
        sigma=1.0 / math.sqrt(0.5 * w * low),
        directions=(V[:, 0],),
    )


def t5() -> Known:
    """T5: a linear function over the unit ball, ``c = |x| - 1``, from a start off the axis."""
    a = np.array([0.9, -0.4, 0.3])
    size = float(np.linalg.norm(a))
    return Known(
        name="T5",
        objective=Linear(a),
        constraint=ResidualBall(np.eye(3), np.zeros(3), 1.0, ResidualNorm()),
        x0=np.array([0.3, -0.7, 0.5]),
        solution=-a / size,
        optimum=-size,
        zeta=size,
        G=size,
        Gc=1.0,
        rho=1.0,
        Lf=0.0,
        theta=0.5,
        sigma=math.sqrt(2.0 / size),
    )


def solution_ball(z: Vector, center: Vector) -> tuple[Ball, float]:
    """Return the ball of C1' for ``1/2 |x - z|^2`` and the Lipschitz constant of f on it."""
    radius = float(np.linalg.norm(center - z))
    return Ball(center, radius), 2.0 * radius


def t6_box(d: int = 4) -> Known:
    """T6: the nearest point of a box; ``G`` holds on the ball of C1' around the start."""
    z = np.array([1.6, -0.4, -1.3, 0.8, 2.0])[:d]
    x0 = 0.5 * np.cos(2.0 + np.arange(d))
    solution = np.clip(z, -1.0, 1.0)
    return Known(
        name="T6 box",
        objective=SquaredDistance(z),
        constraint=Box(-np.ones(d), np.ones(d)),
        x0=x0,
        solution=solution,
        optimum=0.5 * float((z - solution) @ (z - solution)),
        zeta=float(np.abs(z - solution).sum()),
        G=solution_ball(z, x0)[1],
        Gc=1.0,
        rho=1.0 / math.sqrt(d),
        Lf=1.0,
        mu=1.0,
        theta=0.5,
        sigma=math.sqrt(2.0),
        directions=(np.ones(d) / math.sqrt(d),),
    )


def t6_ellipsoid() -> Known:
    """T6: the nearest point of an ellipsoid, from the secular equation in its eigenbasis.

    ``G`` is the largest slope of f on the set (R1 needs no more).
    """
    spectrum = np.array([0.8, 1.0, 1.5])
    _, root, V = ellipsoid(spectrum)
    u = np.array([0.9, 0.5, -0.6])  # z in the eigenbasis
    eta = scipy.optimize.brentq(
        lambda s: float(spectrum @ (u / (1.0 + s * spectrum)) ** 2) - 1.0, 0.0, 10.0, xtol=1e-15
    )
    z, solution = V @ u, V @ (u / (1.0 + eta * spectrum))
    return Known(
        name="T6 ellipsoid",
        objective=SquaredDistance(z),
        constraint=ResidualBall(root, np.zeros(3), 1.0),
        x0=V @ np.array([-0.2, 0.5, 0.3]),
        solution=solution,
        optimum=0.5 * float((z - solution) @ (z - solution)),
        zeta=eta / 2.0,
        G=float(np.linalg.norm(z)) + 1.0 / math.sqrt(spectrum[0]),
        Gc=math.inf,
        rho=2.0 * math.sqrt(spectrum[0]),
        Lf=1.0,
        Lc=2.0 * spectrum[-1],
        mu=1.0,
        c_min=-1.0,
        theta=0.5,
        sigma=math.sqrt(2.0),
        directions=(V[:, 0],),
    )


def t9(form: Any = None) -> Known:
    """T9: the nearest positive semidefinite matrix to one with eigenvalues -1, -2, 0.5 and 3.

    ``zeta`` is the threshold of exactness of ``-lambda_min``: the trace of the dual slack.
    """
    V = rotation(4)
    values = np.array([-1.0, -2.0, 0.5, 3.0])
    M, solution = (V * values) @ V.T, (V * np.maximum(values, 0.0)) @ V.T
    start = np.eye(4) + 0.3 * np.cos(np.add.outer(np.arange(4.0), np.arange(4.0)))
    constraint = PSDCone(4, form)
    return Known(
        name="T9",
        objective=SquaredDistance(M),
        constraint=constraint,
        x0=start,
        solution=solution,
        optimum=2.5,
        zeta=3.0,
        G=solution_ball(M, start)[1],
        Gc=constraint.lipschitz().value,
        rho=constraint.regularity().value,
        Lf=1.0,
        mu=1.0,
        theta=0.5,
        sigma=math.sqrt(2.0),
        directions=(-np.eye(4) / 2.0,),
    )


def all_problems() -> list[Known]:
    """Return T1 to T9, both forms of T4 and of T6."""
    norm_form = t4(form=ResidualNorm())
    return [t1(), t2(), t3(), t4(), norm_form, t5(), t6_box(), t6_ellipsoid(), t7(), t8(), t9()]
