"""T7 and T8: basis pursuit denoising, with a closed form and with a solution by an active set."""

from __future__ import annotations

import math

import numpy as np
from support.known_problem import Known, Vector

from lopro.constraints import ResidualBall
from lopro.objectives import L1Norm

__all__ = ["t7", "t8"]


def t7() -> Known:
    """T7: basis pursuit denoising with the identity: a soft threshold.

    Thm CS proves that sigma exists, but gives no closed form.
    """
    y = np.array([2.0, -1.4, 0.9, 0.3, -0.1, 0.05])
    s = 0.5
    tau = float(np.sum(np.minimum(np.abs(y), s) ** 2))
    solution = np.sign(y) * np.maximum(np.abs(y) - s, 0.0)
    return Known(
        name="T7",
        objective=L1Norm(shape=(6,)),
        constraint=ResidualBall(np.eye(6), y, math.sqrt(tau)),
        x0=y * (1.0 - 0.5 * math.sqrt(tau) / float(np.linalg.norm(y))),
        solution=solution,
        optimum=float(np.abs(solution).sum()),
        zeta=1.0 / (2.0 * s),
        G=math.sqrt(6.0),
        Gc=math.inf,
        rho=2.0 * math.sqrt(tau),
        Lf=0.0,  # handled by its prox
        Lc=2.0,
        c_min=-tau,
        theta=0.5,
        directions=(np.eye(6)[5],),
    )


def t8() -> Known:
    """T8: basis pursuit denoising with a random 20 x 60 matrix; the solution is polished on its support.

    Where it comes from does not matter: the duality gap of the pair below proves it optimal.
    """
    rng = np.random.default_rng(8)
    A = rng.standard_normal((20, 60)) / math.sqrt(20.0)
    sparse = np.zeros(60)
    sparse[rng.choice(60, 4, replace=False)] = rng.choice([-1.0, 1.0], 4) * rng.uniform(0.5, 2.0, 4)
    noise = 0.05 * rng.standard_normal(20)
    y, tau = A @ sparse + noise, float(noise @ noise)
    solution, nu = polished(A, y, tau)
    constraint = ResidualBall(A, y, math.sqrt(tau))
    singular = np.linalg.svd(A)
    smallest, direction = float(singular[1][-1]), singular[2][19]
    return Known(
        name="T8",
        objective=L1Norm(shape=(60,)),
        constraint=constraint,
        x0=constraint.project(0.3 * np.cos(np.arange(60.0))),
        solution=solution,
        optimum=float(y @ nu - math.sqrt(tau) * np.linalg.norm(nu)),  # the dual value
        zeta=float(np.linalg.norm(nu)) / (2.0 * math.sqrt(tau)),
        G=math.sqrt(60.0),
        Gc=math.inf,
        rho=2.0 * math.sqrt(tau) * smallest,
        Lf=0.0,  # handled by its prox
        Lc=2.0 * float(singular[1][0]) ** 2,
        c_min=-tau,
        theta=0.5,
        directions=(direction,),
    )


def polished(A: Vector, y: Vector, tau: float) -> tuple[Vector, Vector]:
    """Return the primal and dual solution of basis pursuit denoising by an active-set iteration.

    On the support ``S`` with signs ``s`` the solution is ``p - alpha q`` with ``p = G^-1 A_S'y``,
    ``q = G^-1 s``, and ``alpha`` from ``|A x - y|^2 = tau``.
    """
    x = iterated_soft_threshold(A, y, tau)
    S, s = np.flatnonzero(x), np.sign(x[np.flatnonzero(x)])
    for _ in range(50):
        gram = A[:, S].T @ A[:, S]
        p, q = np.linalg.solve(gram, A[:, S].T @ y), np.linalg.solve(gram, s)
        rest = y - A[:, S] @ p
        alpha = math.sqrt((tau - float(rest @ rest)) / float(s @ q))
        value = p - alpha * q
        nu = (y - A[:, S] @ value) / alpha
        keep, slopes = np.sign(value) == s, A.T @ nu
        missing = np.setdiff1d(np.flatnonzero(np.abs(slopes) > 1.0 + 1e-9), S)
        if keep.all() and missing.size == 0:
            solution = np.zeros(A.shape[1])
            solution[S] = value
            return solution, nu / max(1.0, float(np.abs(slopes).max()))
        S, s = np.append(S[keep], missing), np.append(s[keep], np.sign(slopes[missing]))
    raise AssertionError("the active set did not settle")


def iterated_soft_threshold(A: Vector, y: Vector, tau: float) -> Vector:
    """Return a rough solution: soft thresholding with the threshold steered to ``|A x - y|^2 = tau``."""
    L = float(np.linalg.norm(A, 2)) ** 2
    low, high = 0.0, float(np.abs(A.T @ y).max())
    x = np.zeros(A.shape[1])
    for _ in range(40):
        alpha = 0.5 * (low + high)
        for _ in range(200):
            z = x - A.T @ (A @ x - y) / L
            x = np.sign(z) * np.maximum(np.abs(z) - alpha / L, 0.0)
        r = A @ x - y
        low, high = (alpha, high) if float(r @ r) < tau else (low, alpha)
    return x
